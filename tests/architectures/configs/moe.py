"""Tiny configurations of mixtures of experts whose layers all attend to all tokens."""

from __future__ import annotations

from tests.architectures.configs.shared import ATTENTION, EXPERTS, Config

_MOE: Config = {**ATTENTION, **EXPERTS}

CONFIGS: dict[str, Config] = {
    "Klear": _MOE,
    "bailing_moe": {**_MOE, "topk_group": 1},
    "dbrx": {
        "d_model": 64,
        "n_heads": 2,
        "n_layers": 2,
        "ffn_config": {"ffn_hidden_size": 32, "moe_num_experts": 4, "moe_top_k": 2},
        "attn_config": {"kv_n_heads": 1, "clip_qkv": 8, "rope_theta": 10000.0},
    },
    "deepseek": _MOE,
    "dots1": {**_MOE, "scoring_func": "noaux_tc"},
    "ernie4_5_moe": {
        **_MOE,
        "use_bias": False,
        "moe_num_experts": 4,
        "moe_k": 2,
        "moe_num_shared_experts": 1,
        "moe_layer_start_index": 1,
    },
    "glm4_moe": {
        **_MOE,
        "rope_scaling": None,
        "use_qk_norm": True,
        "partial_rotary_factor": 0.5,
    },
    "granitemoe": {
        **_MOE,
        "logits_scaling": 8.0,
        "attention_multiplier": 0.2,
        "embedding_multiplier": 12.0,
        "residual_multiplier": 0.3,
    },
    "hunyuan": {
        **_MOE,
        "moe_topk": 2,
        "num_shared_expert": 1,
        "use_mixed_mlp_moe": True,
        "use_qk_norm": True,
        "use_cla": True,
        "cla_share_factor": 2,
        "rope_scaling": {"alpha": 1000.0, "factor": 1.0, "type": "dynamic"},
    },
    "minimax": {**_MOE, "shared_intermediate_size": 32, "rotary_dim": 16},
    "minimax_m3_vl": {
        "text_config": {
            **_MOE,
            "num_hidden_layers": 3,
            "dense_intermediate_size": 96,
            "shared_intermediate_size": 32,
            "mlp_layer_types": ["dense", "sparse", "sparse"],
            "layer_types": ["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"],
            "index_n_heads": 1,
            "index_head_dim": 32,
            "index_block_size": 8,
            "index_topk_blocks": 3,
        },
    },
    "mixtral": _MOE,
    "olmoe": _MOE,
    "phimoe": {
        **_MOE,
        "rope_scaling": {
            "type": "longrope",
            "long_factor": [1.0] * 16,
            "short_factor": [1.0] * 16,
            "long_mscale": 1.0,
            "short_mscale": 1.0,
        },
    },
    "phixtral": {
        "num_vocab": 0,
        "model_dim": 64,
        "num_heads": 2,
        "num_layers": 2,
        "rotary_dim": 16,
    },
    "qwen2_moe": _MOE,
    "qwen3_moe": _MOE,
    "solar_open": {**_MOE, "partial_rotary_factor": 0.5},
}
