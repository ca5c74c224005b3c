"""Chats with pictures by models of mlx-vlm that differ from transformers in the reading of pictures.

Their parts are used as far as both agree, and the rest is that of transformers.
"""

# mlx-vlm has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mlx.core as mx
import numpy as np
from mlx import nn
from mlx_lm.models.base import create_causal_mask
from PIL import Image
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

from engine.picture_ids import picture_spans

# Fields that mlx-vlm wants, and no layer uses
LLAMA4_VISION = {
    "initializer_range": 0.02,
    "norm_eps": 1e-5,
    "projector_dropout": 0.0,
    "vision_feature_layer": -1,
    "vision_feature_select_strategy": "default",
}


def by_gemma3n(
    model: Any, config: dict[str, Any], token_ids: Sequence[int], images: Sequence[Image.Image]
) -> mx.array:
    """Feed a prompt in one pass. The last token of a picture has an embedding of the tower's own."""
    language, embed = model.language_model, model.embed_vision
    ids = mx.array([with_placeholders(token_ids, 0)])
    hidden = language.model.embed_tokens(ids) * 8.0  # the root of the width
    size = {"height": 96, "width": 96}
    processor = SiglipImageProcessorPil(size=size, resample=2, do_normalize=False)
    width = config["vision_config"]["hidden_size"]
    for span, image in zip(picture_spans(token_ids), images, strict=True):
        values = mx.array(processor(image, return_tensors="np")["pixel_values"])
        tokens = model.vision_tower.tokens(values.transpose(0, 2, 3, 1), 3) * width**0.5
        hidden[:, span.start : span.end - 1] = embed(inputs_embeds=tokens)
        hidden[:, span.end - 1] = embed(input_ids=mx.array([config["eoi_token_id"]]))
    cache = [OnePass() for _ in language.make_cache()]
    return language(inputs=ids, inputs_embeds=hidden, cache=cache).logits[0]


class OnePass:
    """The keys and values of a layer in the only pass of a prompt.

    mlx-vlm rotates the queries of layers that use them by the number of tokens that are stored already.
    """

    offset = 0

    def __init__(self) -> None:
        self.state: tuple[mx.array, ...] = ()

    def update_and_fetch(self, keys: mx.array, values: mx.array) -> tuple[mx.array, ...]:
        self.state = (keys, values)
        return self.state

    def make_mask(
        self, num_tokens: int, *, return_array: bool, window_size: int | None
    ) -> mx.array:
        del return_array
        return create_causal_mask(num_tokens, window_size=window_size)


def by_llama4(
    model: Any, config: dict[str, Any], token_ids: Sequence[int], images: Sequence[Image.Image]
) -> mx.array:
    """Feed a prompt in one pass. The processor's text says which tokens a picture has."""
    for module in model.vision_model.modules():
        if hasattr(module, "activation_fn"):
            module.activation_fn = nn.GELU()  # as transformers; mlx-vlm has an approximation
    patch, tile_x, tile_y, whole = (
        config[key] for key in ("image_token_index", "tile_x", "tile_y", "whole")
    )
    ids, tiles = list[int](), list[mx.array]()
    spans = iter([*picture_spans(token_ids)])
    done = 0
    for span, image in zip(spans, images, strict=True):
        read, rows, columns = tiles_by_transformers(image, 64, 6)
        tiles += [mx.array(tile) for tile in read]
        row = ([patch] * 4 + [tile_x]) * (columns - 1) + [patch] * 4 + [tile_y]
        of_picture = [*(row * rows if rows * columns > 1 else []), whole, *[patch] * 4]
        assert len(of_picture) == span.end - span.start
        ids += [*token_ids[done : span.start], *of_picture]
        done = span.end
    ids += token_ids[done:]
    pixels = mx.stack(tiles) if tiles else None
    embedded = model.get_input_embeddings(mx.array([ids]), pixel_values=pixels).inputs_embeds
    return model.language_model(mx.array([ids]), inputs_embeds=embedded).logits[0]


def tiles_by_transformers(
    image: Image.Image, side: int, max_tiles: int
) -> tuple[list[np.ndarray], int, int]:
    """Return the tiles of a picture, and their rows and columns.

    transformers' processor needs torch, so these are its steps in one place: the best canvas, the size without
    distortion, padding behind, tiles, and the whole picture if there are several.
    """
    forms = [(n // w, w) for n in range(1, max_tiles + 1) for w in range(1, n + 1) if n % w == 0]
    scale_of = {
        (h, w): min(np.float32(h * side) / image.height, np.float32(w * side) / image.width)
        for h, w in forms
    }
    larger = [scale for scale in scale_of.values() if scale >= 1]
    best = min(larger) if larger else max(scale_of.values())
    rows, columns = min((one for one in forms if scale_of[one] == best), key=math.prod)
    height = min(max(image.height, side), rows * side)
    width = min(max(image.width, side), columns * side)
    scale = min(height / image.height, width / image.width)
    size = (min(width, int(image.width * scale)), min(height, int(image.height * scale)))
    canvas = Image.new("RGB", (columns * side, rows * side))
    canvas.paste(image.resize(size, Image.Resampling.BILINEAR), (0, 0))
    parts = [
        canvas.crop((x * side, y * side, (x + 1) * side, (y + 1) * side))
        for y in range(rows)
        for x in range(columns)
    ]
    if len(parts) > 1:
        parts.append(image.resize((side, side), Image.Resampling.BILINEAR))
    arrays = [np.asarray(part).transpose(2, 0, 1) / np.float32(127.5) - 1 for part in parts]
    return arrays, rows, columns


def with_placeholders(token_ids: Sequence[int], placeholder: int) -> list[int]:
    ids = list(token_ids)
    for span in picture_spans(token_ids):
        ids[span.start : span.end] = [placeholder] * (span.end - span.start)
    return ids
