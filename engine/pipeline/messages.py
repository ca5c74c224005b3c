"""The message that goes round the stages: commands, token ids, reports, and arrays.

Rank 0 sends a message to rank n-1. Each follower carries out the commands, runs its layers if the
message has a pass, adds its report, and sends the message on to the next lower rank. What comes back
to rank 0 are the reports and the arrays that its first own layer takes.

The commands are lists whose first item is an Op. Numbers stand for live caches, spans, states and
groups; rank 0 gives each object a number of its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

import mlx.core as mx


class Op(StrEnum):
    """The kinds of commands. The comment of each kind lists the items that follow it."""

    NEW = "new"  # caches: create empty live caches
    CUT = "cut"  # caches, num_tokens
    RESERVE = "reserve"  # caches, num_tokens
    APPEND = "append"  # caches, [[source, start, end], ...], num_tokens, room
    COPY = "copy"  # caches, start, end, span
    SPLIT = "split"  # span, at, head, tail
    CAPTURE = "capture"  # caches, state
    RESTORE = "restore"  # caches, state
    GROUP = "group"  # [caches, ...], group
    HAND_BACK = "hand_back"  # group, row
    FREE = "free"  # any number
    FEED = "feed"  # caches or group: feed the token ids of the message
    REPORT = "report"  # add the stage's layout, weights and memory to the reports
    COUNT = "count"  # add the bytes of all held state to the reports
    REST = "rest"  # wait for a wake-up after this message
    END = "end"  # end after this message


Command = list[Any]


@dataclass(frozen=True, slots=True)
class StageMessage:
    """One message. All of its fields are plain values and evaluated arrays."""

    commands: Sequence[Command] = ()
    token_ids: Sequence[Sequence[int]] = ()  # (B, L), for a pass
    # Reports of the followers, by rank.
    reports: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    arrays: tuple[mx.array, ...] = ()

    def has(self, op: Op) -> bool:
        return any(command[0] == op for command in self.commands)

    def encoded(self) -> bytes:
        """Return everything but the contents of the arrays."""
        reports = [[rank, report] for rank, report in self.reports.items()]
        forms = [[list(array.shape), _name(array.dtype)] for array in self.arrays]
        return json.dumps([self.commands, self.token_ids, reports, forms]).encode()


@dataclass(frozen=True, slots=True)
class Encoded:
    """A received message whose arrays are still to come."""

    message: StageMessage
    forms: tuple[tuple[tuple[int, ...], mx.Dtype], ...]  # shape and type of each array

    @classmethod
    def of(cls, data: bytes) -> Encoded:
        commands, token_ids, reports, forms = json.loads(data)
        return cls(
            StageMessage(commands, token_ids, {int(rank): report for rank, report in reports}),
            tuple((tuple(shape), getattr(mx, name)) for shape, name in forms),
        )


class Neighbours(Protocol):
    """The connection of a stage to its neighbours. Messages keep their order."""

    def send(self, message: StageMessage) -> None:
        """Send a message to the next lower rank, or from rank 0 to the highest rank."""
        ...

    def receive(self) -> StageMessage:
        """Wait for the next message."""
        ...


def _name(dtype: mx.Dtype) -> str:
    return str(dtype).rpartition(".")[2]
