"""Where ids, seeds and times come from; tests bring their own."""

from __future__ import annotations

import secrets
import time
import uuid
from typing import Protocol


class Origin(Protocol):
    """Everything that differs from run to run."""

    def new_id(self) -> str: ...
    def new_seed(self) -> int: ...
    def now(self) -> float:
        """Unix seconds."""
        ...

    def tick(self) -> float:
        """Seconds that never go back."""
        ...


class SystemOrigin:
    """Random ids and seeds, the machine's clocks."""

    def new_id(self) -> str:
        return uuid.uuid4().hex

    def new_seed(self) -> int:
        return secrets.randbits(31)

    def now(self) -> float:
        return time.time()

    def tick(self) -> float:
        return time.perf_counter()
