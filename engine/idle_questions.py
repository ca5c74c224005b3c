"""Questions that the engine answers in idle time: titles, previews, and the wait for its end."""

from __future__ import annotations

from collections.abc import Callable, Collection

from engine.errors import NotAnsweredError
from engine.events import Answered, Event
from engine.questions import Preview, QuestionId


class IdleQuestions:
    """The open questions. Each gets one answer. Engine thread only."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._asked: list[QuestionId] = []  # for titles and previews
        self._awaiting: list[QuestionId] = []  # of the class AwaitIdle

    @property
    def is_end_awaited(self) -> bool:
        """True if a question of the class AwaitIdle is open."""
        return bool(self._awaiting)

    def await_end(self, question_id: QuestionId) -> None:
        """Add a question of the class AwaitIdle."""
        self._awaiting.append(question_id)

    def report_end(self) -> bool:
        """Answer the questions of the class AwaitIdle. Return False if there are none."""
        awaiting, self._awaiting = self._awaiting, []
        for question_id in awaiting:
            self._emit(Answered(question_id, None))
        return bool(awaiting)

    def add(self, question_id: QuestionId) -> None:
        """Add a question for a title or a preview."""
        self._asked.append(question_id)

    def is_open(self, question_id: QuestionId) -> bool:
        return question_id in self._asked

    def answer(self, question_id: QuestionId, answer: str | Preview) -> None:
        """Answer a question for a title or a preview."""
        self._asked.remove(question_id)
        self._emit(Answered(question_id, answer))

    def refuse_others(self, kept: Collection[QuestionId]) -> None:
        """Refuse the questions for titles and previews whose tasks are not kept."""
        for question_id in [one for one in self._asked if one not in kept]:
            self._asked.remove(question_id)
            self._emit(Answered(question_id, NotAnsweredError("It was not made.").problem))
