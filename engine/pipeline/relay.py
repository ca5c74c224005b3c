"""Rank 0's end of the line: commands are collected, ride with the next pass, and answers come back.

A command costs no message of its own. So a follower frees and copies arrays only when the next
message arrives. `flush` sends what has collected without a pass: before a rest, and to count bytes.

Several messages may be on their way: while rank 0 computes its layers for one part of a prompt, the
followers compute theirs for the next part.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from weakref import WeakValueDictionary

import mlx.core as mx

from engine.errors import EngineError
from engine.pipeline.messages import ArrayForm, Command, Neighbours, Op, StageMessage
from engine.vision.tower import EncodedPicture

# Seconds without a message after which the followers rest.
_REST_AFTER_S: Final = 2.0
_EMPTY: Final = StageMessage()


class StageLostError(EngineError):
    """The error after another stage was lost. No pass is possible any more."""

    title = "A part of the model is gone."
    advice = "Start the model again."


class ReportedBytes:
    """The bytes that a captured state takes in each follower. An estimate until they report it."""

    def __init__(self, estimate: Sequence[int]) -> None:
        self.stage_bytes: list[int] = list(estimate)


@dataclass(slots=True, eq=False)
class Ticket:
    """A message on its way round the stages. `answer` is None until it is back."""

    forms: Sequence[ArrayForm] = ()  # forms of the arrays of the answer
    answer: StageMessage | None = None


class Relay:
    """The commands to the followers, and their answers. Engine thread only."""

    def __init__(
        self,
        line: Neighbours,
        *,
        wake: Callable[[], None] = lambda: None,
        passed: Callable[[int], None] = lambda _: None,
        resting: Callable[[], None] = lambda: None,
    ) -> None:
        """Create the end of a line whose followers rest.

        Args:
            line: the connection to the followers.
            wake: function that wakes all followers.
            passed: function that is called with the number of passes after each pass.
            resting: function that is called when the followers have begun to rest.
        """
        self._line = line
        self._wake = wake
        self._passed = passed
        self._resting = resting
        self._commands: list[Command] = []
        self._num_numbers = 0
        self._num_passes = 0
        self._is_resting = True
        self._is_lost = False
        self._last_message = time.monotonic()
        self._unanswered: deque[Ticket] = deque()  # in the order of their messages
        # Captured states that rank 0 still has, by number.
        self._states: WeakValueDictionary[int, ReportedBytes] = WeakValueDictionary()
        # Returns the forms of what rank 0's first layer takes: arguments as in
        # PartOfModel.received_forms. Set before the first pass.
        self.received_forms: Callable[[int, int], Sequence[ArrayForm]] = lambda _rows, _tokens: ()

    @property
    def num_unanswered(self) -> int:
        """Number of messages that are on their way."""
        return len(self._unanswered)

    def new_number(self) -> int:
        self._num_numbers += 1
        return self._num_numbers

    def add(self, op: Op, *items: Any) -> None:
        """Let all followers carry out a command before the next pass."""
        self._commands.append([op, *items])

    def expect_bytes(self, number: int, state: ReportedBytes) -> None:
        """Set the bytes of a state once the followers report them."""
        self._states[number] = state

    def send_pass(self, target: int, input_ids: mx.array, shifts: Sequence[int]) -> Ticket:
        """Let all followers feed token ids (B, L). Do not wait for what they compute.

        shifts: the shift of positions of each row.
        """
        self.add(Op.FEED, target, shifts)
        token_ids: Any = input_ids.tolist()
        return self._send_fed(StageMessage((), token_ids))

    def send_picture(self, target: int, picture: EncodedPicture, shift: int) -> Ticket:
        """Let all followers feed a picture to one row. Do not wait for what they compute."""
        self.add(Op.FEED, target, [shift])
        ids = picture.control_ids or (-1,) * picture.num_tokens
        arrays = (picture.embeddings, *picture.features)
        return self._send_fed(StageMessage((), [ids], arrays=arrays, grid=picture.grid))

    def _send_fed(self, message: StageMessage) -> Ticket:
        num_rows, num_tokens = len(message.token_ids), len(message.token_ids[0])
        ticket = self._send(message)
        ticket.forms = self.received_forms(num_rows, num_tokens)
        self._num_passes += 1
        self._passed(self._num_passes)
        return ticket

    def result(self, ticket: Ticket) -> tuple[mx.array, ...]:
        """Wait for the arrays that a pass gives to rank 0's first layer."""
        return self._answer(ticket).arrays

    def ask(self, op: Op) -> dict[int, dict[str, Any]]:
        """Return the followers' answers to a command without a pass, by rank."""
        self.add(op)
        return self._answer(self._send()).reports

    def flush(self) -> None:
        """Let the followers carry out what has collected."""
        if self._commands and not self._is_lost:
            self._answer(self._send())

    def rest(self) -> float | None:
        """Let the followers rest if there was no message for a while.

        Returns:
            The seconds until they may rest. None if they rest.
        """
        if self._is_resting or self._is_lost:
            return None
        left = self._last_message + _REST_AFTER_S - time.monotonic()
        if left > 0:
            return left
        self.ask(Op.REST)
        self._is_resting = True
        self._resting()
        return None

    def end(self) -> None:
        """End the followers."""
        if not self._is_lost:
            self.ask(Op.END)
            self._is_lost = True

    def _send(self, message: StageMessage = _EMPTY) -> Ticket:
        if self._is_lost:
            raise _lost()
        if self._is_resting:
            self._wake()
            self._is_resting = False
        commands, self._commands = self._commands, []
        try:
            self._line.send(replace(message, commands=commands))
        except Exception as error:
            self._is_lost = True
            raise _lost() from error
        self._unanswered.append(Ticket())
        return self._unanswered[-1]

    def _answer(self, ticket: Ticket) -> StageMessage:
        """Wait for the answer to a message. Answers to earlier messages arrive before it."""
        while ticket.answer is None:
            if self._is_lost:
                raise _lost()
            try:
                answer = self._line.receive(self._expected)
            except Exception as error:
                # After its first error, mlx.distributed may hang for good.
                self._is_lost = True
                raise _lost() from error
            self._unanswered.popleft().answer = answer
            self._last_message = time.monotonic()
            self._note_bytes(answer.reports)
        return ticket.answer

    def _expected(self, _: StageMessage) -> Sequence[ArrayForm]:
        """Return the forms of the arrays of the next answer."""
        return self._unanswered[0].forms

    def _note_bytes(self, reports: dict[int, dict[str, Any]]) -> None:
        for rank, report in reports.items():
            for number, num_bytes in report.get("states", ()):
                state = self._states.get(number)
                if state is not None:
                    state.stage_bytes[rank - 1] = num_bytes


def _lost() -> StageLostError:
    return StageLostError("The connection to another stage was lost.")
