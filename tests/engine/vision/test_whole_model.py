"""The logits of chats with pictures, compared with mlx-vlm's own model of the same weights.

Both read the same prompt in the same passes. mlx-vlm computes positions from the whole prompt, and the
language model is its own code.
"""

# mlx-vlm has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import mlx.core as mx
import pytest
from mlx_lm.models.cache import make_prompt_cache

from engine.models.compare import relative_difference
from engine.models.loader import LoadedModel, load_model
from engine.picture_ids import picture_spans
from engine.runner.chunks import plan_chunks
from engine.types import Message, Picture, Role
from engine.vision.pixels import read_pixels
from engine.vision.tower import QwenTower, make_tower
from tests.fakes.seeing_model import SEEING_NAMES, build_seeing, write_picture

# Largest difference of the logits, relative to their standard deviation. Text alone differs by 1.6e-4, a
# wrong row or column by more than 1e-2.
TOLERANCE = 5e-4


@pytest.fixture(scope="module", params=SEEING_NAMES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_seeing(tmp_path_factory.mktemp("seeing") / request.param, request.param)


@contextmanager
def whole_packages() -> Generator[None]:
    """Import the packages of mlx-vlm with their language models, unlike engine/vision/tower.py.

    Only its top level is left out: it needs libraries that are not installed.
    """
    parts = {
        name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("mlx_vlm")
    }
    top = ModuleType("mlx_vlm")
    top.__path__ = list(parts["mlx_vlm"].__path__)
    sys.modules["mlx_vlm"] = top
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.startswith("mlx_vlm")]:
            del sys.modules[name]
        sys.modules.update(parts)


def user(text: str, *pictures: Picture) -> Message:
    return Message(role=Role.USER, content=text, pictures=pictures)


def ours(model: LoadedModel, token_ids: Sequence[int], ends: Sequence[int]) -> mx.array:
    """Return the logits of all tokens, of shape (L, V)."""
    caches = model.adapter.new_caches()
    starts = [0, *ends[:-1]]
    parts = [model.adapter.feed(token_ids[a:b], caches) for a, b in zip(starts, ends, strict=True)]
    return mx.concatenate(parts)


def theirs(
    folder: Path, token_ids: Sequence[int], pictures: Sequence[Picture], ends: Sequence[int]
) -> mx.array:
    """Return the logits of all tokens by mlx-vlm, of shape (L, V)."""
    config = json.loads((folder / "config.json").read_text())
    with whole_packages():
        part: Any = importlib.import_module(f"mlx_vlm.models.{config['model_type']}")
    model: Any = part.Model(part.ModelConfig.from_dict(config))
    model.vision_tower = make_tower(config)  # see make_tower on the copy for Qwen3-VL's experts
    weights = cast("dict[str, mx.array]", mx.load(str(folder / "model.safetensors")))
    model.load_weights(list(model.sanitize(dict(weights)).items()))
    model.eval()
    ids = list(token_ids)
    for span in picture_spans(token_ids):
        ids[span.start : span.end] = [config["image_token_id"]] * (span.end - span.start)
    options: dict[str, Any] = {}
    if pictures:
        tower = QwenTower(folder, config)
        read = [tower.patches(read_pixels(folder / f"{one.digest}.png", one)) for one in pictures]
        options["pixel_values"] = mx.concatenate([mx.array(one.values) for one in read])
        options["image_grid_thw"] = mx.array([one.grid for one in read])
    features = model.get_input_embeddings(mx.array([ids]), **options)
    language = model.language_model
    cache = make_prompt_cache(language)
    deep = (
        {}
        if features.visual_pos_masks is None
        else {
            "visual_pos_masks": features.visual_pos_masks,
            "deepstack_visual_embeds": features.deepstack_visual_embeds,
        }
    )
    logits: list[mx.array] = []
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        result = language(
            mx.array([ids[start:end]]),
            inputs_embeds=features.inputs_embeds[:, start:end],
            cache=cache,
            position_ids=features.position_ids[..., start:end],
            **deep,
        )
        logits.append(result.logits[0])
    return mx.concatenate(logits)


@pytest.mark.parametrize("num_pictures", [0, 1, 3])
def test_logits_are_those_of_the_whole_model(folder: Path, num_pictures: int) -> None:
    sizes = [(192, 128), (64, 160), (320, 32)][:num_pictures]
    drawn = [write_picture(folder, *size, seed=seed) for seed, size in enumerate(sizes)]
    model = load_model(folder, lambda _done, _total: None, picture_folder=folder)
    chat = [
        user("The quick brown fox", *drawn[:1]),
        Message(role=Role.ASSISTANT, content="Of course."),
        user("What is the weather like?", *drawn[1:]),
        Message(role=Role.ASSISTANT, content="A small boat."),
        user("Could you say that in other words?", *drawn[:1]),
    ]
    prompt = model.prompts.build(chat, thinking=None, keep_thinking=False)
    token_ids = (*prompt.token_ids, 5, 6, 7)
    chunks = plan_chunks(0, prompt.points, token_ids=token_ids, cell_len=512, stride_len=2048)
    ends = [*(chunk.end for chunk in chunks)]
    pictures = [picture for message in chat for picture in message.pictures]

    found, wanted = ours(model, token_ids, ends), theirs(folder, token_ids, pictures, ends)

    assert len(list(picture_spans(token_ids))) == len(pictures)
    assert relative_difference(found, wanted) < TOLERANCE
