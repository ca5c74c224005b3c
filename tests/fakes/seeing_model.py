"""Tiny models with random weights that see pictures, and pictures for them.

A folder has the files of a published model: the weights of the language model and of the vision tower,
and the settings of the image processor. The rotary embedding has a low base, so that the rows and columns
of a picture change the logits.
"""

# mlx.utils and mlx-vlm have few types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

import mlx.core as mx
import numpy as np
from mlx.utils import tree_flatten, tree_map_with_path
from PIL import Image
from tokenizers import AddedToken

from engine.types import Picture, picture_digest
from engine.vision.tower import make_tower
from tests.fakes.tiny_model import (
    CONFIGS,
    TEMPLATES,
    Config,
    Template,
    train_tokenizer,
    write_model,
)

_PICTURE = "<|vision_start|><|image_pad|><|vision_end|>"
_TOKENS = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
_CONTENT = (
    "{%- macro content(m) -%}{%- if m.content is string -%}{{ m.content }}{%- else -%}"
    "{%- for part in m.content -%}"
    "{%- if part.type == 'image' -%}" + _PICTURE + "{%- else -%}{{ part.text }}{%- endif -%}"
    "{%- endfor -%}{%- endif -%}{%- endmacro -%}"
)
_VISION = {
    "depth": 2,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 2,
    "patch_size": 16,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
    "num_position_embeddings": 64,
    "in_channels": 3,
    "deepstack_visual_indexes": [],
}
# Qwen3-VL: attention in all layers; the first layers get features of the tower's first layer too.
_VL_TEXT = {
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "intermediate_size": 96,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 32768,
    "rope_theta": 100.0,
    "rope_scaling": {"rope_type": "default", "mrope_section": [8, 4, 4], "mrope_interleaved": True},
    "tie_word_embeddings": False,
    "attention_bias": False,
}
_VL_EXPERTS = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "norm_topk_prob": True,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}
_VL_CONFIGS: Mapping[str, Config] = {
    "qwen3_vl": {"text_config": {"model_type": "qwen3_vl_text", **_VL_TEXT}},
    "qwen3_vl_moe": {"text_config": {"model_type": "qwen3_vl_moe_text", **_VL_TEXT, **_VL_EXPERTS}},
}
SEEING_NAMES = ("qwen3_5", "qwen3_5_moe", *_VL_CONFIGS)
_ROPE = {
    "rope_type": "default",
    "rope_theta": 100,
    "partial_rotary_factor": 0.25,
    "mrope_section": [2, 1, 1],
    "mrope_interleaved": True,
}


def build_seeing(
    out: Path,
    name: str = "qwen3_5",
    template: Template = Template.KEEPING,
    sizes: Mapping[str, int] = MappingProxyType({}),
) -> Path:
    """Write the model folder `out` and return it. `sizes` are fields of a larger language model."""
    tokenizer = train_tokenizer()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in _TOKENS])
    is_deep = name in _VL_CONFIGS
    config: Config = copy.deepcopy((_VL_CONFIGS if is_deep else CONFIGS)[name])
    text = config["text_config"]
    text |= {**({} if is_deep else {"rope_parameters": dict(_ROPE)}), **sizes}
    config |= {
        "model_type": name,
        "image_token_id": tokenizer.token_to_id("<|image_pad|>"),
        "video_token_id": tokenizer.token_to_id("<|video_pad|>"),
        "vision_start_token_id": tokenizer.token_to_id("<|vision_start|>"),
        "vision_end_token_id": tokenizer.token_to_id("<|vision_end|>"),
        "vision_config": {
            **_VISION,
            "model_type": name,
            "out_hidden_size": text["hidden_size"],
            "deepstack_visual_indexes": [0, 1] if is_deep else [],
        },
    }
    source = _CONTENT + TEMPLATES[template].replace("m.content", "content(m)")
    write_model(out, config, tokenizer, source)
    mx.random.seed(11)
    weights = dict(cast("dict[str, mx.array]", mx.load(str(out / "model.safetensors"))))
    tower = tree_map_with_path(_wide, make_tower(config).parameters())
    named = cast("list[tuple[str, mx.array]]", tree_flatten(tower))
    weights |= {f"vision_tower.{name}": array for name, array in named}
    mx.save_safetensors(str(out / "model.safetensors"), weights, metadata={"format": "mlx"})
    settings = {"size": {"shortest_edge": 32 * 32, "longest_edge": 4096 * 1024}}
    settings |= {"patch_size": 16, "merge_size": 2, "temporal_patch_size": 2}
    (out / "preprocessor_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return out


def write_picture(
    folder: Path, width: int, height: int, *, seed: int = 0, pixel: int = 0
) -> Picture:
    """Write a picture of coloured noise into the folder, and return it.

    pixel: a number that is added to the first pixel only.
    """
    folder.mkdir(parents=True, exist_ok=True)
    coarse = np.random.RandomState(seed).randint(0, 256, (4, 4, 3), np.uint8)
    image = Image.fromarray(coarse).resize((width, height))
    rows = np.array(image)
    rows[0, 0, 0] = (int(rows[0, 0, 0]) + pixel) % 256
    digest = picture_digest(width, height, rows.tobytes())
    Image.fromarray(rows).save(folder / f"{digest}.png")
    return Picture(digest=digest, width=width, height=height)


def _wide(path: str, array: mx.array) -> mx.array:
    """Return a weight with a wider spread, so that pictures differ in the logits."""
    return array * 3.0 if path.endswith("weight") and array.ndim >= 2 else array
