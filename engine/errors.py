"""The error tree.

EngineError
├── UserFixableError        you can fix it
│   ├── ModelFolderError        missing, broken or unsupported model folder
│   ├── UntrustedCodeError      the folder wants its own code to run
│   ├── TemplateError           the chat template refused the conversation
│   ├── CannotContinueError     the reply cannot be resumed with this model
│   ├── ContextFullError        the prompt does not fit the context
│   ├── MemoryFullError         the prompt does not fit the machine's memory
│   ├── DiskError               disk full, file not writable
│   ├── GgufError               a GGUF file that cannot be imported
│   └── LibraryError            the installation is broken
├── TryAgainError           try again
│   ├── OutOfMemoryError        the device had no memory left for an answer
│   ├── MemoryShortError        memory ran out in other work
│   ├── NoModelError            no model is loaded
│   └── CancelledWaitingError   cancelled before it started
└── BugError                our bug

The app derives its own errors from these, each beside the code that raises it. Two classes are no
EngineError because they never reach a user: probe.StateError, which the loader turns into
ModelFolderError, and core._LoadAbandonedError.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self, TypeVar

from engine.types import Problem

log = logging.getLogger(__name__)

T = TypeVar("T")


class EngineError(Exception):
    """An error with words for a person: title (what), cause (why), advice (what to do)."""

    title: ClassVar[str] = "Something went wrong."
    advice: ClassVar[str] = ""

    def __init__(self, cause: str, *, advice: str | None = None, details: str = "") -> None:
        super().__init__(cause)
        self.problem = Problem(
            title=self.title,
            cause=cause,
            advice=self.advice if advice is None else advice,
            details=details,
        )

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """The error for a problem that was found earlier."""
        error = cls(problem.cause)
        error.problem = problem
        return error


class UserFixableError(EngineError):
    """The person can mend the cause."""


class ModelFolderError(UserFixableError):
    """A model folder is missing, broken, incomplete or of an unknown architecture."""

    title = "This model can’t be loaded."
    advice = "Choose another model, or download this one again."


class UntrustedCodeError(UserFixableError):
    """A model folder asks for its own Python code to be run."""

    title = "This model wants to run its own code, so it was refused."
    advice = "Choose a model that needs no custom code."


class TemplateError(UserFixableError):
    """The model's chat template raised, or cannot be used safely."""

    title = "The model’s chat template refused this conversation."
    advice = "Edit the message or the system prompt, or choose another model."


class CannotContinueError(UserFixableError):
    """A reply cannot be continued with this model."""

    title = "This answer can’t go on."
    advice = "Regenerate it instead."


class ContextFullError(UserFixableError):
    """The prompt does not fit the model's context."""

    title = "This conversation no longer fits the model."
    advice = "Edit an earlier message, or go on in a new chat."


class MemoryFullError(UserFixableError):
    """The prompt needs more memory than the machine has left beside the model."""

    title = "There is not enough memory to read this conversation."
    advice = "Edit an earlier message, or choose a smaller model."


class DiskError(UserFixableError):
    """A file could not be written."""

    title = "The disk could not be written."
    advice = "Free some space or check the folder’s permissions, then try again."


class GgufError(UserFixableError):
    """A GGUF file cannot be imported."""

    title = "This GGUF file can’t be imported."
    advice = "Choose a model folder in MLX format."


class LibraryError(UserFixableError):
    """The libraries that the engine is built on are broken or missing."""

    title = "The engine can’t start."
    advice = "Install Rejoinder again (in a checkout: remove .venv, then make setup)."


class TryAgainError(EngineError):
    """The same action may succeed later."""


class OutOfMemoryError(TryAgainError):
    """The device ran out of memory."""

    title = "There was not enough memory for this answer."
    advice = "Close other apps or choose a smaller model, then try again."


class MemoryShortError(TryAgainError):
    """Memory ran out outside an answer: while a file was read, imported or saved."""

    title = "There was not enough memory."
    advice = "Close other apps, then try again."


class NoModelError(TryAgainError):
    """A request came while no model was loaded."""

    title = "No model is loaded."
    advice = "Choose a model first."


class CancelledWaitingError(TryAgainError):
    """A request was cancelled before its turn came."""

    title = "This answer was cancelled before it began."
    advice = "Send the message again."


class BugError(EngineError):
    """An invariant of ours failed."""

    title = "Rejoinder made a mistake."
    advice = "Try again; if it happens twice, please report the log."


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as a value.

    The error itself must not be kept: its traceback references frames, their locals may reference
    arrays, and with the error in one of them that is a cycle, which waits for a collection.
    """

    problem: Problem
    is_expected: bool  # an EngineError; any other one is logged with its traceback
    is_out_of_memory: bool


def attempt(task: str, work: Callable[[], T]) -> T | Failure:
    """Return what work returns, or its error as a value.

    A boundary: an error in one request, command or idle job must not end another one's work or the
    engine thread.

    Args:
        task: names the work in the log.
        work: is called once.
    """
    try:
        return work()
    except Exception as error:  # noqa: BLE001 — returned as a value
        return failure_of(task, error)


def failure_of(task: str, error: Exception) -> Failure:
    """Return an error as a value; log an unexpected one."""
    is_expected = isinstance(error, EngineError)
    if not is_expected:
        log.error("%s failed", task, exc_info=error)
    return Failure(problem_of(error), is_expected, is_out_of_memory(error))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error of Python or of MLX means that memory ran out."""
    words = str(error).lower()
    return isinstance(error, MemoryError) or "malloc" in words or "out of memory" in words


def problem_of(error: BaseException) -> Problem:
    """Return the words for the user; an unexpected error is our bug. The caller logs it."""
    if isinstance(error, EngineError):
        return error.problem
    if is_out_of_memory(error):
        return MemoryShortError("The device had none left.", details=repr(error)).problem
    return BugError(f"{type(error).__name__}: {error}.", details=repr(error)).problem
