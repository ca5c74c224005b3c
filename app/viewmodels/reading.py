"""The time that the model needs to read tokens, from measured rates. No Qt, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from app.viewmodels import figures
from engine.types import Usage

LONG_S = 10.0  # reading that lasts longer than this is announced before a message is sent
# Announced if no rate is known yet: 10 s at 400 tokens per second.
LONG_TOKENS = 4_000
# Shorter prompts are fed in one pass, whose time is not proportional to their length.
MIN_MEASURED = 256


@dataclass(frozen=True, slots=True)
class ToRead:
    """The tokens that the next message makes the model read, and the rate measured in this run."""

    num_tokens: int
    tokens_per_s: float | None = None  # None before the first measurement

    @property
    def seconds(self) -> float | None:
        return None if self.tokens_per_s is None else self.num_tokens / self.tokens_per_s

    @property
    def is_long(self) -> bool:
        if self.seconds is None:
            return self.num_tokens >= LONG_TOKENS
        return self.seconds > LONG_S

    @property
    def time(self) -> str:
        """The time that reading takes, for example 42 s. Empty if it is unknown or short."""
        if self.seconds is None or not self.is_long:
            return ""
        return figures.seconds(self.seconds)


def prefill_rate(usage: Usage) -> float | None:
    """Return the tokens per second that a request fed, or None if it fed too few of them."""
    fed = usage.plan.replayed + usage.plan.read
    if fed < MIN_MEASURED or usage.prefill_ms <= 0 or not usage.output_tokens:
        return None
    return 1000 * fed / usage.prefill_ms
