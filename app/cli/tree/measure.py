"""Plays the scenario on one engine and says what every step cost. Standard library only."""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from app.cli.tree.scenario import Scenario, TreeStep


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """What one step cost. None: the engine did not say, or it was not measured.

    redo: prompt tokens that were fed although the engine had processed them, and all before them, as
    prompt or as output. replayed: fed tokens of messages that this chat had before the step. Other fed
    tokens are new. cold_ttft_ms: time to first token of the same prompt when nothing of it is known.
    """

    step: str
    chat: str
    thinking: bool
    prompt_tokens: int | None
    cached_tokens: int | None
    redo: int | None
    replayed: int | None
    output_tokens: int | None
    ttft_ms: float
    cold_ttft_ms: float | None = None
    peak_bytes: int | None

    @property
    def ttft_share(self) -> float | None:
        """Time to first token by that of the cold prompt."""
        return self.ttft_ms / self.cold_ttft_ms if self.cold_ttft_ms else None

    @property
    def fed_tokens(self) -> int | None:
        """Prompt tokens that were not restored, as the engine reports them."""
        if self.prompt_tokens is None or self.cached_tokens is None:
            return None
        return self.prompt_tokens - self.cached_tokens

    @property
    def fed_share(self) -> float | None:
        """Fed tokens by prompt tokens."""
        if self.prompt_tokens is None or self.fed_tokens is None:
            return None
        return self.fed_tokens / self.prompt_tokens

    @property
    def hidden_share(self) -> float | None:
        """Time that the fed tokens don't explain: well above 0, tokens called cached were read."""
        if self.ttft_share is None or self.fed_share is None:
            return None
        return self.ttft_share - self.fed_share

    def as_json(self) -> dict[str, object]:
        values: dict[str, object] = asdict(self)
        return values | {
            "ttft_ms": _rounded(self.ttft_ms, 3),
            "cold_ttft_ms": _rounded(self.cold_ttft_ms, 3),
            "ttft_share": _rounded(self.ttft_share, 4),
            "fed_share": _rounded(self.fed_share, 4),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalCost:
    """All steps together. A step whose figures are unknown (a stopped stream reports none) counts nothing."""

    steps: int
    prompt_tokens: int
    fed_tokens: int | None
    redo: int | None
    replayed: int | None
    ttft_share: float | None
    worst_hidden_share: float | None
    peak_bytes: int | None


class TreeEngine(Protocol):
    """An engine that the scenario is played on."""

    def warm_up(self) -> None:
        """Answer something that has nothing to do with the scenario: a first request compiles and loads."""
        ...

    def play(self, step: TreeStep) -> StepCost:
        """Ask for the step's reply and keep it: later steps follow it."""
        ...

    def cold_ttft_ms(self, step: TreeStep, nonce: str) -> float:
        """Ask again after all steps, with nonce as the prompt's first word; nothing is kept."""
        ...


def measure(
    engine: TreeEngine, scenario: Scenario, *, cold_times: int, cold_every: int = 1
) -> Iterator[StepCost]:
    """The cost of each step, once all are played; cold_times cold requests for every cold_every-th."""
    engine.warm_up()
    played = [(step, engine.play(step)) for step in scenario.steps]
    for index, (step, cost) in enumerate(played):
        times = 0 if index % cold_every else cold_times
        cold = [engine.cold_ttft_ms(step, secrets.token_hex(4)) for _ in range(times)]
        yield replace(cost, cold_ttft_ms=statistics.median(cold) if cold else None)


def total(costs: Iterable[StepCost]) -> TotalCost:
    """The sums of a run."""
    costs = list(costs)
    timed = [cost for cost in costs if cost.cold_ttft_ms is not None]
    ttft_ms, cold_ms = (sum(c.ttft_ms for c in timed), sum(c.cold_ttft_ms or 0 for c in timed))
    hidden = [cost.hidden_share for cost in timed if cost.hidden_share is not None]
    return TotalCost(
        steps=len(costs),
        prompt_tokens=sum(cost.prompt_tokens or 0 for cost in costs),
        fed_tokens=_sum(cost.fed_tokens for cost in costs),
        redo=_sum(cost.redo for cost in costs),
        replayed=_sum(cost.replayed for cost in costs),
        ttft_share=_rounded(ttft_ms / cold_ms if timed else None, 4),
        worst_hidden_share=_rounded(max(hidden, default=None), 4),
        peak_bytes=max((cost.peak_bytes for cost in costs if cost.peak_bytes), default=None),
    )


def _sum(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
