"""The time that reading takes, from measurements of one model. No thread, no mlx.

Reading slows down with the length of a prompt, because a token attends to all tokens before it. So
the seconds per token are a straight line over the position of the token, fitted to all
measurements. Other programs slow the machine down for a while. So the line is multiplied by a
factor, fitted to the newest measurements. A measurement counts by its tokens: a pass over a few
tokens takes nearly as long as one over many.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

_MAX_MEASURED = 64
_MIN_TOKENS = 16  # fewer measured tokens give no estimate
# Weight of a measurement in the factor, compared with a newer one, and with one 30 s newer.
_KEPT, _KEPT_AFTER_30_S = 0.7, 0.5
# The line has a slope only if the measurements are at least this many tokens apart. Differences
# between nearer ones come from other programs. Of 26 random reads of SmolLM2-135M, 23 took within
# 30 % of the estimate, and with 2,048 in its place 16.
_MIN_SPAN = 512
# Tokens that end further before all measured ones get no estimate.
_MAX_BEFORE = 2048
# The line is continued up to this multiple of the last token that was measured.
_MAX_REACH = 4


@dataclass(frozen=True, slots=True)
class ReadingTime:
    """The expected seconds of reading, and the range that recent measurements suggest."""

    seconds: float
    least: float
    most: float
    # True if the prompt is so much longer than all measured ones that it may take longer.
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class MeasuredReading:
    """A measurement: the tokens [start, end) of a prompt were read within some seconds."""

    start: int
    end: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Measured:
    start: int
    middle: float  # position of the middle token
    end: int
    num_tokens: int
    token_s: float  # seconds per token
    at: float  # time of the measurement in seconds


class ReadingPace:
    """The newest measurements of one model."""

    def __init__(self) -> None:
        self._measured: deque[_Measured] = deque(maxlen=_MAX_MEASURED)

    def note(self, start: int, end: int, seconds: float, now: float) -> None:
        """Add a measurement: the tokens [start, end) were read within some seconds."""
        count = end - start
        if count > 0 and seconds > 0:
            measured = _Measured(start, (start + end) / 2, end, count, seconds / count, now)
            self._measured.append(measured)

    @property
    def measured(self) -> tuple[MeasuredReading, ...]:
        """The measurements, oldest first."""
        return tuple(
            MeasuredReading(one.start, one.end, one.token_s * one.num_tokens)
            for one in self._measured
        )

    @property
    def reach(self) -> int:
        """Position up to which the measurements tell the time of tokens. 0 without measurements."""
        return _MAX_REACH * max((one.end for one in self._measured), default=0)

    def time(self, start: int, end: int) -> ReadingTime | None:
        """Return the time that the tokens [start, end) take.

        None if too few were measured, or only tokens far behind them, which take longer.
        """
        if sum(one.num_tokens for one in self._measured) < _MIN_TOKENS:
            return None
        if end + _MAX_BEFORE < min(one.start for one in self._measured):
            return None
        at_0, slope = self._line()
        ratios = [one.token_s / (at_0 + slope * one.middle) for one in self._measured]
        weights = self._weights()
        factor = _mean(ratios, weights)
        spread = math.exp(_mean([abs(math.log(one / factor)) for one in ratios], weights))
        middle = min((start + end) / 2, self.reach)
        seconds = (end - start) * (at_0 + slope * middle) * factor
        return ReadingTime(seconds, seconds / spread, seconds * spread, is_open=end > self.reach)

    def _line(self) -> tuple[float, float]:
        """Return the seconds of a token at position 0, and what each position adds."""
        counts = [one.num_tokens for one in self._measured]
        middle = _mean([one.middle for one in self._measured], counts)
        mean = _mean([one.token_s for one in self._measured], counts)
        offsets = [one.middle - middle for one in self._measured]
        if max(offsets) - min(offsets) < _MIN_SPAN:
            return mean, 0.0
        times = [offset * one.token_s for offset, one in zip(offsets, self._measured, strict=True)]
        slope = _mean(times, counts) / _mean([offset**2 for offset in offsets], counts)
        # No token takes less time than one before it, and none takes less than nothing.
        slope = min(max(0.0, slope), mean / middle)
        return mean - slope * middle, slope

    def _weights(self) -> list[float]:
        newest = self._measured[-1].at
        ranks = range(len(self._measured) - 1, -1, -1)
        return [
            one.num_tokens * _KEPT**rank * _KEPT_AFTER_30_S ** ((newest - one.at) / 30)
            for rank, one in zip(ranks, self._measured, strict=True)
        ]


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    total = sum(weights)
    return sum(weight * one for weight, one in zip(weights, values, strict=True)) / total
