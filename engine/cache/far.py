"""State of the same tokens that other processes hold: the seam for a model in several stages.

If a model is divided by layers, the process with the prefix cache has the state of its own layers
only. What it does to the state of a conversation, the other stages must do as well. The objects
here stand for the arrays of all other stages together. On one machine there are none: a set of
caches has an empty tuple of them, so nothing is done.

    FarCaches   the live caches of one conversation (an item of the model's list of caches)
    FarGroup    the caches of several conversations that share a pass
    FarSpan     copied K/V of a range of tokens
    FarState    a snapshot

The classes of engine/pipeline/far.py send commands to the other stages, which only carry them out.
When one of these objects is freed, the arrays that it stands for are freed too.

This module imports no mlx. Engine thread only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple


class FarSpan(ABC):
    """The K/V of a range of tokens, in arrays of the other stages."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Number of bytes of all other stages together."""

    @abstractmethod
    def split(self, at: int) -> tuple[FarSpan, FarSpan]:
        """Replace the span by its first `at` tokens and the remaining tokens."""

    @abstractmethod
    def range(self, start: int, end: int) -> FarPart:
        """Return a reference to the tokens [start, end) of the span."""


class FarPart(NamedTuple):
    """A reference to K/V of the other stages: tokens [start, end) of a span or of live caches."""

    source: FarSpan | FarCaches
    start: int
    end: int


class FarState(ABC):
    """The auxiliary state of the other stages after some number of tokens."""

    @property
    @abstractmethod
    def stage_bytes(self) -> Sequence[int]:
        """Number of bytes of each other stage, rank 1 first."""


class FarCaches(ABC):
    """The live caches that the other stages have for one conversation."""

    @property
    @abstractmethod
    def num_tokens(self) -> int:
        """Number of tokens whose K/V the caches hold."""

    @property
    @abstractmethod
    def capacity(self) -> int:
        """Number of tokens that the K/V buffers can hold without growing. 0 without buffers."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Number of bytes of the K/V buffers of all other stages together."""

    @property
    @abstractmethod
    def has_state(self) -> bool:
        """True if a layer of another stage has auxiliary state."""

    @abstractmethod
    def cut(self, num_tokens: int) -> None:
        """Remove the tokens after num_tokens."""

    @abstractmethod
    def growth(self, num_tokens: int) -> int:
        """Return the number of bytes that `reserve` would add to the buffers."""

    @abstractmethod
    def reserve(self, num_tokens: int) -> int:
        """Grow buffers that cannot hold num_tokens. Return the number of bytes copied."""

    @abstractmethod
    def append(self, parts: Sequence[FarPart], num_tokens: int, room: int) -> int:
        """Append K/V, as kv.append_slices does. Return the number of bytes appended."""

    @abstractmethod
    def range(self, start: int, end: int) -> FarPart:
        """Return a reference to the K/V of the tokens [start, end)."""

    @abstractmethod
    def copy(self, start: int, end: int) -> FarSpan:
        """Copy the K/V of the tokens [start, end)."""

    @abstractmethod
    def capture(self) -> FarState:
        """Keep the present auxiliary state."""

    @abstractmethod
    def restore(self, state: FarState) -> None:
        """Put a kept auxiliary state back."""

    @abstractmethod
    def merged(self, rows: Sequence[FarCaches], shifts: Sequence[int]) -> FarGroup:
        """Return a group of conversations that share passes.

        Args:
            rows: the caches of the conversations.
            shifts: their shifts of positions by pictures (positions.py).
        """


class FarGroup(ABC):
    """The caches of several conversations in the other stages, merged for shared passes."""

    @abstractmethod
    def hand_back(self, row: int) -> None:
        """Hand a row's state back to the row's own caches. No pass may follow."""
