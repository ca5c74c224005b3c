"""Speeds that decide if a request reads state from disk or feeds tokens. Learned on this machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

# Weight of the newest measurement.
_ALPHA = 0.3


@dataclass(slots=True)
class Rates:
    """Bytes per second from disk, and tokens per second of prefill."""

    disk_bytes_s: float = 500e6
    tokens_s: float = 500.0

    @classmethod
    def saved(cls, extra: Mapping[str, object]) -> Self:
        """Return the rates in a saved index. Without valid ones, return the defaults."""
        match extra.get("rates"):
            case [float(disk), float(tokens)] if disk > 0 and tokens > 0:
                return cls(disk, tokens)
            case _:
                return cls()

    def as_json(self) -> dict[str, object]:
        return {"rates": [self.disk_bytes_s, self.tokens_s]}

    def note_disk(self, nbytes: int, seconds: float) -> None:
        """Learn from one request. Small reads are ignored: they measure only the start of a read."""
        if nbytes >= 1 << 20 and seconds > 0:
            self.disk_bytes_s += _ALPHA * (nbytes / seconds - self.disk_bytes_s)

    def note_tokens(self, num_tokens: int, seconds: float) -> None:
        """Learn from the prefill of one request."""
        if num_tokens >= 64 and seconds > 0:
            self.tokens_s += _ALPHA * (num_tokens / seconds - self.tokens_s)
