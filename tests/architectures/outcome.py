"""The outcome of one model type's trial, and its JSON form.

A trial (trial.py) tests whether the engine's answers are exact on one model type of mlx-lm. It runs
in a worker process, because some modules of mlx-lm end their process. The worker prints each
`TrialOutcome` as a line of JSON; `python -m tests.architectures` reads the lines and writes the
table in README.md from them (table.py).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Self


class Verdict(StrEnum):
    """The result of a trial. "Exact" is defined at the top of README.md, beside the table."""

    EXACT = "exact"
    NOT_EXACT = "not exact"
    NOT_RUN = "not run"  # mlx-lm's own generation fails on the tiny model


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialOutcome:
    """The result of one model type's trial.

    Each difference is the largest difference of any logit, relative to the standard deviation of
    the logits.
    """

    name: str  # name of the module in mlx_lm.models
    kv_bits: int | None = None  # None if K/V are not quantised
    verdict: Verdict = Verdict.NOT_EXACT
    reason: str = ""  # the cause of any verdict other than exact
    caches: tuple[str, ...] = ()  # class name of each layer's cache
    # Difference between the engine and a bare model that reads the prompt in one go.
    difference: float = 0.0
    # Difference between two runs of the bare model: the prompt in one pass, and in several.
    cut_difference: float = 0.0
    # Difference between two runs of the bare model, with plain and with quantised K/V.
    kv_difference: float = 0.0
    kv_bytes_per_token: int = 0
    point_bytes: int = 0  # size of the largest snapshot that the script left in the cache
    # True if the type has attention, but none of its caches can be cut at any token.
    is_opaque: bool = False
    num_kv: int = 0  # number of K/V caches, which can be cut at any token
    num_quantised: int = 0  # number of K/V caches that are quantised
    # Result of the trial in two stages (stages.py); "" if it was not run.
    two_stages: str = ""
    cpu_s: float = 0.0  # CPU seconds of the trial

    @property
    def depends_on_cuts(self) -> bool:
        """True if cutting the prompt elsewhere changes mlx-lm's logits by more than rounding."""
        return self.cut_difference > 1e-4

    def as_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        values: dict[str, Any] = json.loads(text)
        verdict, caches = Verdict(values.pop("verdict")), tuple(values.pop("caches"))
        return cls(verdict=verdict, caches=caches, **values)
