"""The open questions for lengths of prompts: answered one at a time. Engine thread only.

To count the tokens of a chat of 17,000 tokens takes 18 ms on two CPU cores. While requests run, the
questions therefore get a small share of the time.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace

from engine.errors import Failure, NotAnsweredError, attempt
from engine.events import Answered, Event
from engine.questions import Ask, CountTokens, QuestionId, TokensCounted

# Largest part of the time that counting takes while requests run.
SHARE = 0.01


class OpenCounts:
    """The questions of the class CountTokens that are not answered yet, in order of arrival."""

    def __init__(
        self, emit: Callable[[Event], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._emit = emit
        self._clock = clock
        self._asked: deque[tuple[QuestionId, CountTokens]] = deque()
        self._next_at = 0.0  # time before which nothing is counted while requests run

    def __bool__(self) -> bool:
        return bool(self._asked)

    def add(self, ask: Ask, question: CountTokens) -> None:
        self._asked.append((ask.question_id, question))

    def withdraw(self, question_id: QuestionId) -> None:
        """Answer a question with a Problem, if it is open."""
        kept = deque(one for one in self._asked if one[0] != question_id)
        if len(kept) < len(self._asked):
            self._asked = kept
            self._emit(Answered(question_id, NotAnsweredError("It was withdrawn.").problem))

    def step(self, count: Callable[[CountTokens], TokensCounted], *, is_busy: bool) -> bool:
        """Answer the oldest question. Return False if there is none, or if it must wait.

        Args:
            count: function that counts. The problem of an error that it raises is the answer.
            is_busy: True while requests run.
        """
        start = self._clock()
        if not self._asked or (is_busy and start < self._next_at):
            return False
        question_id, question = self._asked.popleft()
        found = attempt("CountTokens", lambda: count(question))
        answer = found.problem if isinstance(found, Failure) else replace(found, is_busy=is_busy)
        self._emit(Answered(question_id, answer))
        end = self._clock()
        self._next_at = end + (end - start) / SHARE
        return True
