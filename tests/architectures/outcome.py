"""What came of one model type, as one process says it to another."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self


class Verdict(StrEnum):
    EXACT = "exact"
    NOT_EXACT = "not exact"
    NOT_RUN = "not run"  # mlx-lm's own generation fails on the tiny model


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutcome:
    """One model type's trial. Differences are relative to the logits' standard deviation."""

    name: str
    kv_bits: int | None = None
    verdict: Verdict = Verdict.NOT_EXACT
    reason: str = ""  # why not exact, or not run
    caches: tuple[str, ...] = ()  # the class of every layer's cache
    difference: float = 0.0  # at most, to a naive run that reads the prompt in one go
    cut_difference: float = 0.0  # of the bare model to itself, its prompt cut otherwise
    kv_difference: float = 0.0  # of the bare model to itself, its K/V quantised
    kv_bytes_per_token: int = 0
    point_bytes: int = 0  # the largest snapshot of the script
    is_opaque: bool = False  # it attends, and none of its cache can be cut at any token
    num_kv: int = 0  # caches that can be cut at any token
    num_quantised: int = 0  # those of them that are quantised
    cpu_s: float = 0.0

    @property
    def depends_on_cuts(self) -> bool:
        """Whether mlx-lm's own model gives more than rounding when a prompt is cut otherwise."""
        return self.cut_difference > 1e-4

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        values: dict[str, Any] = json.loads(text)
        verdict, caches = Verdict(values.pop("verdict")), tuple(values.pop("caches"))
        return cls(verdict=verdict, caches=caches, **values)
