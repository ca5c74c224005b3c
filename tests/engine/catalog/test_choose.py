from __future__ import annotations

from pathlib import Path

import pytest

from engine.catalog.card import ModelCard, ModelSource
from engine.catalog.choose import best_card, fits, float32_bytes, suggest_downloads
from engine.errors import ModelFolderError

GIB = 1 << 30


def card(
    name: str,
    billions: float,
    *,
    bits: float = 4,
    hybrid: bool = False,
    source: ModelSource = ModelSource.HF_CACHE,
    broken: bool = False,
) -> ModelCard:
    return ModelCard(
        path=Path("/models", name),
        name=name,
        source=source,
        model_type="llama",
        num_parameters=int(billions * 1e9),
        bits=bits,
        size_bytes=int(billions * 1e9 * bits / 8),
        context_len=4096,
        text_only=False,
        hybrid=hybrid,
        problem=ModelFolderError("broken").problem if broken else None,
    )


STARTER = card("SmolLM2 135M", 0.135, source=ModelSource.STARTER)


def chosen(*cards: ModelCard, gib: int = 16) -> str | None:
    best = best_card(cards, gib * GIB)
    return best and best.name


def test_largest_model_that_fits_is_chosen():
    cards = [card("small", 4), card("middle", 9), card("large", 27)]
    assert chosen(*cards, gib=8) == "small"
    assert chosen(*cards, gib=16) == "middle"
    assert chosen(*cards, gib=32) == "large"


def test_hybrid_model_is_chosen_among_models_of_similar_size():
    cards = [card("plain", 8.2), card("hybrid", 8.0, hybrid=True), card("small", 4, hybrid=True)]
    assert chosen(*cards) == "hybrid"
    assert chosen(card("plain", 9), card("hybrid", 8.0, hybrid=True)) == "plain"


def test_model_with_more_bits_is_chosen_between_equal_sizes():
    assert chosen(card("coarse", 4, bits=4), card("fine", 4, bits=8)) == "fine"


def test_broken_model_is_never_chosen():
    assert chosen(card("broken", 9, broken=True), card("good", 4)) == "good"
    assert chosen(card("broken", 9, broken=True)) is None


def test_starter_is_chosen_only_without_another_usable_model():
    assert chosen(STARTER, card("tiny", 0.1)) == "tiny"
    assert chosen(STARTER, card("broken", 4, broken=True)) == "SmolLM2 135M"
    assert chosen(STARTER, card("huge", 122)) == "SmolLM2 135M"
    assert chosen(card("huge", 122)) is None
    assert chosen() is None


def test_cpu_device_needs_room_for_float32_weights():
    nine = card("nine", 9)
    assert fits(nine, 24 * GIB)
    assert not fits(nine, 24 * GIB, float32_bytes)
    assert best_card([nine, card("two", 2)], 24 * GIB, float32_bytes) == card("two", 2)


@pytest.mark.parametrize(
    ("gib", "repo_id"),
    [
        (6, "mlx-community/Qwen3.5-2B-MLX-4bit"),
        (8, "mlx-community/Qwen3.5-4B-MLX-4bit"),
        (15.5, "mlx-community/Qwen3.5-9B-MLX-4bit"),  # 16 GB minus the system's share
        (24, "mlx-community/Qwen3.5-9B-MLX-4bit"),
        (32, "mlx-community/Qwen3.5-27B-4bit"),
        (64, "mlx-community/Qwen3.5-35B-A3B-4bit"),
        (512, "mlx-community/Qwen3.5-35B-A3B-4bit"),
    ],
)
def test_suggested_download_fits_the_memory(gib: float, repo_id: str):
    suggestion, *others = suggest_downloads(int(gib * GIB))
    assert suggestion.repo_id == repo_id
    assert all(one.from_bytes < suggestion.from_bytes for one in others)
    assert len(others) <= 2
    suggested = card("x", suggestion.size_bytes * 2 / 1e9)
    assert suggested.size_bytes == suggestion.size_bytes
    assert fits(suggested, int(gib * GIB))
