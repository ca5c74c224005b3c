"""The queue of tasks that wait until the engine is idle. idle.py creates their jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from engine.events import ReadAhead
from engine.questions import MakePreview, NextPrompt, QuestionId
from engine.types import ConversationId


@dataclass(frozen=True, slots=True)
class TitleTask:
    """A question for a title."""

    question_id: QuestionId
    prompt: NextPrompt

    @property
    def conversation_id(self) -> ConversationId:
        return self.prompt.conversation_id


@dataclass(frozen=True, slots=True)
class PreviewTask:
    """A question for a preview."""

    question_id: QuestionId
    question: MakePreview

    @property
    def conversation_id(self) -> ConversationId:
        return self.question.request.conversation_id


# A task of the app or of a finished request. An audit has no task.
IdleTask = ReadAhead | PreviewTask | TitleTask

T = TypeVar("T")

# Highest number of queued tasks of each kind. If there are more, the oldest is dropped.
_MAX_TASKS = 32


def comes_before(task: IdleTask, running: IdleTask | None, shown: ConversationId | None) -> bool:
    """Return whether a queued task comes before the job in progress.

    Every task comes before an audit, and every other task before a title. The read-ahead of the
    shown conversation comes before a preview, and a preview before other read-aheads.

    running: the task of the job in progress; None for an audit.
    """
    if running is None:
        return True
    match task:
        case TitleTask():
            return False
        case PreviewTask():
            return not (isinstance(running, ReadAhead) and running.conversation_id == shown)
        case ReadAhead():
            return isinstance(running, TitleTask) or task.conversation_id == shown


class IdleQueue:
    """Queue of read-ahead tasks and titles, each the newest of a conversation, and one preview."""

    def __init__(self) -> None:
        self._tasks: dict[ConversationId, ReadAhead] = {}
        self._titles: dict[ConversationId, TitleTask] = {}
        self.preview: PreviewTask | None = None  # the newest one

    def add(self, task: IdleTask) -> None:
        """Add a task. It replaces an older one of its kind and conversation.

        A preview replaces any older preview.
        """
        match task:
            case ReadAhead():
                _append(self._tasks, task.conversation_id, task)
            case TitleTask():
                _append(self._titles, task.conversation_id, task)
            case PreviewTask():
                self.preview = task

    def remove(self, task: IdleTask) -> None:
        """Remove a task whose job begins."""
        match task:
            case ReadAhead():
                self.drop(task.conversation_id)
            case TitleTask():
                self.drop_title(task.conversation_id)
            case PreviewTask():
                self.preview = None

    def __contains__(self, conversation_id: ConversationId) -> bool:
        return conversation_id in self._tasks

    def __bool__(self) -> bool:
        return bool(self._tasks) or self.has_questions

    def drop(self, conversation_id: ConversationId) -> None:
        self._tasks.pop(conversation_id, None)

    def drop_title(self, conversation_id: ConversationId) -> None:
        self._titles.pop(conversation_id, None)

    def clear(self) -> None:
        self._tasks.clear()
        self._titles.clear()
        self.preview = None

    @property
    def has_questions(self) -> bool:
        """True if a title or a preview is queued."""
        return bool(self._titles) or self.preview is not None

    @property
    def questions(self) -> tuple[TitleTask | PreviewTask, ...]:
        """The queued titles, and the preview if there is one."""
        titles = tuple(self._titles.values())
        return titles if self.preview is None else (*titles, self.preview)

    def next_task(
        self, shown: ConversationId | None, *, reads: bool, on_battery: bool
    ) -> IdleTask | None:
        """Return the task with the highest priority among those that may run.

        Args:
            shown: the conversation that the window shows.
            reads: True if prompts are read ahead.
            on_battery: True if the machine runs on battery power.
        """
        task = self._first(shown, on_battery=on_battery) if reads else None
        if on_battery or (task is not None and task.conversation_id == shown):
            return task
        return self.preview or task or next(reversed(self._titles.values()), None)

    def _first(self, shown: ConversationId | None, *, on_battery: bool) -> ReadAhead | None:
        """Return the shown conversation's task, else the newest task, else None.

        On battery power return only the shown conversation's task, and only if it is not a draft.
        """
        task = self._tasks.get(shown) if shown is not None else None
        if on_battery:
            return None if task is None or task.is_draft else task
        return task or next(reversed(self._tasks.values()), None)


def _append(tasks: dict[ConversationId, T], conversation_id: ConversationId, task: T) -> None:
    """Put a task at the end, in place of an older one. Drop the oldest if there are too many."""
    tasks.pop(conversation_id, None)
    tasks[conversation_id] = task
    if len(tasks) > _MAX_TASKS:
        del tasks[next(iter(tasks))]
