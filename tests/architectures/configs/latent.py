"""Tiny configurations with latent attention, some with an index that selects attended tokens."""

from __future__ import annotations

from tests.architectures.configs.shared import EXPERTS, LATENT, WINDOW, Config

_MOE: Config = {
    **LATENT,
    **EXPERTS,
    "topk_method": "noaux_tc",
    "scoring_func": "sigmoid",
}
_INDEXED: Config = {**_MOE, "index_head_dim": 32, "index_n_heads": 2, "index_topk": 16}
_YARN: Config = {
    "rope_type": "yarn",
    "type": "yarn",
    "rope_theta": 10000.0,
    "factor": 2.0,
    "original_max_position_embeddings": 4096,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}
_LONGCAT: Config = {
    **LATENT,
    "attention_method": "MLA",
    "zero_expert_type": "identity",
    "ffn_hidden_size": 96,
    "moe_topk": 2,
    "expert_ffn_hidden_size": 32,
    "n_routed_experts": 4,
    "zero_expert_num": 2,
    "num_layers": 2,
    "routed_scaling_factor": 1.0,
    "mla_scale_q_lora": True,
    "mla_scale_kv_lora": True,
}

CONFIGS: dict[str, Config] = {
    "deepseek_v2": {**_MOE, "topk_method": "greedy", "rope_scaling": _YARN},
    "deepseek_v3": _MOE,
    "deepseek_v32": _INDEXED,
    "deepseek_v41": {
        **_MOE,
        "num_hidden_layers": 3,
        "o_groups": 2,
        "o_lora_rank": 32,
        "scoring_func": "sqrtsoftplus",
        "rms_norm_eps": 1e-6,
        "sliding_window": WINDOW,
        "compress_ratios": [0, 4, 4],
        "kv_source_layer_ids": [1, 2],
        "index_source_layer_ids": [1, 2],
        "candidate_source_layer_id": 1,
        "candidate_topk_blocks": 2,
        "candidate_block_size": 2,
        "index_n_heads": 2,
        "index_head_dim": 32,
        "index_topk": 4,
        "hc_mult": 2,
        "hc_sinkhorn_iters": 2,
    },
    "glm4_moe_lite": {**_MOE, "num_nextn_predict_layers": 0},
    "glm_moe_dsa": {**_INDEXED, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}},
    "longcat_flash": _LONGCAT,
    "longcat_flash_ngram": {
        **_LONGCAT,
        "ngram_vocab_size_ratio": 2,
        "emb_neighbor_num": 3,
        "emb_split_num": 2,
    },
    "minicpm3": {
        **LATENT,
        "dim_model_base": 32,
        "scale_depth": 1.4,
        "scale_emb": 12.0,
        "rope_scaling": {
            "type": "longrope",
            "long_factor": [1.0] * 16,
            "short_factor": [1.0] * 16,
            "original_max_position_embeddings": 32768,
        },
    },
    "mistral4": {**_MOE, "rope_interleave": True, "rope_parameters": _YARN},
    "youtu_llm": LATENT,
}
