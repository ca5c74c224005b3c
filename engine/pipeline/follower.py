"""A follower: a stage that carries out what rank 0 decides. It matches, evicts and counts nothing.

It has the first or the middle layers of the model, and the state of these layers under the numbers
that rank 0 gave them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

import mlx.core as mx
from typing_extensions import override

from engine.cache import kv
from engine.cache.kv import KvArrays, KvPart
from engine.cache.layout import Leaves
from engine.cache.points import PointKind
from engine.cache.snapshot import Snapshot, capture, restore
from engine.cache.trees import evaluate
from engine.models.adapter import ModelAdapter
from engine.models.opening import StageMemory
from engine.models.probe import merging_test, run_steps
from engine.models.rows import MergedRows
from engine.pipeline.messages import Command, Op, StageMessage
from engine.pipeline.split import PartOfModel


@dataclass(slots=True, eq=False)
class _HeldRow:
    """The live caches of one conversation."""

    caches: list[object]
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

    @override
    def run(self, input_ids: mx.array, caches: Sequence[object]) -> mx.array:
        logits, self.sent = self._part.pass_through(
            input_ids, caches, self.received, self.num_tokens
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
        return self._part.pass_through(input_ids, caches, received, 0)[1][0]


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

    def handle(self, message: StageMessage) -> StageMessage:
        """Carry out a message. Return the message for the next stage."""
        report: dict[str, Any] = {}
        arrays: tuple[mx.array, ...] = ()
        for command in message.commands:
            if command[0] == Op.FEED:
                arrays = self._run_pass(self.held[command[1]], message)
            else:
                report |= self._carry_out(command)
        if self._captured:
            report["states"], self._captured = self._captured, []
        reports = {**message.reports, self._rank: report} if report else message.reports
        if self._rank == 1:
            # Rank 0 gave the commands and the token ids.
            return StageMessage(reports=reports, arrays=arrays)
        return StageMessage(message.commands, message.token_ids, reports, arrays)

    def _run_pass(self, target: Any, message: StageMessage) -> tuple[mx.array, ...]:
        self._passing.received = message.arrays
        self._passing.num_tokens = target.num_tokens
        input_ids = mx.array(list(message.token_ids), mx.int32)
        rows: list[_HeldRow] = [target]
        if isinstance(target, _Group):
            rows = target.rows
            target.merged.forward(self._passing, list(input_ids))
            states = target.merged.states
        else:
            self._passing.run(input_ids, target.caches)
            states = target.leaves.states
        for row in rows:
            row.num_tokens += input_ids.shape[1]
        sent, self._passing.sent, self._passing.received = self._passing.sent, (), ()
        evaluate(sent, states, [row.leaves.buffers for row in rows])
        return sent

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
                caches = self._part.new_caches()
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
