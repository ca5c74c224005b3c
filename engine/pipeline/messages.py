"""The message that goes round the stages: commands, token ids, reports, and arrays.

Rank 0 sends a message to rank n-1. Each follower carries out the commands, runs its layers if the
message has a pass, adds its report, and sends the message on to the next lower rank. What comes
back to rank 0 are the reports and the arrays that its first own layer takes.

In the pass of a picture, the message to rank n-1 has the embeddings of the picture. Each stage gets
its rows and columns, and features if one of its layers or a later one adds them.

A stage does not trust the sizes that another one states: it compares them with those that the pass
must have before it reserves memory for them.

The commands are lists whose first item is an Op. Numbers stand for live caches, spans, states and
groups; rank 0 gives each object a number of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple, Protocol

import mlx.core as mx

from engine.vision.tower import TokenGrid


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
    # caches or group, shift of positions of each row: feed the token ids of the message
    FEED = "feed"
    REPORT = "report"  # add the stage's layout, weights and memory to the reports
    COUNT = "count"  # add the bytes of all held state to the reports
    REST = "rest"  # wait for a wake-up after this message
    END = "end"  # end after this message


Command = list[Any]


def _name(dtype: mx.Dtype) -> str:
    return str(dtype).rpartition(".")[2]


# Highest number of bytes of a message without its arrays. The ids of a picture of 6,000 tokens take
# 20 kB.
MAX_BYTES: Final = 64 << 20
_FLOATS: Final = (mx.float32, mx.bfloat16, mx.float16)
_DTYPES: Final[Mapping[str, mx.Dtype]] = {
    name: getattr(mx, name)
    for name in [
        "bool_",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
    ]
}


class StageMessageError(Exception):
    """The error if a message does not fit the pass that it belongs to."""


class ArrayForm(NamedTuple):
    """The shape and the type of an array."""

    shape: tuple[int, ...]
    dtype: mx.Dtype

    def fits(self, other: ArrayForm) -> bool:
        """Return True if an array of the other form can be in the place of this one.

        A picture can change the number of bits of floating numbers.
        """
        is_float = self.dtype in _FLOATS and other.dtype in _FLOATS
        return self.shape == other.shape and (is_float or self.dtype == other.dtype)


# Returns the forms of the arrays that a message must have. Its argument is the message without
# them.
Expected = Callable[["StageMessage"], Sequence[ArrayForm]]


@dataclass(frozen=True, slots=True)
class StageMessage:
    """One message. All of its fields are plain values and evaluated arrays."""

    commands: Sequence[Command] = ()
    # (B, L), for a pass. For a picture those of its control tokens, and -1 for all others.
    token_ids: Sequence[Sequence[int]] = ()
    # Reports of the followers, by rank.
    reports: dict[int, dict[str, Any]] = field(default_factory=dict[int, dict[str, Any]])
    arrays: tuple[mx.array, ...] = ()
    grid: TokenGrid | None = None  # of the picture that the pass reads; None for text

    def has(self, op: Op) -> bool:
        return any(command[0] == op for command in self.commands)

    def encoded(self) -> bytes:
        """Return everything but the contents of the arrays."""
        reports = [[rank, report] for rank, report in self.reports.items()]
        forms = [[list(array.shape), _name(array.dtype)] for array in self.arrays]
        return json.dumps([self.commands, self.token_ids, reports, forms, self.grid]).encode()


@dataclass(frozen=True, slots=True)
class Encoded:
    """A received message whose arrays are still to come."""

    message: StageMessage
    forms: tuple[ArrayForm, ...]

    @classmethod
    def of(cls, data: bytes, expected: Expected) -> Encoded:
        """Return the content of received bytes.

        Raises:
            StageMessageError: its arrays are not those of the pass.
        """
        commands, token_ids, reports, forms, grid = json.loads(data)
        message = StageMessage(
            commands,
            token_ids,
            {int(rank): report for rank, report in reports},
            grid=None if grid is None else TokenGrid(*map(int, grid)),
        )
        wanted = expected(message)
        known = all(name in _DTYPES for _, name in forms)
        found = tuple(ArrayForm(tuple(shape), _DTYPES[name]) for shape, name in forms if known)
        if len(found) != len(wanted) or not all(map(ArrayForm.fits, wanted, found)):
            raise StageMessageError(f"another stage sends {forms} instead of {wanted}")
        return cls(message, found)

    def with_arrays(self, arrays: Sequence[mx.array]) -> StageMessage:
        return replace(self.message, arrays=tuple(arrays))


def required_bytes(num_bytes: int) -> int:
    """Return the number of bytes of a message that another stage announces.

    Raises:
        StageMessageError: no message is so long.
    """
    if not 0 < num_bytes <= MAX_BYTES:
        raise StageMessageError(f"another stage announces a message of {num_bytes} bytes")
    return num_bytes


class Neighbours(Protocol):
    """The connection of a stage to its neighbours. Messages keep their order."""

    def send(self, message: StageMessage) -> None:
        """Send a message to the next lower rank, or from rank 0 to the highest rank."""
        ...

    def receive(self, expected: Expected) -> StageMessage:
        """Wait for the next message.

        Raises:
            StageMessageError: the message has other arrays than expected.
        """
        ...
