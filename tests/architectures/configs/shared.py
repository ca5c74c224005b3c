"""Settings that many tiny configurations share.

Head dimensions are 32, the smallest group size in which K/V can be quantised. Sliding windows are
shorter than the conversations of the trial, so that their caches rotate.
"""

from __future__ import annotations

from tests.fakes.tiny_model import Config

WINDOW = 24
ATTENTION: Config = {
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "intermediate_size": 96,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 32768,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "mlp_bias": False,
}
# The number of experts, their size and how many are chosen. Model types have different names for
# these settings.
EXPERTS: Config = {
    "num_experts": 4,
    "num_local_experts": 4,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "num_shared_experts": 1,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "decoder_sparse_step": 1,
    "moe_layer_freq": 1,
    "mlp_only_layers": [],
    "norm_topk_prob": True,
    "routed_scaling_factor": 1.0,
    "n_group": 1,
    "topk_group": 1,
}
# Multi-head latent attention. The cache holds a latent vector and the rotated part of the keys.
LATENT: Config = {
    **ATTENTION,
    "num_key_value_heads": 2,
    "q_lora_rank": 32,
    "kv_lora_rank": 32,
    "qk_rope_head_dim": 32,
    "qk_nope_head_dim": 32,
    "v_head_dim": 32,
}
# Layers with a sliding window alternate with layers that attend to all tokens.
ALTERNATING: Config = {
    **ATTENTION,
    "layer_types": ["sliding_attention", "full_attention"],
    "sliding_window": WINDOW,
    "sliding_window_pattern": 2,
}
DELTA_NET: Config = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_conv_kernel_dim": 4,
    "full_attention_interval": 2,
}
