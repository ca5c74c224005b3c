"""Which model to take: the best that is here, and what to download when there is none. Pure decisions."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.catalog.card import ModelCard
from engine.errors import BugError

_MEMORY_SHARE: Final = 0.7  # the rest is for the system and other apps
_CACHE_BYTES: Final = 1 << 30  # room for conversations, the least that makes sense
_WORKING_SHARE: Final = 1.2  # weights and what computing with them needs
_FLOAT32_BYTES: Final = 4
_ALIKE: Final = 0.9  # a model of 90 % of the largest one's parameters is as large
_MODELS_FILE: Final = Path(__file__).parents[2] / "resources" / "models.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSuggestion:
    """A model worth downloading; command is a line for a terminal."""

    name: str
    repo_id: str
    size_bytes: int

    @property
    def command(self) -> str:
        return f"hf download {self.repo_id}"


def packed_bytes(card: ModelCard) -> float:
    """What a model's weights take where they stay quantised: on a GPU."""
    return card.size_bytes


def float32_bytes(card: ModelCard) -> float:
    """What a model's weights take where they are de-quantised: on a CPU device."""
    return card.num_parameters * _FLOAT32_BYTES


def fits(
    card: ModelCard, memory_bytes: int, weight_bytes: Callable[[ModelCard], float] = packed_bytes
) -> bool:
    return weight_bytes(card) * _WORKING_SHARE + _CACHE_BYTES <= memory_bytes * _MEMORY_SHARE


def best_card(
    cards: Iterable[ModelCard],
    memory_bytes: int,
    weight_bytes: Callable[[ModelCard], float] = packed_bytes,
) -> ModelCard | None:
    """The usable model with the most parameters that fits; of those of one size, a hybrid.

    The starter model only when nothing else will do; it is so small that it always fits.
    """
    usable = [card for card in cards if card.usable]
    fitting = [
        card for card in usable if not card.is_starter and fits(card, memory_bytes, weight_bytes)
    ]
    if not fitting:
        return next((card for card in usable if card.is_starter), None)
    largest = max(card.num_parameters for card in fitting)
    alike = [card for card in fitting if card.num_parameters >= _ALIKE * largest]
    return max(alike, key=lambda card: (card.hybrid, card.num_parameters, card.bits, card.name))


def suggest_download(memory_bytes: int) -> ModelSuggestion:
    """The model of resources/models.toml that is meant for this much memory."""
    try:
        content = tomllib.loads(_MODELS_FILE.read_text(encoding="utf-8"))
        rows = [_parse(row) for row in content["suggestions"]]
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise BugError(f"{_MODELS_FILE} can’t be used: {error}.") from error
    suitable = [row for row in rows if row.from_bytes <= memory_bytes]
    return max(suitable, key=lambda row: row.from_bytes).suggestion


@dataclass(frozen=True, slots=True)
class _SuggestionRow:
    from_bytes: int
    suggestion: ModelSuggestion


def _parse(row: dict[str, object]) -> _SuggestionRow:
    match row:
        case {
            "from_gib": int(gib),
            "name": str(name),
            "repo_id": str(repo_id),
            "size_bytes": int(size),
        }:
            return _SuggestionRow(
                gib << 30, ModelSuggestion(name=name, repo_id=repo_id, size_bytes=size)
            )
        case _:
            raise ValueError(f"a suggestion is incomplete: {row}")
