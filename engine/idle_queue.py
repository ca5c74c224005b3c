"""The queue of tasks that wait until the engine is idle. idle.py creates their jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from engine.events import ReadAhead
from engine.questions import NextPrompt, QuestionId
from engine.types import ConversationId


@dataclass(frozen=True, slots=True)
class TitleTask:
    """A question for a title."""

    question_id: QuestionId
    prompt: NextPrompt

    @property
    def conversation_id(self) -> ConversationId:
        return self.prompt.conversation_id


# A task of the app or of a finished request. An audit has no task.
IdleTask = ReadAhead | TitleTask

T = TypeVar("T")

# Highest number of queued tasks of each kind. If there are more, the oldest is dropped.
_MAX_TASKS = 32


class IdleQueue:
    """Queue of read-ahead tasks and titles. Of each, it holds the newest of a conversation."""

    def __init__(self) -> None:
        self._tasks: dict[ConversationId, ReadAhead] = {}
        self._titles: dict[ConversationId, TitleTask] = {}

    def queue_read_ahead(self, task: ReadAhead) -> None:
        _append(self._tasks, task.conversation_id, task)

    def queue_title(self, task: TitleTask) -> None:
        _append(self._titles, task.conversation_id, task)

    def __contains__(self, conversation_id: ConversationId) -> bool:
        return conversation_id in self._tasks

    def __bool__(self) -> bool:
        return bool(self._tasks or self._titles)

    def drop(self, conversation_id: ConversationId) -> None:
        self._tasks.pop(conversation_id, None)

    def drop_title(self, conversation_id: ConversationId) -> None:
        self._titles.pop(conversation_id, None)

    def clear(self) -> None:
        self._tasks.clear()
        self._titles.clear()

    @property
    def titles(self) -> tuple[TitleTask, ...]:
        return tuple(self._titles.values())

    def first(self, shown: ConversationId | None, *, on_battery: bool) -> ReadAhead | None:
        """Return the shown conversation's task, else the newest task, else None.

        On battery power return only the shown conversation's task, and only if it is not a draft.
        """
        task = self._tasks.get(shown) if shown is not None else None
        if on_battery:
            return None if task is None or task.is_draft else task
        return task or next(reversed(self._tasks.values()), None)

    @property
    def newest_title(self) -> TitleTask | None:
        return next(reversed(self._titles.values()), None)


def _append(tasks: dict[ConversationId, T], conversation_id: ConversationId, task: T) -> None:
    """Put a task at the end, in place of an older one. Drop the oldest task if there are too many."""
    tasks.pop(conversation_id, None)
    tasks[conversation_id] = task
    if len(tasks) > _MAX_TASKS:
        del tasks[next(iter(tasks))]
