"""The words for the time that the model needs to read tokens. No Qt, no I/O."""

from __future__ import annotations

from dataclasses import dataclass

from app.viewmodels import figures
from app.words import costs as words, units
from engine.reading_pace import ReadingPace, ReadingTime
from engine.usage import PromptPlan, Usage

LONG_S = 10.0  # reading that lasts longer than this is announced before a message is sent
INSTANT_S = 0.25
# Announced if no rate is known yet: 10 s at 100 tokens per second. SmolLM2-135M on two busy CPU
# cores reads less than 60.
LONG_TOKENS = 1_000
# Fewer tokens on disk are restored at once. They are, for example, the last token of a chat in
# memory.
_MENTIONED_ON_DISK = 16
# A range is shown if its end is so many times its beginning.
_WIDE = 1.5
# Shorter prompts are fed in one pass, whose time is not proportional to their length, unless it is
# long.
MIN_MEASURED = 256
_MIN_MEASURED_MS = 1_000.0


@dataclass(frozen=True, slots=True)
class ToRead:
    """The tokens that the next message makes the model read, and the time that this takes."""

    num_tokens: int
    expected: ReadingTime | None = None  # None before the first measurement
    num_prompt: int = 0  # length of the prompt; 0 if it is not known
    num_on_disk: int = 0  # number of its other tokens whose state would be read from disk
    plan: PromptPlan | None = None  # the plan of the request; None if no request is known yet
    is_shared: bool = False  # True if other requests run, so that reading takes longer

    @property
    def restores_from_disk(self) -> bool:
        """True if enough tokens would be read from disk to be worth a word."""
        return self.num_on_disk >= _MENTIONED_ON_DISK

    @property
    def is_long(self) -> bool:
        if self.expected is None:
            return self.num_tokens >= LONG_TOKENS
        return self.expected.seconds > LONG_S

    @property
    def is_instant(self) -> bool:
        """True if reading takes no time that a person notices."""
        if self.restores_from_disk or self.is_shared:
            return False
        is_short = self.expected is not None and self.expected.most < INSTANT_S
        return is_short or self.num_tokens == 0

    @property
    def time(self) -> str:
        """The time that reading takes, for example 42 s. Empty if it is unknown or short."""
        if self.expected is None or not self.is_long:
            return ""
        return reading_time(self.expected)

    @property
    def about_time(self) -> str:
        """The time that reading takes: about 1 s, 2 to 4 min, 8 min or more; empty if unknown."""
        if self.expected is None:
            return ""
        time = reading_time(self.expected)
        return words.about(time) if _is_sure(self.expected) else time


def reading_time(expected: ReadingTime) -> str:
    """Format an expected time: 42 s, 2 to 4 min if measured rates vary, or 2 min or more."""
    if expected.is_open:
        return units.or_more(figures.seconds(expected.seconds))
    if _is_sure(expected):
        return figures.seconds(expected.seconds)
    return figures.seconds_between(expected.least, expected.most)


def _is_sure(expected: ReadingTime) -> bool:
    return not expected.is_open and expected.most < _WIDE * expected.least


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
    """Add the reading of a whole request to the measurements, unless it was too short to tell.

    Pictures take longer than text of the same length, so a prompt with pictures is not measured.
    """
    num_fed = 0 if usage.plan.picture_tokens else usage.plan.replayed + usage.plan.read
    is_long = num_fed >= MIN_MEASURED or usage.prefill_ms >= _MIN_MEASURED_MS
    if is_long and usage.output_tokens:
        start = usage.plan.restored
        pace.note(start, start + num_fed, usage.prefill_ms / 1000, now)
