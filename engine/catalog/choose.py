"""Choose the best installed model for this machine's memory, or suggest one to download.

The functions only compare numbers from model cards. Nothing is loaded or downloaded.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

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
PURPOSES: Final = ("chat", "code")
RANKS: Final = ("best", "balanced", "fast")
_MODELS_FILE: Final = Path(__file__).parents[2] / "resources" / "models.toml"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSuggestion:
    """A model on Hugging Face that the app suggests for download."""

    repo_id: str
    size_bytes: int
    why: str  # one sentence for the user
    parameters: str = ""  # such as "35B-A3B"
    bits: int = 4
    context_len: int = 0  # number of tokens
    memory_gb: int = 8  # memory of the machines for which it is suggested
    purpose: str = "chat"  # one of PURPOSES
    rank: str = "best"  # one of RANKS
    suits: bool = True  # True if it is suggested for this machine


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
    """Return the models of resources/models.toml for a machine with this much memory.

    The row of the machine comes first: for chat, then for code, the best model first. The models of
    other rows follow, the smallest first. No model occurs twice.
    """
    try:
        content = tomllib.loads(_MODELS_FILE.read_text(encoding="utf-8"))
        models = {str(model["repo_id"]): model for model in content["models"]}
        rows = sorted(content["rows"], key=_from_gib, reverse=True)
        own = next(row for row in rows if _from_gib(row) << 30 <= memory_bytes)
        found: dict[str, ModelSuggestion] = {}
        for one in _cells(own, models, suits=True):
            found.setdefault(one.repo_id, one)
        others: dict[str, ModelSuggestion] = {}
        for row in rows:  # the row with the least memory that names a model is kept
            others |= {one.repo_id: one for one in _cells(row, models, suits=False)}
    except (OSError, LookupError, TypeError, ValueError, StopIteration) as error:
        raise BugError(f"{_MODELS_FILE} can’t be used: {error}.") from error
    rest = [one for repo_id, one in others.items() if repo_id not in found]
    return (*found.values(), *sorted(rest, key=lambda one: one.size_bytes))


def _from_gib(row: dict[str, object]) -> int:
    gib = row["from_gib"]
    if not isinstance(gib, int):
        raise TypeError(f"from_gib is no number: {gib}")
    return gib


def _cells(
    row: dict[str, object], models: dict[str, dict[str, object]], *, suits: bool
) -> Iterator[ModelSuggestion]:
    for purpose in PURPOSES:
        cells = cast("dict[str, str]", row.get(purpose, {}))
        for rank in RANKS:
            if rank in cells:
                yield _parse(models[cells[rank]], row["memory_gb"], purpose, rank, suits=suits)


def _parse(
    model: dict[str, object], memory_gb: object, purpose: str, rank: str, *, suits: bool
) -> ModelSuggestion:
    match model:
        case {
            "repo_id": str(repo_id),
            "parameters": str(parameters),
            "bits": int(bits),
            "context_len": int(context_len),
            "size_bytes": int(size),
            "why": str(why),
            "source": str(),
        } if isinstance(memory_gb, int):
            return ModelSuggestion(
                repo_id=repo_id,
                size_bytes=size,
                why=why,
                parameters=parameters,
                bits=bits,
                context_len=context_len,
                memory_gb=memory_gb,
                purpose=purpose,
                rank=rank,
                suits=suits,
            )
        case _:
            raise ValueError(f"a model is incomplete: {model}")
