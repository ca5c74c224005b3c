"""Faults in the code for pictures, planted one at a time: the check of an answer reports each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.cache import hot
from engine.picture_ids import picture_ids, position_shift
from engine.questions import CheckResult
from engine.types import Picture
from engine.vision import seeing
from engine.vision.pixels import read_pixels
from engine.vision.seeing import Vision
from engine.vision.tower import EncodedPicture
from tests.fakes.asking import reply_of
from tests.fakes.seeing_engine import OpenSeeing, asked, seen, verified
from tests.fakes.seeing_model import write_picture


def is_right(result: CheckResult) -> bool:
    return result.prompt_equal and result.equal and result.replay_difference == 0


def test_wrong_shift_after_a_restore(
    open_seeing: OpenSeeing, cat: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_seeing()
    first = seen("The quick brown fox", cat)
    finished, _ = asked(client, [first])

    def off_by_one(token_ids: Sequence[int]) -> int:
        shift = position_shift(token_ids)
        return shift + 1 if shift else 0

    monkeypatch.setattr(hot, "position_shift", off_by_one)
    _, result = verified(client, [first, reply_of(finished), seen("Of course")], chat="B")

    assert not is_right(result)


def test_truncated_hash(
    open_seeing: OpenSeeing, cat: Picture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def truncated(identity: str, num_tokens: int, num_positions: int) -> tuple[int, ...]:
        return picture_ids(identity[:0], num_tokens, num_positions)

    monkeypatch.setattr(seeing, "picture_ids", truncated)
    client = open_seeing()
    other = write_picture(tmp_path / "pictures", cat.width, cat.height, seed=5)
    asked(client, [seen("The quick brown fox", cat)])

    _, result = verified(client, [seen("The quick brown fox", other)])

    assert not is_right(result)


def test_embeddings_of_another_picture(
    open_seeing: OpenSeeing, cat: Picture, dog: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_seeing()
    take, mixed_up = Vision.take, [True]

    def taken(vision: Vision, token_ids: Sequence[int]) -> EncodedPicture:
        encoded = take(vision, token_ids)
        if not mixed_up:
            return encoded
        mixed_up.clear()
        return EncodedPicture(encoded.embeddings[:, ::-1], encoded.grid)

    monkeypatch.setattr(Vision, "take", taken)
    _, result = verified(client, [seen("The quick brown fox", cat, dog)])

    assert not is_right(result)


def test_features_for_the_first_layers_of_another_picture(
    open_seeing: OpenSeeing, cat: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_seeing("qwen3_vl")
    take, mixed_up = Vision.take, [True]

    def taken(vision: Vision, token_ids: Sequence[int]) -> EncodedPicture:
        encoded = take(vision, token_ids)
        if not mixed_up:
            return encoded
        mixed_up.clear()
        features = tuple(one[::-1] for one in encoded.features)
        return EncodedPicture(encoded.embeddings, encoded.grid, features)

    monkeypatch.setattr(Vision, "take", taken)
    _, result = verified(client, [seen("The quick brown fox", cat)])

    assert not is_right(result)


def test_pixels_of_another_picture(
    open_seeing: OpenSeeing, cat: Picture, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_seeing()
    turned = [True]

    def read(*arguments: Any) -> np.ndarray:
        pixels = read_pixels(*arguments)
        if not turned:
            return pixels
        turned.clear()
        return pixels[:, ::-1]

    monkeypatch.setattr(seeing, "read_pixels", read)
    _, result = verified(client, [seen("The quick brown fox", cat)])

    assert not is_right(result)
