"""The configurations of tiny models that see pictures, one for each model type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.vision.gemma import make_gemma_tower
from engine.vision.gemma3n import make_gemma3n_tower
from engine.vision.gemma4 import make_gemma4_tower
from engine.vision.lfm2 import make_lfm2_tower
from engine.vision.llama4 import make_llama4_tower
from engine.vision.mistral import make_mistral_tower
from engine.vision.qwen import make_qwen_tower
from engine.vision.qwen2 import make_qwen2_tower
from tests.fakes.tiny_model import CONFIGS, Config
from tests.fakes.tiny_network import TINY_NETWORK

WINDOW = 48  # tokens of Gemma's sliding window
# Qwen3.5: the rotary embedding has a low base, so that rows and columns change the logits.
_ROPE = {
    "rope_type": "default",
    "rope_theta": 100,
    "partial_rotary_factor": 0.25,
    "mrope_section": [2, 1, 1],
    "mrope_interleaved": True,
}
_TEXT: Config = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "intermediate_size": 96,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 32768,
    "rope_theta": 100.0,
    "tie_word_embeddings": False,
    "attention_bias": False,
}
_VL_TEXT: Config = {
    **_TEXT,
    "rope_scaling": {"rope_type": "default", "mrope_section": [8, 4, 4], "mrope_interleaved": True},
}
_EXPERTS: Config = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
_QWEN_VISION: Config = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 2,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "num_position_embeddings": 64,
    "in_channels": 3,
    "out_hidden_size": 64,
    "deepstack_visual_indexes": [],
}
_QWEN_IDS = {
    "image_token_id": "<|image_pad|>",
    "video_token_id": "<|video_pad|>",
    "vision_start_token_id": "<|vision_start|>",
    "vision_end_token_id": "<|vision_end|>",
}
_QWEN_SETTINGS = {
    "size": {"shortest_edge": 32 * 32, "longest_edge": 4096 * 1024},
    "patch_size": 16,
    "merge_size": 2,
    "temporal_patch_size": 2,
}
_TOWER: Config = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_hidden_layers": 2,
    "patch_size": 16,
}


@dataclass(frozen=True, slots=True)
class SeeingKind:
    """A model type that sees pictures."""

    config: Config  # without ids of tokens
    ids: Mapping[str, str]  # fields of config.json with the id of a control token, and the token
    written: str  # what the chat template writes for a picture
    settings: Config  # preprocessor_config.json
    make_tower: Callable[[Mapping[str, Any]], Any] = make_qwen_tower
    # Starts of the names of the tower's weights, and those in model folders, where they are others
    names: Mapping[str, str] = field(default_factory=dict[str, str])


def _qwen(config: Config, *, is_deep: bool) -> SeeingKind:
    name = config["model_type"]
    vision = {**_QWEN_VISION, "model_type": name}
    if is_deep:
        vision["deepstack_visual_indexes"] = [0, 1]
    written = "<|vision_start|><|image_pad|><|vision_end|>"
    return SeeingKind({**config, "vision_config": vision}, _QWEN_IDS, written, _QWEN_SETTINGS)


def _qwen3_5(name: str) -> SeeingKind:
    text = {**CONFIGS[name]["text_config"], "rope_parameters": _ROPE}
    return _qwen({**CONFIGS[name], "text_config": text}, is_deep=False)


def _qwen3_vl(name: str, **text: object) -> SeeingKind:
    texts = {"model_type": f"{name}_text", **_VL_TEXT, **text}
    return _qwen({"model_type": name, "text_config": texts}, is_deep=True)


_QWEN2_TEXT: Config = {
    **{key: value for key, value in _TEXT.items() if key not in ("head_dim", "attention_bias")},
    "rope_scaling": {"type": "mrope", "mrope_section": [8, 4, 4]},
}
_QWEN2_TOWER: Config = {
    "depth": 2,
    "num_heads": 2,
    "patch_size": 14,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "in_chans": 3,
}
_QWEN2_SETTINGS = {
    "min_pixels": 28 * 28,
    "max_pixels": 4096 * 1024,
    "patch_size": 14,
    "merge_size": 2,
    "temporal_patch_size": 2,
}


def _qwen2(config: Config) -> SeeingKind:
    written = "<|vision_start|><|image_pad|><|vision_end|>"
    return SeeingKind(config, _QWEN_IDS, written, _QWEN2_SETTINGS, make_qwen2_tower)


# The settings of the language model stand beside those of the tower, as in published models.
_QWEN2_VL = _qwen2(
    {
        **_QWEN2_TEXT,
        "model_type": "qwen2_vl",
        "vision_config": {**_QWEN2_TOWER, "embed_dim": 32, "hidden_size": 64, "mlp_ratio": 2},
    }
)
_QWEN2_5_VL = _qwen2(
    {
        "model_type": "qwen2_5_vl",
        "text_config": {**_QWEN2_TEXT, "model_type": "qwen2_5_vl_text"},
        "vision_config": {
            **_QWEN2_TOWER,
            "hidden_size": 32,
            "intermediate_size": 64,
            "out_hidden_size": 64,
            "window_size": 112,
            "fullatt_block_indexes": [1],
        },
    }
)
_GEMMA = SeeingKind(
    config={
        "model_type": "gemma3",
        "text_config": {
            **_TEXT,
            "model_type": "gemma3_text",
            "query_pre_attn_scalar": 32,
            "rope_theta": 10000.0,
            "rope_global_base_freq": 10000.0,
            "rope_local_base_freq": 10000.0,
            "sliding_window": WINDOW,
            "sliding_window_pattern": 3,
        },
        "vision_config": {**_TOWER, "model_type": "siglip_vision_model", "image_size": 128},
        "mm_tokens_per_image": 16,
    },
    ids={
        "boi_token_index": "<start_of_image>",
        "eoi_token_index": "<end_of_image>",
        "image_token_index": "<image_soft_token>",
    },
    written="<start_of_image>",
    settings={"size": {"height": 128, "width": 128}, "resample": 2},
    make_tower=make_gemma_tower,
)
_GEMMA3N = SeeingKind(
    config={
        "model_type": "gemma3n",
        "text_config": {
            **_TEXT,
            "model_type": "gemma3n_text",
            "num_hidden_layers": 6,
            "intermediate_size": [96] * 6,
            "layer_types": ["sliding_attention", "full_attention"] * 3,
            "sliding_window": WINDOW,
            "num_kv_shared_layers": 2,
            "vocab_size_per_layer_input": 0,
            "rope_local_base_freq": 100.0,
            "final_logit_softcapping": 30.0,
            "activation_sparsity_pattern": [0.5, 0.0, 0.0, 0.0, 0.0, 0.0],
            "hidden_size_per_layer_input": 16,
            "altup_num_inputs": 2,
            "altup_coef_clip": 120.0,
            "altup_correct_scale": True,
            "altup_active_idx": 0,
            "laurel_rank": 16,
        },
        "vision_config": {
            "model_type": "gemma3n_vision",
            "architecture": TINY_NETWORK,
            "hidden_size": 40,
            "rms_norm_eps": 1e-6,
            "vocab_offset": 420,
            "vocab_size": 16,
        },
        "vision_soft_tokens_per_image": 9,
    },
    ids={
        "boi_token_id": "<start_of_image>",
        "eoi_token_id": "<end_of_image>",
        "image_token_id": "<image_soft_token>",
    },
    written="<image_soft_token>",
    settings={"size": {"height": 96, "width": 96}, "resample": 2, "do_normalize": False},
    make_tower=make_gemma3n_tower,
    names={"vision_tower.": "model.vision_tower.", "embed_vision.": "model.embed_vision."},
)
_GEMMA4 = SeeingKind(
    config={
        "model_type": "gemma4",
        "text_config": {
            **_TEXT,
            "model_type": "gemma4_text",
            "num_hidden_layers": 6,
            "layer_types": ["sliding_attention", "full_attention"] * 3,
            "sliding_window": WINDOW,
            "rope_parameters": {
                "full_attention": {
                    "rope_type": "proportional",
                    "rope_theta": 100.0,
                    "partial_rotary_factor": 0.25,
                },
                "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
            },
            "global_head_dim": 32,
            "num_kv_shared_layers": 2,
            "vocab_size_per_layer_input": 0,
            "hidden_size_per_layer_input": 16,
            "use_double_wide_mlp": True,
            "use_bidirectional_attention": "vision",
            "tie_word_embeddings": True,
        },
        "vision_config": {
            **{key: size for key, size in _TOWER.items() if key != "image_size"},
            "model_type": "gemma4_vision",
            "num_key_value_heads": 2,
            "head_dim": 16,
            "pooling_kernel_size": 2,
            "position_embedding_size": 64,
            "standardize": True,
        },
    },
    ids={
        "boi_token_id": "<|image>",
        "eoi_token_id": "<image|>",
        "image_token_id": "<|image|>",
    },
    written="<|image|>",
    settings={"max_soft_tokens": 70, "patch_size": 16, "pooling_kernel_size": 2},
    make_tower=make_gemma4_tower,
)
_LLAMA4 = SeeingKind(
    config={
        "model_type": "llama4",
        "text_config": {
            **_TEXT,
            "model_type": "llama4_text",
            "num_hidden_layers": 4,
            "num_experts_per_tok": 1,
            "num_local_experts": 4,
            "attention_chunk_size": WINDOW,
            "interleave_moe_layer_step": 2,
            "intermediate_size_mlp": 96,
            "rope_scaling": None,
            "use_qk_norm": True,
        },
        "vision_config": {
            **_TOWER,
            "model_type": "llama4_vision_model",
            "image_size": 64,
            "num_channels": 3,
            "pixel_shuffle_ratio": 0.5,
            "projector_input_dim": 48,
            "projector_output_dim": 48,
            "intermediate_size": 128,
            "vision_output_dim": 48,
            "rope_theta": 100.0,
        },
    },
    ids={
        "boi_token_index": "<|image_start|>",
        "eoi_token_index": "<|image_end|>",
        "image_token_index": "<|patch|>",
        "tile_x": "<|tile_x_separator|>",
        "tile_y": "<|tile_y_separator|>",
        "whole": "<|image|>",
    },
    written="<|image|>",
    settings={"size": {"height": 64, "width": 64}, "resample": 2, "max_patches": 6},
    make_tower=make_llama4_tower,
    names={"vision_tower.": "vision_model."},
)
_MISTRAL = SeeingKind(
    config={
        "model_type": "mistral3",
        "text_config": {**_TEXT, "model_type": "mistral"},
        "vision_config": {
            **_TOWER,
            "model_type": "pixtral",
            "head_dim": 16,
            "image_size": 320,
            "rope_theta": 100.0,
        },
        "spatial_merge_size": 2,
        "vision_feature_layer": -1,
    },
    ids={"image_token_index": "[IMG]", "break": "[IMG_BREAK]", "end": "[IMG_END]"},
    written="[IMG]",
    settings={"size": {"longest_edge": 320}, "resample": 3},
    make_tower=make_mistral_tower,
)
_TILES = [(row, column) for row in range(1, 7) for column in range(1, 7) if row * column <= 6]
_LFM2 = SeeingKind(
    config={
        "model_type": "lfm2-vl",
        "text_config": {**CONFIGS["lfm2"], "rope_theta": 100.0},
        "vision_config": {
            **{key: size for key, size in _TOWER.items() if key != "image_size"},
            "model_type": "siglip2_vision_model",
            "num_patches": 36,
        },
        "downsample_factor": 2,
        "projector_hidden_size": 48,
    },
    ids={
        "image_token_id": "<image>",
        "start": "<|image_start|>",
        "end": "<|image_end|>",
        "thumbnail": "<|img_thumbnail|>",
        **{f"tile {row} {column}": f"<|img_row_{row}_col_{column}|>" for row, column in _TILES},
    },
    written="<image>",
    # Pictures of 192 x 128 pixels are divided, and those with less than 16,384 pixels are not.
    settings={
        "encoder_patch_size": 16,
        "downsample_factor": 2,
        "tile_size": 64,
        "min_image_tokens": 2,
        "max_image_tokens": 8,
        "max_tiles": 6,
        "resample": 2,
    },
    make_tower=make_lfm2_tower,
)
SEEING_KINDS: Mapping[str, SeeingKind] = {
    "qwen3_5": _qwen3_5("qwen3_5"),
    "qwen3_5_moe": _qwen3_5("qwen3_5_moe"),
    "qwen3_vl": _qwen3_vl("qwen3_vl"),
    "qwen3_vl_moe": _qwen3_vl("qwen3_vl_moe", **_EXPERTS),
    "qwen2_vl": _QWEN2_VL,
    "qwen2_5_vl": _QWEN2_5_VL,
    "gemma3": _GEMMA,
    "gemma3n": _GEMMA3N,
    "gemma4": _GEMMA4,
    "llama4": _LLAMA4,
    "mistral3": _MISTRAL,
    "lfm2-vl": _LFM2,
}
SEEING_NAMES = tuple(SEEING_KINDS)
