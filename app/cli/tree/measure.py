"""Measurement of the chat-tree scenario: the cost of every step. Standard library only."""

from __future__ import annotations

import secrets
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Protocol

from app.cli.tree.scenario import Scenario, TreeStep


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCost:
    """The cost of one step. A figure is None if it was neither reported nor measured."""

    step: str
    chat: str
    thinking: bool
    prompt_tokens: int | None
    cached_tokens: int | None  # prompt tokens that were not fed, as the engine reports them
    # Prompt tokens that were fed although the engine had processed them, and all before them, as
    # prompt or as output.
    redo: int | None
    replayed: int | None  # fed tokens of messages that the chat had before the step
    output_tokens: int | None
    ttft_ms: float  # time to first token
    cold_ttft_ms: float | None = None  # time to first token if no token of the prompt is cached
    peak_bytes: int | None  # peak memory of the engine's process

    @property
    def ttft_share(self) -> float | None:
        """Time to first token, divided by the cold time (no token of the prompt cached)."""
        return self.ttft_ms / self.cold_ttft_ms if self.cold_ttft_ms else None

    @property
    def fed_tokens(self) -> int | None:
        """Number of prompt tokens that were fed, as the engine reports them."""
        if self.prompt_tokens is None or self.cached_tokens is None:
            return None
        return self.prompt_tokens - self.cached_tokens

    @property
    def fed_share(self) -> float | None:
        """Number of fed tokens, divided by the number of prompt tokens."""
        if self.prompt_tokens is None or self.fed_tokens is None:
            return None
        return self.fed_tokens / self.prompt_tokens

    @property
    def hidden_share(self) -> float | None:
        """Share of the cold time that the fed tokens do not explain.

        A value well above 0 means that tokens reported as cached were fed after all.
        """
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
    """The sums over all steps.

    A step without a figure adds nothing to its sum: a stopped stream reports no figures.
    """

    steps: int
    prompt_tokens: int
    fed_tokens: int | None
    redo: int | None
    replayed: int | None
    ttft_share: float | None
    worst_hidden_share: float | None
    peak_bytes: int | None


class TreeEngine(Protocol):
    """An engine on which the scenario can be played."""

    def warm_up(self) -> None:
        """Answer an unrelated request, because the first request compiles and loads."""
        ...

    def play(self, step: TreeStep) -> StepCost:
        """Generate the reply of a step and keep it, because later steps follow it."""
        ...

    def cold_ttft_ms(self, step: TreeStep, nonce: str) -> float:
        """Send the prompt of a step again and return the time to first token.

        Called after all steps. `nonce` becomes the first word of the prompt, so that no cached
        token matches. The reply is not kept.
        """
        ...


def measure(
    engine: TreeEngine, scenario: Scenario, *, cold_times: int, cold_every: int = 1
) -> Iterator[StepCost]:
    """Play all steps, then yield the cost of each one.

    The prompt of every cold_every-th step is also sent cold_times times with no token cached. The
    median of these times is the cold time of the step.
    """
    engine.warm_up()
    played = [(step, engine.play(step)) for step in scenario.steps]
    for index, (step, cost) in enumerate(played):
        times = 0 if index % cold_every else cold_times
        cold = [engine.cold_ttft_ms(step, secrets.token_hex(4)) for _ in range(times)]
        yield replace(cost, cold_ttft_ms=statistics.median(cold) if cold else None)


def total(costs: Iterable[StepCost]) -> TotalCost:
    """Return the sums over the steps of one run."""
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
