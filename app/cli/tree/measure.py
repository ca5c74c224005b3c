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
    # Number of prompt tokens that were not fed, according to the engine's report.
    cached_tokens: int | None
    # Number of prompt tokens that the engine fed although it had processed the same tokens, after
    # the same prefix, before (as prompt or as output).
    redo: int | None
    replayed: int | None  # number of tokens that were fed for messages older than the step
    output_tokens: int | None
    ttft_ms: float  # time to first token
    cold_ttft_ms: float | None = None  # time to first token if no part of the prompt is cached
    peak_bytes: int | None  # peak memory of the engine's process

    @property
    def ttft_share(self) -> float | None:
        """`ttft_ms` divided by `cold_ttft_ms`, the time with nothing in the cache."""
        return self.ttft_ms / self.cold_ttft_ms if self.cold_ttft_ms else None

    @property
    def fed_tokens(self) -> int | None:
        """Number of prompt tokens that were fed, according to the engine's report."""
        if self.prompt_tokens is None or self.cached_tokens is None:
            return None
        return self.prompt_tokens - self.cached_tokens

    @property
    def fed_share(self) -> float | None:
        """Number of fed prompt tokens, divided by the number of all prompt tokens."""
        if self.prompt_tokens is None or self.fed_tokens is None:
            return None
        return self.fed_tokens / self.prompt_tokens

    @property
    def hidden_share(self) -> float | None:
        """`ttft_share` minus `fed_share`: the part of the time that fed tokens do not explain.

        A value well above 0 means that the engine fed tokens that it reported as cached.
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
    """The totals of all steps.

    If a figure of a step is None, the total leaves it out. A stopped stream, for example, reports
    no figures.
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
        """Answer an unrelated request, so that the steps do not include compiling and loading."""
        ...

    def play(self, step: TreeStep) -> StepCost:
        """Generate the reply of a step. Keep the reply for the prompts of later steps."""
        ...

    def cold_ttft_ms(self, step: TreeStep, nonce: str) -> float:
        """Send the prompt of a step again and return the time to first token without cached tokens.

        measure() calls this method after all steps. `nonce` becomes the first word of the prompt,
        so that no cached token matches. The reply is not kept.
        """
        ...


def measure(
    engine: TreeEngine, scenario: Scenario, *, cold_times: int, cold_every: int = 1
) -> Iterator[StepCost]:
    """Play all steps, then yield the cost of each step.

    The cold time of a step is the median time to first token of `cold_times` requests that find
    nothing in the cache. With cold_every=n, only every n-th step gets a cold time.
    """
    engine.warm_up()
    played = [(step, engine.play(step)) for step in scenario.steps]
    for index, (step, cost) in enumerate(played):
        times = 0 if index % cold_every else cold_times
        cold = [engine.cold_ttft_ms(step, secrets.token_hex(4)) for _ in range(times)]
        yield replace(cost, cold_ttft_ms=statistics.median(cold) if cold else None)


def total(costs: Iterable[StepCost]) -> TotalCost:
    """Add up the costs of all steps of one run."""
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
