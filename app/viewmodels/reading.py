"""The words for the time that the model needs to read tokens. No Qt, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from app.viewmodels import figures
from app.words import units
from engine.reading_pace import ReadingPace, ReadingTime
from engine.usage import Usage

LONG_S = 10.0  # reading that lasts longer than this is announced before a message is sent
# Announced if no rate is known yet: 10 s at 100 tokens per second. SmolLM2-135M on two busy CPU
# cores reads less than 60.
LONG_TOKENS = 1_000
# A range is shown if its end is so many times its beginning.
_WIDE = 1.5
# Shorter prompts are fed in one pass, whose time is not proportional to their length.
MIN_MEASURED = 256


@dataclass(frozen=True, slots=True)
class ToRead:
    """The tokens that the next message makes the model read, and the time that this takes."""

    num_tokens: int
    expected: ReadingTime | None = None  # None before the first measurement

    @property
    def is_long(self) -> bool:
        if self.expected is None:
            return self.num_tokens >= LONG_TOKENS
        return self.expected.seconds > LONG_S

    @property
    def time(self) -> str:
        """The time that reading takes, for example 42 s. Empty if it is unknown or short."""
        if self.expected is None or not self.is_long:
            return ""
        return reading_time(self.expected)


def reading_time(expected: ReadingTime) -> str:
    """Format an expected time: 42 s, 2 to 4 min if measured rates vary, or 2 min or more."""
    if expected.is_open:
        return units.or_more(figures.seconds(expected.seconds))
    if expected.most < _WIDE * expected.least:
        return figures.seconds(expected.seconds)
    return figures.seconds_between(expected.least, expected.most)


def saved_ms(usage: Usage, pace: ReadingPace) -> float:
    """Return the milliseconds of reading that the restored tokens of a request spared.

    Tokens that were read ahead do not count: they were read. Tokens count up to the position that
    the measurements reach.

    Returns:
        The time that reading the tokens takes, less that of restoring them. 0 if no rate was
        measured, or if no word was written.
    """
    num_kept = usage.plan.restored - usage.plan.restored_ahead
    needed = pace.time(0, min(num_kept, pace.reach)) if usage.output_tokens else None
    return 0.0 if needed is None else max(0.0, needed.seconds * 1e3 - usage.restore_ms)


def note_usage(pace: ReadingPace, usage: Usage, now: float) -> None:
    """Add the reading of a whole request to the measurements, unless it was too short."""
    num_fed = usage.plan.replayed + usage.plan.read
    if num_fed >= MIN_MEASURED and usage.output_tokens:
        start = usage.plan.restored
        pace.note(start, start + num_fed, usage.prefill_ms / 1000, now)
