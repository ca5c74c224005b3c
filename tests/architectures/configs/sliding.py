"""Tiny configurations with layers that attend to a window or a chunk of the newest tokens."""

from __future__ import annotations

from tests.architectures.configs.shared import ALTERNATING, EXPERTS, WINDOW, Config

_MOE: Config = {**ALTERNATING, **EXPERTS}
_BOTH_ROPES: Config = {
    "full_attention": {"rope_type": "default", "rope_theta": 1000000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
}
_GEMMA4: Config = {
    **ALTERNATING,
    # The last two use the K/V of the two before them, so a cut is possible before the second and third.
    "num_hidden_layers": 6,
    "layer_types": ["sliding_attention", "full_attention"] * 3,
    "global_head_dim": 32,
    "num_kv_shared_layers": 2,
    "vocab_size_per_layer_input": 0,
    "hidden_size_per_layer_input": 16,
    "use_double_wide_mlp": True,
    "tie_word_embeddings": True,
}

CONFIGS: dict[str, Config] = {
    "afmoe": {**_MOE, "num_dense_layers": 1},
    "cohere2": {**ALTERNATING, "logit_scale": 1.0},
    "exaone4": {**ALTERNATING, "rope_scaling": None, "sliding_window_pattern": "LG"},
    "exaone_moe": {**_MOE, "is_moe_layer": [False, True]},
    "gemma3_text": {
        **ALTERNATING,
        "query_pre_attn_scalar": 32,
        "rope_local_base_freq": 10000.0,
    },
    "gemma3n": {
        "text_config": {
            "model_type": "gemma3n_text",
            **ALTERNATING,
            "num_hidden_layers": 6,
            "layer_types": ["sliding_attention", "full_attention"] * 3,
            "num_kv_shared_layers": 2,
            "vocab_size_per_layer_input": 0,
            "rope_local_base_freq": 10000.0,
            "final_logit_softcapping": 30.0,
            "activation_sparsity_pattern": [0.95, 0.95, 0.0, 0.0, 0.0, 0.0],
            "hidden_size_per_layer_input": 16,
            "altup_num_inputs": 2,
            "altup_coef_clip": 120.0,
            "altup_correct_scale": True,
            "altup_active_idx": 0,
            "laurel_rank": 16,
        }
    },
    "gemma4_text": _GEMMA4,
    "gpt_oss": {
        **_MOE,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 2.0,
            "original_max_position_embeddings": 4096,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
        },
    },
    "iquestloopcoder": {**ALTERNATING, "loop_window_size": WINDOW},
    "laguna": {**_MOE, "rope_parameters": _BOTH_ROPES, "mlp_layer_types": ["dense", "sparse"]},
    "llama4": {
        "text_config": {
            **_MOE,
            "model_type": "llama4_text",
            "num_hidden_layers": 4,
            "layer_types": ["chunked_attention"] * 3 + ["full_attention"],
            "num_experts_per_tok": 1,
            "attention_chunk_size": WINDOW,
            "interleave_moe_layer_step": 2,
            "intermediate_size_mlp": 96,
            "rope_scaling": None,
            "use_qk_norm": True,
        }
    },
    "mellum": {**_MOE, "rope_parameters": _BOTH_ROPES},
    "mimo_v2_flash": {
        **_MOE,
        "hybrid_layer_pattern": [1, 0],
        "moe_layer_freq": [0, 1],
        "add_swa_attention_sink_bias": True,
        "add_full_attention_sink_bias": False,
        "sliding_window_size": WINDOW,
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "layernorm_epsilon": 1e-6,
        "swa_rope_theta": 10000.0,
        "swa_num_attention_heads": 2,
        "swa_num_key_value_heads": 2,
        "v_head_dim": 32,
        "swa_head_dim": 32,
        "swa_v_head_dim": 32,
        "partial_rotary_factor": 0.5,
    },
    "ministral3": {
        **ALTERNATING,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": 10000.0,
            "llama_4_scaling_beta": 0.1,
            "original_max_position_embeddings": 16,
        },
    },
    "muse_glimmer": {**ALTERNATING, "output_multiplier": 1.0},
    "muse_spark": {
        "text_config": {
            **_MOE,
            "post_norm_eps": 1e-8,
            "rope_parameters": {"rope_theta": 10000.0},
            "layer_rope_theta": [10000.0, 0],
            "final_logit_softcapping": 20.0,
            "output_multiplier": 1.0,
            "moe_hidden_size": 32,
            "num_shared_experts": 0,
        }
    },
    "olmo3": ALTERNATING,
    "plamo3": ALTERNATING,
    "spark2_5": {**ALTERNATING, "rope_parameters": _BOTH_ROPES},
    "step3p5": {
        **_MOE,
        "num_attention_groups": 1,
        "moe_num_experts": 4,
        "moe_top_k": 2,
        "share_expert_dim": 32,
        "moe_layers_enum": "1",
    },
}
