"""Whether a request fits into what the device can give, with nothing else held."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.cache import kv
from engine.cache.layout import Layout
from engine.config import EngineConfig
from engine.errors import MemoryFullError
from engine.memory import MACHINE

# Recurrent states at once: the live one, the newest point's, and the one that a pass makes.
_NUM_STATES = 3


@dataclass(frozen=True, slots=True)
class RequestMemory:
    """What one request needs, against the bytes that the device can give beside the weights."""

    layout: Layout
    config: EngineConfig
    spare_bytes: int

    def check_fits(self, prompt_len: int, room: int) -> None:
        """Refuse a prompt that could not be read.

        Args:
            prompt_len: tokens of the prompt.
            room: tokens that are made room for, the prompt's and those of a usual reply.

        Raises:
            MemoryFullError: says how much it needs and how much there is.
        """
        needed = self._needed_bytes(room, min(prompt_len, self.config.cell_len))
        if needed > self.spare_bytes:
            raise MemoryFullError(
                f"It needs about {needed / 1e9:.1f} GB and {MACHINE} can give "
                f"{self.spare_bytes / 1e9:.1f} GB."
            )

    def fits_beside(self, prompt_len: int, room: int, others: Iterable[int]) -> bool:
        """Whether a prompt can be read while others are answered; their room in tokens."""
        held = sum(self._needed_bytes(other, 1) for other in others)
        needed = self._needed_bytes(room, min(prompt_len, self.config.cell_len))
        return needed + held <= self.spare_bytes

    def holds(self, num_tokens: int) -> bool:
        """Whether a reply can have got so far."""
        return self._needed_bytes(num_tokens, 1) <= self.spare_bytes

    def _needed_bytes(self, num_tokens: int, pass_len: int) -> int:
        """K/V in buffers with their spare room, recurrent states, the own arrays of a pass."""
        kv_bytes = kv.roomy(num_tokens) * self.layout.kv_bytes_per_token
        state_bytes = _NUM_STATES * self.layout.snapshot_bytes
        return kv_bytes + state_bytes + self.config.pass_bytes * pass_len // self.config.cell_len
