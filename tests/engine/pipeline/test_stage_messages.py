"""Messages between stages: the arrays that another stage announces are compared with those of the pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import pytest

from engine.config import EngineConfig
from engine.pipeline.follower import Follower
from engine.pipeline.messages import (
    MAX_BYTES,
    ArrayForm,
    Encoded,
    Op,
    StageMessage,
    StageMessageError,
    required_bytes,
)
from engine.pipeline.run import load_follower
from engine.vision.tower import TokenGrid
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template

CONFIG = EngineConfig(use_openblas=False, idle_work=False)
FEED = [Op.FEED, 1, [0]]


@pytest.fixture
def follower(seeing_model: Callable[[str, Template], Path]) -> Follower:
    """Return the middle one of three stages of qwen3_vl. It and the first stage add features."""
    folder = seeing_model("qwen3_vl", Template.KEEPING)
    return load_follower(folder, (1, 1, 1), 1, CONFIG, lambda _done, _total: None)


def text(*shape: int, dtype: mx.Dtype = mx.float32) -> StageMessage:
    return StageMessage([FEED], [[1] * 6], arrays=(mx.zeros(shape, dtype),))


def picture(*shapes: tuple[int, ...]) -> StageMessage:
    arrays = tuple(mx.zeros(shape) for shape in shapes)
    return StageMessage([FEED], [[-1] * 6], arrays=arrays, grid=TokenGrid(2, 3, 6))


def test_message_with_the_arrays_of_its_pass_is_accepted(follower: Follower) -> None:
    hidden, features = (1, 6, 64), [(6, 64)] * 2

    found = Encoded.of(picture(hidden, *features).encoded(), follower.expected)

    assert found.message.grid == TokenGrid(2, 3, 6)
    assert [form.shape for form in found.forms] == [hidden, *features]
    Encoded.of(text(*hidden, dtype=mx.bfloat16).encoded(), follower.expected)
    Encoded.of(StageMessage([[Op.REPORT]]).encoded(), follower.expected)


@pytest.mark.parametrize(
    "message",
    [
        text(1, 7, 64),
        text(1, 6, 1 << 20),
        text(2, 6, 64),
        text(1, 6, 64, dtype=mx.int32),
        StageMessage([FEED], [[1] * 6]),
        StageMessage([[Op.REPORT]], arrays=(mx.zeros((1,)),)),
        picture((1, 6, 64)),
        picture((1, 6, 64), (6, 64)),
        picture((1, 6, 64), (6, 64), (7, 64)),
        picture((1, 6, 64), (6, 64), (6, 64), (6, 64)),
    ],
)
def test_message_with_other_arrays_than_those_of_its_pass_is_refused(
    follower: Follower, message: StageMessage
) -> None:
    with pytest.raises(StageMessageError, match="another stage sends"):
        Encoded.of(message.encoded(), follower.expected)


def test_type_that_is_no_type_of_numbers_is_refused(follower: Follower) -> None:
    *fields, _forms, grid = json.loads(text(1, 6, 64).encoded())
    data = json.dumps([*fields, [[[1, 6, 64], "save"]], grid]).encode()

    with pytest.raises(StageMessageError, match="another stage sends"):
        Encoded.of(data, follower.expected)


@pytest.mark.parametrize("num_bytes", [-1, 0, MAX_BYTES + 1, 2**31 - 1])
def test_message_of_an_impossible_length_is_refused(num_bytes: int) -> None:
    with pytest.raises(StageMessageError, match="announces"):
        required_bytes(num_bytes)


def test_stage_of_a_model_that_does_not_see_refuses_a_picture(tiny_model: TinyModel) -> None:
    folder = tiny_model("deep_llama", Template.KEEPING)
    first = load_follower(folder, (2, 2), 1, CONFIG, lambda _done, _total: None)
    message = StageMessage(
        [FEED], [[-1] * 6], arrays=(mx.zeros((1, 6, 64)),), grid=TokenGrid(2, 3, 6)
    )

    with pytest.raises(StageMessageError, match="another stage sends"):
        Encoded.of(message.encoded(), first.expected)


def test_first_stage_gets_the_embeddings_of_a_picture_with_all_features(
    seeing_model: Callable[[str, Template], Path],
) -> None:
    folder = seeing_model("qwen3_vl", Template.KEEPING)
    first = load_follower(folder, (1, 2), 1, CONFIG, lambda _done, _total: None)

    wanted = first.expected(StageMessage([FEED], [[-1] * 6], grid=TokenGrid(2, 3, 6)))

    features = [ArrayForm((6, 64), mx.float32)] * 2
    assert wanted == [ArrayForm((1, 6, 64), mx.float32), *features]
    assert first.expected(StageMessage([FEED], [[1] * 6])) == []
