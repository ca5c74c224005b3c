"""Durations learned on this machine: they decide if state is read from disk or tokens are fed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

_BYTE_S = 1 / 500e6
_TOKEN_S = 1 / 500
# Weights of these defaults and of saved rates: as if so many bytes and tokens had been measured.
_DEFAULT_BYTES = 1 << 22
_DEFAULT_TOKENS = 64.0
# Share of the weight of all earlier measurements that remains after each new one.
_KEPT = 0.7


@dataclass(slots=True)
class Rates:
    """Seconds per byte from disk, and seconds per token of prefill."""

    byte_s: float = _BYTE_S
    token_s: float = _TOKEN_S
    _num_bytes: float = _DEFAULT_BYTES  # weight of byte_s
    _num_tokens: float = _DEFAULT_TOKENS  # weight of token_s

    @classmethod
    def saved(cls, extra: Mapping[str, object]) -> Self:
        """Return the rates in a saved index. Without valid ones, return the defaults.

        The rate of the disk is moved halfway to the default. Otherwise a disk that was slow once
        would never be used, and so never be measured again.
        """
        match extra.get("seconds"):
            case [float(byte_s), float(token_s)] if byte_s > 0 and token_s > 0:
                return cls(math.sqrt(byte_s * _BYTE_S), token_s)
            case _:
                return cls()

    def as_json(self) -> dict[str, object]:
        return {"seconds": [self.byte_s, self.token_s]}

    def seconds(self, nbytes: int, num_tokens: int) -> float:
        """Return the expected duration of reading bytes from disk and feeding tokens."""
        return nbytes * self.byte_s + num_tokens * self.token_s

    def note_disk(self, nbytes: int, seconds: float) -> None:
        """Learn from one request. Ignore small reads: they measure only the start of a read."""
        if nbytes >= 1 << 20 and seconds > 0:
            self.byte_s, self._num_bytes = _mean(self.byte_s, self._num_bytes, seconds, nbytes)

    def note_tokens(self, num_tokens: int, seconds: float) -> None:
        """Learn from the prefill of one request."""
        if num_tokens >= 64 and seconds > 0:
            self.token_s, self._num_tokens = _mean(
                self.token_s, self._num_tokens, seconds, num_tokens
            )


def _mean(rate: float, weight: float, seconds: float, amount: int) -> tuple[float, float]:
    """Return a rate and its weight after a new measurement, which weighs as much as its amount."""
    weight *= _KEPT
    total = weight + amount
    return (rate * weight + seconds) / total, total
