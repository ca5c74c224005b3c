"""The source of random ids, seeds and times; tests replace it to get the same values each time."""

from __future__ import annotations

import secrets
import time
import uuid
from typing import Protocol


class Origin(Protocol):
    """The source of the values that differ from run to run: ids, seeds and clock times."""

    def new_id(self) -> str: ...
    def new_seed(self) -> int: ...
    def now(self) -> float:
        """Return the time of day in Unix seconds."""
        ...

    def tick(self) -> float:
        """Return the time of a monotonic clock in seconds, to measure durations."""
        ...


class SystemOrigin:
    """The real source: random ids and seeds, and the clocks of the machine."""

    def new_id(self) -> str:
        return uuid.uuid4().hex

    def new_seed(self) -> int:
        return secrets.randbits(31)

    def now(self) -> float:
        return time.time()

    def tick(self) -> float:
        return time.perf_counter()
