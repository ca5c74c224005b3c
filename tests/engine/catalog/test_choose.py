from __future__ import annotations

import tomllib
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


MODELS_FILE = Path(__file__).parents[3] / "resources" / "models.toml"


@pytest.mark.parametrize(
    ("gib", "repo_id"),
    [
        (6, "mlx-community/Qwen3.5-2B-MLX-4bit"),
        (8, "mlx-community/Qwen3.5-4B-MLX-4bit"),
        (15.5, "mlx-community/Qwen3.5-9B-MLX-4bit"),  # 16 GB minus the system's share
        (24, "mlx-community/Qwen3.5-9B-MLX-4bit"),
        (32, "mlx-community/Qwen3.8-27B-4bit"),
        (64, "mlx-community/Qwen3.6-35B-A3B-4bit"),
        (512, "mlx-community/Qwen3.5-122B-A10B-4bit"),
    ],
)
def test_suggested_download_fits_the_memory(gib: float, repo_id: str):
    suggestion, *_ = suggest_downloads(int(gib * GIB))
    assert suggestion.repo_id == repo_id
    assert (suggestion.purpose, suggestion.rank) == ("chat", "best" if gib >= 7 else "fast")


@pytest.mark.parametrize("gib", [7.5, 15.5, 23, 31, 47, 62, 94, 126, 500])
def test_all_models_of_the_row_fit_and_come_first(gib: float):
    found = suggest_downloads(int(gib * GIB))
    suited = [one for one in found if one.suits]
    assert list(found[: len(suited)]) == suited
    assert 1 <= len(suited) <= 6
    for one in suited:
        size = card("x", one.size_bytes * 2 / 1e9)
        assert size.size_bytes == pytest.approx(one.size_bytes, abs=1)
        assert fits(size, int(gib * GIB)), one.repo_id
    assert len({one.repo_id for one in found}) == len(found)


def test_every_model_has_its_source_and_a_row():
    content = tomllib.loads(MODELS_FILE.read_text(encoding="utf-8"))
    named = {
        repo_id
        for row in content["rows"]
        for purpose in ("chat", "code")
        for repo_id in row.get(purpose, {}).values()
    }
    assert named == {model["repo_id"] for model in content["models"]}
    for model in content["models"]:
        name = model["repo_id"].partition("/")[2]
        assert model["source"].startswith("https://")
        assert name in model["source"]
    classes = {row["memory_gb"] for row in content["rows"]}
    assert classes >= {8, 16, 24, 32, 48, 64, 96}
