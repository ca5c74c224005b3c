"""A follower: a stage that carries out what rank 0 decides. It matches, evicts and counts nothing.

It has the first or the middle layers of the model, and the state of these layers under the numbers
that rank 0 gave them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

import mlx.core as mx
from typing_extensions import override

from engine.cache import kv
from engine.cache.kv import KvArrays, KvPart
from engine.cache.layout import Leaves, leaves_of
from engine.cache.points import PointKind
from engine.cache.positions import ConversationCaches
from engine.cache.snapshot import Snapshot, capture, restore
from engine.cache.trees import evaluate
from engine.models.adapter import ModelAdapter, stand_in_ids
from engine.models.opening import StageMemory
from engine.models.probe import merging_test, run_steps
from engine.models.rows import MergedRows
from engine.pipeline.messages import ArrayForm, Command, Op, StageMessage
from engine.pipeline.split import PartOfModel
from engine.vision.tower import EncodedPicture


@dataclass(slots=True, eq=False)
class _HeldRow:
    """The live caches of one conversation."""

    caches: ConversationCaches
    leaves: Leaves
    num_tokens: int = 0

    @property
    def nbytes(self) -> int:
        return kv.buffer_bytes(self.leaves)


@dataclass(slots=True, eq=False)
class _Group:
    """Several conversations that share passes."""

    rows: list[_HeldRow]
    merged: MergedRows
    nbytes: int = 0  # live states are not counted, as in rank 0's ledger

    @property
    def num_tokens(self) -> int | mx.array:
        counts = [row.num_tokens for row in self.rows]
        return counts[0] if len(set(counts)) == 1 else mx.array(counts)


class _Passing(ModelAdapter):
    """An adapter that runs the own layers on what was received, and keeps what is to be sent."""

    def __init__(self, part: PartOfModel) -> None:
        self._part = part
        self.received: Sequence[mx.array] = ()
        self.sent: tuple[mx.array, ...] = ()
        self.num_tokens: int | mx.array = 0
        self.picture: EncodedPicture | None = None  # the picture that the pass reads

    @override
    def run(self, input_ids: mx.array, caches: Sequence[object]) -> mx.array:
        logits, self.sent = self._part.pass_through(
            input_ids, caches, self.received, self.num_tokens, self.picture
        )
        return logits


class _Rehearsal(ModelAdapter):
    """An adapter that runs the own layers on random numbers, and returns what they would send."""

    def __init__(self, part: PartOfModel) -> None:
        self._part = part

    @override
    def new_caches(self) -> list[object]:
        return self._part.new_caches()

    @override
    def run(self, input_ids: mx.array, caches: Sequence[object]) -> mx.array:
        # Every row and every token gets the same numbers, in every pass.
        row = [
            mx.random.normal(array.shape, array.dtype, key=mx.random.key(1))
            for array in self._part.stand_in(1)
        ]
        num_rows, num_tokens = input_ids.shape
        received = [
            mx.broadcast_to(array, (num_rows, num_tokens, *array.shape[2:])) for array in row
        ]
        # Give the caches of skipped layers the number of tokens of a row, as a real pass does.
        # Masks are made from these caches, and a mask may not support rows of different lengths.
        counts = (getattr(leaf, "offset", None) for leaf in leaves_of(caches))
        num_tokens = next((count for count in counts if count is not None), 0)
        return self._part.pass_through(input_ids, caches, received, num_tokens)[1][0]


def can_merge_rows(part: PartOfModel) -> bool:
    """Return True if the layers of a follower can serve several conversations in one pass."""
    return run_steps(merging_test(_Rehearsal(part)))


class Follower:
    """The layers and the state of one stage behind rank 0. Use on one thread."""

    def __init__(self, rank: int, part: PartOfModel, memory: StageMemory, facts: str) -> None:
        """Create a stage without any state.

        Args:
            rank: the rank of the stage, at least 1.
            part: the own layers.
            memory: the sizes to report to rank 0.
            facts: all that cached state depends on, for rank 0's comparison and namespace.
        """
        self._rank = rank
        self._part = part
        self.memory = memory
        self._facts = facts
        self._passing = _Passing(part)
        self._num_received = len(part.received_forms(1, 1))  # arrays that the first layer takes
        # All objects under rank 0's numbers. Public for tests.
        self.held: dict[int, _HeldRow | _Group | KvArrays | Snapshot] = {}
        # Numbers and bytes of the states captured for the present message.
        self._captured: list[tuple[int, int]] = []

    @property
    def num_held(self) -> int:
        """Number of objects that the stage holds."""
        return len(self.held)

    @property
    def held_bytes(self) -> int:
        """Bytes of K/V buffers, spans and snapshots."""
        return sum(held.nbytes for held in self.held.values())

    def expected(self, message: StageMessage) -> Sequence[ArrayForm]:
        """Return the forms of the arrays that a message to this stage must have."""
        if not message.has(Op.FEED):
            return []
        num_rows, num_tokens = len(message.token_ids), len(message.token_ids[0])
        if message.grid is None:
            return self._part.received_forms(num_rows, num_tokens)
        return self._part.picture_forms(num_tokens)

    def handle(self, message: StageMessage) -> StageMessage:
        """Carry out a message. Return the message for the next stage."""
        report: dict[str, Any] = {}
        arrays: tuple[mx.array, ...] = ()
        for command in message.commands:
            if command[0] == Op.FEED:
                arrays = self._run_pass(self.held[command[1]], command[2], message)
            else:
                report |= self._carry_out(command)
        if self._captured:
            report["states"], self._captured = self._captured, []
        reports = {**message.reports, self._rank: report} if report else message.reports
        if self._rank == 1:
            # Rank 0 gave the commands and the token ids.
            return StageMessage(reports=reports, arrays=arrays)
        return replace(message, reports=reports, arrays=arrays)

    def _run_pass(
        self, target: Any, shifts: Sequence[int], message: StageMessage
    ) -> tuple[mx.array, ...]:
        rows: list[_HeldRow] = target.rows if isinstance(target, _Group) else [target]
        for row, shift in zip(rows, shifts, strict=True):
            row.caches.shift = shift
        passing, picture = self._passing, self._picture_of(message)
        passing.num_tokens, passing.picture = target.num_tokens, picture
        passing.received = message.arrays[: self._num_received]
        if picture is None:
            input_ids = mx.array(list(message.token_ids), mx.int32)
        else:
            input_ids = stand_in_ids(picture)
        if isinstance(target, _Group):
            target.merged.forward(self._passing, list(input_ids))
            states = target.merged.states
        else:
            self._passing.run(input_ids, target.caches)
            states = target.leaves.states
        for row in rows:
            row.num_tokens += input_ids.shape[1]
        sent = passing.sent
        passing.sent, passing.received, passing.picture = (), (), None
        evaluate(sent, states, [row.leaves.buffers for row in rows])
        if picture is None or self._rank == 1:  # rank 0 has the picture
            return sent
        return (*sent, *self._part.handed_on(picture))

    def _picture_of(self, message: StageMessage) -> EncodedPicture | None:
        """Return the picture that a message feeds, with what this stage gets of it."""
        if message.grid is None:
            return None
        arrays = message.arrays[self._num_received :]
        (embeddings, *features) = (
            arrays if self._part.takes_embeddings else (message.arrays[0], *arrays)
        )
        ids = tuple(message.token_ids[0])
        return EncodedPicture(embeddings, message.grid, tuple(features), ids)

    def _carry_out(self, command: Command) -> dict[str, Any]:
        """Carry out a command that feeds nothing. Return what to report to rank 0."""
        op, *items = command
        match op, items:
            case Op.REPORT, []:
                return {"memory": asdict(self.memory), "facts": self._facts}
            case Op.COUNT, []:
                return {"held": self.held_bytes, "objects": self.num_held}
            case ((Op.REST | Op.END), []):
                pass
            case Op.FREE, [number]:
                del self.held[number]
            case ((Op.NEW | Op.GROUP | Op.HAND_BACK), _):
                self._change_rows(op, items)
            case ((Op.CAPTURE | Op.RESTORE), [number, state]):
                self._keep_state(op, self._row(number), state)
            case Op.SPLIT, [number, at, head, tail]:
                span = cast("KvArrays", self.held[number])
                self.held[head], self.held[tail] = span.split(at)
            case _, [number, *arguments]:
                self._change_kv(op, self._row(number), arguments)
            case _:
                raise ValueError(f"unknown command {op!r}")
        return {}

    def _change_rows(self, op: str, items: list[Any]) -> None:
        match op, items:
            case Op.NEW, [number]:
                caches = cast("ConversationCaches", self._part.new_caches())
                self.held[number] = _HeldRow(caches, Leaves.of(caches))
            case Op.GROUP, [rows, number]:
                members = [self._row(row) for row in rows]
                merged = MergedRows([row.caches for row in members])
                self.held[number] = _Group(members, merged)
            case Op.HAND_BACK, [number, row]:
                cast("_Group", self.held[number]).merged.hand_back(row, undoing=False)
            case _:
                raise ValueError(f"unknown command {op!r}")

    def _keep_state(self, op: str, row: _HeldRow, number: int) -> None:
        if op == Op.CAPTURE:
            snapshot = capture(row.leaves, row.num_tokens, PointKind.STRIDE)
            # The next pass may write into the arrays that the snapshot copies.
            evaluate(snapshot.states)
            self.held[number] = snapshot
            self._captured.append((number, snapshot.nbytes))
        else:
            restore(row.leaves, cast("Snapshot", self.held[number]))

    def _change_kv(self, op: str, row: _HeldRow, arguments: list[Any]) -> None:
        match op, arguments:
            case Op.CUT, [num_tokens]:
                kv.cut(row.leaves, num_tokens)
                row.num_tokens = num_tokens
            case Op.RESERVE, [num_tokens]:
                kv.reserve(row.leaves, num_tokens)
            case Op.APPEND, [sources, num_tokens, room]:
                parts = [self._slices(*source) for source in sources]
                kv.append_slices(row.leaves, parts, num_tokens, room)
                row.num_tokens = num_tokens
            case Op.COPY, [start, end, number]:
                self.held[number] = kv.copy_range(row.leaves, start, end)
            case _:
                raise ValueError(f"unknown command {op!r}")

    def _row(self, number: int) -> _HeldRow:
        return cast("_HeldRow", self.held[number])

    def _slices(self, number: int, start: int, end: int) -> KvPart:
        source = self.held[number]
        if isinstance(source, KvArrays):
            return source.range(start, end)
        return kv.read_range(cast("_HeldRow", source).leaves, start, end)
