"""Rank 0's objects for the state of the followers: each is a number, and a record of its size.

The objects send commands through the relay. A freed object sends a command that frees its arrays.
The sizes of K/V are computed here: all K/V leaves of a conversation have the same capacity, which
follows from the same rules as the buffers of kv.py and of mlx-lm.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple, cast

import mlx.core as mx
from typing_extensions import override

from engine.cache.far import FarCaches, FarGroup, FarPart, FarSpan, FarState
from engine.cache.kv import STEP, roomy, round_up
from engine.cache.layout import Layout
from engine.pipeline.messages import Op
from engine.pipeline.relay import Relay, ReportedBytes, Ticket
from engine.vision.tower import EncodedPicture


class Received(NamedTuple):
    """The result of a pass of the followers."""

    arrays: tuple[mx.array, ...]  # what rank 0's first layer takes
    num_tokens: int | mx.array  # number of tokens of each row before the pass


class _Numbered:
    """An object of the followers. They free it when this object is freed."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.number = relay.new_number()

    def __del__(self) -> None:
        self.relay.add(Op.FREE, self.number)


class StageSpan(_Numbered, FarSpan):
    """K/V of a range of tokens."""

    def __init__(self, relay: Relay, num_tokens: int, bytes_per_token: int) -> None:
        super().__init__(relay)
        self._num_tokens = num_tokens
        self._bytes_per_token = bytes_per_token

    @property
    @override
    def nbytes(self) -> int:
        return self._num_tokens * self._bytes_per_token

    @override
    def split(self, at: int) -> tuple[StageSpan, StageSpan]:
        head = StageSpan(self.relay, at, self._bytes_per_token)
        tail = StageSpan(self.relay, self._num_tokens - at, self._bytes_per_token)
        self.relay.add(Op.SPLIT, self.number, at, head.number, tail.number)
        return head, tail

    @override
    def range(self, start: int, end: int) -> FarPart:
        return FarPart(self, start, end)


class FollowerState(_Numbered, FarState):
    """Auxiliary state of the followers."""

    def __init__(self, relay: Relay, estimate: Sequence[int]) -> None:
        super().__init__(relay)
        self._reported = ReportedBytes(estimate)
        relay.expect_bytes(self.number, self._reported)

    @property
    @override
    def stage_bytes(self) -> Sequence[int]:
        return self._reported.stage_bytes


class StageCaches(_Numbered, FarCaches):
    """Live caches of one conversation."""

    def __init__(self, relay: Relay, followers: Sequence[Layout]) -> None:
        """Create empty caches.

        followers: the layouts of the followers, rank 1 first.
        """
        super().__init__(relay)
        self._bytes_per_token = sum(layout.kv_bytes_per_token for layout in followers)
        self._has_kv = any(layout.num_kv for layout in followers)
        self._has_state = any(layout.num_aux for layout in followers)
        self._state_bytes = [layout.snapshot_bytes for layout in followers]
        self._num_tokens = 0
        self._capacity = 0
        # A pass that was sent ahead: the number of tokens before it, and its ticket.
        self._ahead: tuple[int, Ticket] | None = None
        relay.add(Op.NEW, self.number)

    @property
    @override
    def num_tokens(self) -> int:
        return self._num_tokens

    @property
    @override
    def capacity(self) -> int:
        return self._capacity if self._has_kv else sys.maxsize

    @property
    @override
    def nbytes(self) -> int:
        return self._capacity * self._bytes_per_token

    @property
    @override
    def has_state(self) -> bool:
        return self._has_state

    def run_pass(self, input_ids: mx.array, shift: int = 0) -> Received:
        """Feed token ids of shape (1, L), unless they were sent ahead. Wait for the result.

        shift: the shift of positions by the pictures before them.
        """
        if self._ahead is None:
            self.send_ahead(input_ids, shift)
        assert self._ahead is not None
        (num_tokens, ticket), self._ahead = self._ahead, None
        assert self._num_tokens == num_tokens + input_ids.shape[1]
        return Received(self.relay.result(ticket), num_tokens)

    def send_ahead(self, input_ids: mx.array, shift: int = 0) -> None:
        """Let followers feed token ids of shape (1, L). The next `run_pass` must feed them too."""
        assert self._ahead is None
        self._ahead = self._num_tokens, self.relay.send_pass(self.number, input_ids, [shift])
        self.note_fed(input_ids.shape[1])

    def read_picture(self, picture: EncodedPicture, shift: int) -> Received:
        """Feed a picture. Wait for the result. shift: as in run_pass."""
        assert self._ahead is None
        num_tokens = self._num_tokens
        ticket = self.relay.send_picture(self.number, picture, shift)
        self.note_fed(picture.num_tokens)
        return Received(self.relay.result(ticket), num_tokens)

    def note_fed(self, num_tokens: int) -> None:
        """Record that a pass has fed tokens. mlx-lm grows full buffers by whole steps."""
        before = self._num_tokens
        if self._has_kv and before + num_tokens > self._capacity:
            kept = before if before % STEP else self._capacity
            self._capacity = kept + round_up(num_tokens)
        self._num_tokens = before + num_tokens

    @override
    def cut(self, num_tokens: int) -> None:
        assert num_tokens <= self._num_tokens
        self._ahead = None
        if num_tokens < self._num_tokens:
            self.relay.add(Op.CUT, self.number, num_tokens)
        self._num_tokens = num_tokens

    @override
    def growth(self, num_tokens: int) -> int:
        if not self._capacity or self._capacity >= num_tokens:
            return 0
        return (roomy(num_tokens) - self._capacity) * self._bytes_per_token

    @override
    def reserve(self, num_tokens: int) -> int:
        if not self.growth(num_tokens):
            return 0
        self.relay.add(Op.RESERVE, self.number, num_tokens)
        self._capacity = roomy(num_tokens)
        return self._num_tokens * self._bytes_per_token

    @override
    def append(self, parts: Sequence[FarPart], num_tokens: int, room: int) -> int:
        sources = [[cast("_Numbered", part.source).number, part.start, part.end] for part in parts]
        self.relay.add(Op.APPEND, self.number, sources, num_tokens, room)
        if self._has_kv and self._capacity < num_tokens:
            self._capacity = round_up(max(room, num_tokens))
        appended = num_tokens - self._num_tokens
        self._num_tokens = num_tokens
        return appended * self._bytes_per_token

    @override
    def range(self, start: int, end: int) -> FarPart:
        return FarPart(self, start, end)

    @override
    def copy(self, start: int, end: int) -> StageSpan:
        span = StageSpan(self.relay, end - start, self._bytes_per_token)
        self.relay.add(Op.COPY, self.number, start, end, span.number)
        return span

    @override
    def capture(self) -> FollowerState:
        assert self._ahead is None
        state = FollowerState(self.relay, self._state_bytes)
        self.relay.add(Op.CAPTURE, self.number, state.number)
        return state

    @override
    def restore(self, state: FarState) -> None:
        self.relay.add(Op.RESTORE, self.number, cast("FollowerState", state).number)

    @override
    def merged(self, rows: Sequence[FarCaches], shifts: Sequence[int]) -> StageGroup:
        return StageGroup(self.relay, cast("Sequence[StageCaches]", rows), shifts)


class StageGroup(_Numbered, FarGroup):
    """Live caches of several conversations, merged."""

    def __init__(self, relay: Relay, rows: Sequence[StageCaches], shifts: Sequence[int]) -> None:
        super().__init__(relay)
        self._rows = rows
        self._shifts = shifts
        relay.add(Op.GROUP, [row.number for row in rows], self.number)

    @property
    def _num_tokens(self) -> int | mx.array:
        """Number of tokens of each row, of shape (B,), or a single number if all are equal."""
        counts = [row.num_tokens for row in self._rows]
        return counts[0] if len(set(counts)) == 1 else mx.array(counts)

    def run_pass(self, input_ids: mx.array) -> Received:
        """Feed token ids of shape (B, L). Wait for the result."""
        num_tokens = self._num_tokens
        arrays = self.relay.result(self.relay.send_pass(self.number, input_ids, self._shifts))
        for row in self._rows:
            row.note_fed(input_ids.shape[1])
        return Received(arrays, num_tokens)

    @override
    def hand_back(self, row: int) -> None:
        self.relay.add(Op.HAND_BACK, self.number, row)
