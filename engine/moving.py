"""Moves of conversations from memory to disk, in idle time. Engine thread only.

A conversation is dropped from memory only after all of its resume points are on disk. If one of
them cannot be written, because of a limit or a fault, the conversation stays in memory.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from engine.cache.disk.moving import ChatMove
from engine.cache.disk.tier import DiskTier
from engine.errors import attempt
from engine.questions import MoveToDisk, QuestionId
from engine.types import ConversationId


@dataclass(slots=True)
class _Task:
    """One question, and the conversations of it that were not moved yet."""

    question_id: QuestionId
    waiting: deque[ConversationId]


class Mover:
    """The queue of questions of the class MoveToDisk, and the move in progress."""

    def __init__(self, drop: Callable[[ConversationId], None]) -> None:
        """Create a mover without questions.

        drop: function that drops the state of a conversation from memory.
        """
        self._drop = drop
        self._tasks: deque[_Task] = deque()
        self._move: ChatMove | None = None  # of the first waiting conversation of the first task
        self._tier: DiskTier | None = None  # the tier of that move

    @property
    def is_busy(self) -> bool:
        """True if a question is not answered yet."""
        return bool(self._tasks)

    def add(self, question_id: QuestionId, question: MoveToDisk) -> None:
        """Queue a question."""
        self._tasks.append(_Task(question_id, deque(question.conversation_ids)))

    def step(self, tier: DiskTier | None) -> QuestionId | None:
        """Do one step. Return the first question if it is done now.

        tier: the cached state on disk; None: nothing can be moved.
        """
        task = self._tasks[0]
        if tier is not None and task.waiting:
            is_going = attempt("moving cached state to disk", partial(self._advance, task, tier))
            if is_going is True:
                return None
            # It is moved, or could not be.
            self._move = self._tier = None
            task.waiting.popleft()
            return None
        self._tasks.popleft()
        # A move that the end of its tier cut off holds the cache, and with it the model's arrays.
        self._move = self._tier = None
        return task.question_id

    def _advance(self, task: _Task, tier: DiskTier) -> bool:
        """Do one step of the first conversation. Return False if it was the last one."""
        if self._move is None or tier is not self._tier:
            self._move, self._tier = tier.move(task.waiting[0]), tier
        if self._move.step():
            return True
        if self._move.is_whole:
            self._drop(task.waiting[0])
        return False
