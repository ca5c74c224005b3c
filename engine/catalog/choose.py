"""Choose the best installed model for this machine's memory, or suggest one to download.

The functions only compare numbers from model cards. Nothing is loaded or downloaded.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine.catalog.card import ModelCard
from engine.errors import BugError

# Share of the machine's memory for a model; the rest is for the system and other apps.
_MEMORY_SHARE: Final = 0.7
_CACHE_BYTES: Final = 1 << 30  # bytes that must remain for the cached state of conversations
# Bytes for weights and intermediate results, divided by the bytes of the weights.
_WORKING_SHARE: Final = 1.2
_FLOAT32_BYTES: Final = 4
# Models with at least 90 % of the largest model's parameters count as equally large.
_ALIKE: Final = 0.9
_MAX_SUGGESTED: Final = 3
_MODELS_FILE: Final = Path(__file__).parents[2] / "resources" / "models.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSuggestion:
    """A model on Hugging Face that the app suggests for download."""

    name: str
    repo_id: str
    size_bytes: int
    from_bytes: int  # bytes of memory that a machine should have for this model
    why: str  # one sentence for the user


def packed_bytes(card: ModelCard) -> float:
    """Return the bytes that a model's weights take on a GPU, where they stay quantised."""
    return card.size_bytes


def float32_bytes(card: ModelCard) -> float:
    """Return the bytes that a model's weights take on a CPU, where they are stored as float32."""
    return card.num_parameters * _FLOAT32_BYTES


def fits(
    card: ModelCard, memory_bytes: int, weight_bytes: Callable[[ModelCard], float] = packed_bytes
) -> bool:
    return fits_bytes(round(weight_bytes(card)), memory_bytes)


def best_card(
    cards: Iterable[ModelCard],
    memory_bytes: int,
    weight_bytes: Callable[[ModelCard], float] = packed_bytes,
) -> ModelCard | None:
    """Return the best model that fits into memory, or None if there is no usable model.

    A model with more parameters is better. Among models of about the same size, a hybrid model is
    better. The starter model is small enough for every machine. It is returned only if no other
    model fits.
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


def fits_bytes(size_bytes: int, memory_bytes: int) -> bool:
    """Return True if weights of this size fit into the memory of a machine, with some chats."""
    return size_bytes * _WORKING_SHARE + _CACHE_BYTES <= memory_bytes * _MEMORY_SHARE


def suggest_downloads(memory_bytes: int) -> tuple[ModelSuggestion, ...]:
    """Return the models of resources/models.toml for a machine with this much memory, best first.

    There is at least one, and there are at most three.
    """
    try:
        content = tomllib.loads(_MODELS_FILE.read_text(encoding="utf-8"))
        rows = [_parse(row) for row in content["suggestions"]]
    except (OSError, LookupError, TypeError, ValueError) as error:
        raise BugError(f"{_MODELS_FILE} can’t be used: {error}.") from error
    suitable = [row for row in rows if row.from_bytes <= memory_bytes]
    return tuple(sorted(suitable, key=lambda row: row.from_bytes, reverse=True)[:_MAX_SUGGESTED])


def _parse(row: dict[str, object]) -> ModelSuggestion:
    match row:
        case {
            "from_gib": int(gib),
            "name": str(name),
            "repo_id": str(repo_id),
            "size_bytes": int(size),
            "why": str(why),
        }:
            return ModelSuggestion(
                name=name, repo_id=repo_id, size_bytes=size, from_bytes=gib << 30, why=why
            )
        case _:
            raise ValueError(f"a suggestion is incomplete: {row}")
