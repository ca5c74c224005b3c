"""Memory estimates: the bytes that a request needs, and whether the device can give them."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass

from engine.cache import kv
from engine.cache.layout import Layout
from engine.config import EngineConfig
from engine.errors import MemoryFullError
from engine.memory import MACHINE
from engine.sizes import size_of

# Number of recurrent states in memory at the same time: the live state, the newest snapshot, and
# the result of a pass.
_NUM_STATES = 3


@dataclass(frozen=True, slots=True)
class RequestMemory:
    """Estimates of the memory that requests need, and the memory that the device can give them."""

    layout: Layout
    config: EngineConfig
    spare_bytes: int  # bytes of device memory that the weights leave free

    def check_fits(self, pass_len: int, room: int, tower_bytes: int = 0) -> None:
        """Raise an error if a prompt could not be read even with an empty prefix cache.

        Args:
            pass_len: number of tokens of the longest pass over the prompt.
            tower_bytes: memory for the embeddings of its largest picture.
            room: number of tokens to reserve K/V for: the prompt and a usual reply.

        Raises:
            MemoryFullError: the prompt does not fit. The message states the bytes needed and
                available.
        """
        needed = self._needed_bytes(room, pass_len) + tower_bytes
        if needed > self.spare_bytes:
            raise MemoryFullError(
                f"It needs about {size_of(needed)} "
                f"and {MACHINE} can give {size_of(self.spare_bytes)}."
            )

    def fits_beside(
        self, pass_len: int, room: int, others: Iterable[int], tower_bytes: int = 0
    ) -> bool:
        """Return True if a prompt can be read while other requests are answered.

        Args:
            pass_len: as in check_fits.
            room: as in check_fits.
            tower_bytes: as in check_fits.
            others: for each other request, the number of tokens that it reserves K/V for.
        """
        held = sum(self._needed_bytes(other, 1) for other in others)
        needed = self._needed_bytes(room, pass_len) + tower_bytes
        return needed + held <= self.spare_bytes

    @property
    def max_tokens(self) -> int:
        """Highest number of tokens whose state the device can hold while a reply is written."""
        if not self.layout.kv_bytes_per_token:
            return sys.maxsize
        kv_bytes = self.spare_bytes - self._needed_bytes(0, 1)
        return kv.max_roomy(kv_bytes // self.layout.kv_bytes_per_token)

    def _needed_bytes(self, num_tokens: int, pass_len: int) -> int:
        """Return the bytes of K/V buffers, recurrent states, and a pass over pass_len tokens."""
        kv_bytes = kv.roomy(num_tokens) * self.layout.kv_bytes_per_token
        state_bytes = _NUM_STATES * self.layout.snapshot_bytes
        return kv_bytes + state_bytes + self.config.pass_bytes * pass_len // self.config.cell_len
