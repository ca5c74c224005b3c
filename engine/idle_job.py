"""Interface of the jobs that use the engine's idle time, and of the model that makes them.

idle.py schedules the jobs. runner/read_ahead.py, runner/preview.py, runner/title.py and
checking/audit.py implement them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from engine.events import IdleKind, PreviewStage, ReadAhead
from engine.questions import NextPrompt, Preview
from engine.types import ConversationId, Request


class IdleJob(Protocol):
    """A job that works in short steps and may be stopped between any two of them."""

    @property
    def conversation_id(self) -> ConversationId | None: ...

    @property
    def kind(self) -> IdleKind: ...

    @property
    def num_cached(self) -> int:
        """Number of tokens of the prompt that were cached before the job."""
        ...

    @property
    def reads_pictures(self) -> bool:
        """True if the job feeds pictures, which takes longer than text of the same length."""
        ...

    @property
    def done(self) -> int:
        """Number of tokens that the job has fed so far."""
        ...

    @property
    def total(self) -> int:
        """Number of tokens that the job feeds in total."""
        ...

    def step(self) -> bool:
        """Do one step. Return False if the job is complete."""
        ...

    def stop(self) -> None:
        """End the job early. Keep the tokens that it fed if a later request can use them."""
        ...


class ReadAheadMaker(Protocol):
    """A function that creates the job for a read-ahead task."""

    def __call__(self, task: ReadAhead, *, displaces: bool) -> IdleJob | None:
        """Return a job, or None if there is nothing to feed or no room in the cache.

        Args:
            task: the messages of the next prompt.
            displaces: True if the job may evict less valuable state to make room.
        """
        ...


class PreviewWorker(Protocol):
    """A function that creates the job that writes a preview."""

    def __call__(
        self,
        request: Request,
        on_progress: Callable[[PreviewStage, int, Preview], None],
        on_made: Callable[[Preview], None],
    ) -> IdleJob:
        """Return a job.

        Args:
            request: the request whose answer is previewed.
            on_progress: called with the fields of PreviewProgress, after each step but the last.
            on_made: called with the complete preview.

        Raises:
            EngineError: the preview is refused, or the request would be.
        """
        ...


@dataclass(frozen=True, slots=True)
class IdleWorker:
    """Functions that create the idle jobs for the loaded model."""

    read_ahead: ReadAheadMaker
    # Creates an audit. Returns None if the cache has no state that can be audited.
    audit: Callable[[], IdleJob | None]
    # Tests a step of the model's faster ways. Returns False after the last step, which makes
    # another worker. None if they are tested.
    test_ways: Callable[[], bool] | None = None
    # Times a few passes of the model. Returns False once nothing is left to time.
    measure_passes: Callable[[], bool] | None = None
    # Creates the job that writes a title and calls the second argument with it, or returns None if
    # there is no memory for it or too much to read. None if the model makes no titles.
    title: Callable[[NextPrompt, Callable[[str], None]], IdleJob | None] | None = None
    preview: PreviewWorker | None = None  # None if the model makes no previews
    # Frees the state of the newest preview, which no request will continue.
    free_preview: Callable[[], None] | None = None
