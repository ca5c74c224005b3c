"""Classes of the errors that the engine reports to the user, and errors as values (`Failure`).

EngineError
├── UserFixableError        the user can fix the cause
│   ├── ModelFolderError        missing, broken or unsupported model folder
│   ├── UntrustedCodeError      the model folder requires running its own code
│   ├── TemplateError           the chat template refused the conversation
│   │   ├── ToolsError              tools or tool calls cannot be put into the prompt
│   │   └── TemplateLimitError      the chat template takes too much time or memory
│   ├── ToolCallError           a tool call that the model wrote cannot be read
│   ├── AnswerFormatError       an answer cannot be kept to the requested format
│   ├── TokenizerError          the model's tokenizer failed
│   ├── CannotContinueError     the model cannot continue this reply
│   ├── PictureError            the model cannot get a picture of the conversation
│   ├── ContextFullError        the prompt does not fit the context
│   │   └── TextTooLongError        the new message alone does not fit the context
│   ├── MemoryFullError         the prompt does not fit the machine's memory
│   ├── PreviewRefusedError     the engine does not preview an answer
│   ├── DiskError               disk full, file not writable
│   ├── GgufError               a GGUF file that cannot be imported
│   └── LibraryError            the installation is broken
├── TryAgainError           the same action may succeed later
│   ├── EngineEndedError        an error ended the engine thread
│   ├── EngineBlockedError      the engine thread is blocked
│   ├── OutOfMemoryError        the device had no memory left for an answer
│   ├── MemoryShortError        memory ran out while a file was read or saved
│   ├── NoModelError            no model is loaded
│   ├── NotAnsweredError        a question was withdrawn, or has no answer
│   └── CancelledWaitingError   cancelled before it started
└── BugError                a bug in Rejoinder

The app defines subclasses of these errors, in the modules that raise them. Exceptions that never
reach a user do not derive from EngineError. For example, the loader turns probe.StateError into
ModelFolderError.

The work of a request, a command or an idle job is called through `attempt`, which turns an error
into a `Failure`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self, TypeVar

from engine.problem import Problem, ProblemKind

log = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_CAUSE_LEN = 600


class EngineError(Exception):
    """An error that the app can show to the user.

    It has a title (what happened), a cause (why it happened) and advice (what to do). The cause may
    quote a model's files, so it is made printable.
    """

    title: ClassVar[str] = "Something went wrong."
    advice: ClassVar[str] = ""
    kind: ClassVar[ProblemKind] = ProblemKind.OTHER

    def __init__(self, cause: str, *, advice: str | None = None, details: str = "") -> None:
        super().__init__(cause)
        self.problem = Problem(
            title=self.title,
            cause=printable(cause, _MAX_CAUSE_LEN),
            advice=self.advice if advice is None else advice,
            details=details,
            kind=self.kind,
        )

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """Return an error of this class with the title, cause and advice of an existing problem."""
        error = cls(problem.cause)
        error.problem = problem
        return error


class UserFixableError(EngineError):
    """Base class of errors that the user can fix."""


class ModelFolderError(UserFixableError):
    """A model folder is missing, broken or incomplete, or mlx-lm does not support the model."""

    title = "This model can’t be loaded."
    advice = "Choose another model, or download this one again."
    kind = ProblemKind.NO_MODEL


class UntrustedCodeError(UserFixableError):
    """A model folder contains Python code that must be run to use the model."""

    title = "This model wants to run its own code, so it was refused."
    advice = "Choose a model that needs no custom code."


class TemplateError(UserFixableError):
    """The model's chat template raised an error, or cannot be used safely."""

    title = "The model’s chat template refused this chat."
    advice = "Edit the message or the system prompt, or choose another model."
    kind = ProblemKind.TEMPLATE


class ToolsError(TemplateError):
    """The tools or the tool calls of a request cannot be put into the prompt."""

    title = "The tools of this chat can’t be used."
    advice = "Choose another model, or leave out the tools."


class ToolCallError(UserFixableError):
    """A tool call that the model wrote cannot be read."""

    title = "The model’s tool call can’t be read."
    advice = "Regenerate the answer."


class AnswerFormatError(UserFixableError):
    """An answer cannot be kept to the format that its request asks for."""

    title = "The answer can’t be kept to this format."
    advice = "Change the schema or the tools, or leave out the format."
    kind = ProblemKind.ANSWER_FORMAT


class TemplateLimitError(TemplateError):
    """The model's chat template takes too much time or memory."""

    title = "The model’s chat template doesn’t end."
    advice = "Choose another model."


class TokenizerError(UserFixableError):
    """The model's tokenizer failed on a text or on token ids."""

    title = "The model’s tokenizer failed."
    advice = "Choose another model."


class CannotContinueError(UserFixableError):
    """The model cannot continue an unfinished reply."""

    title = "This answer can’t be continued."
    advice = "Regenerate it instead."
    kind = ProblemKind.CANNOT_CONTINUE


class PictureError(UserFixableError):
    """The model cannot see, or a picture of the conversation cannot be read."""

    title = "The pictures of this chat can’t be used."
    kind = ProblemKind.PICTURE

    @classmethod
    def of_blind_model(cls) -> PictureError:
        return cls("This model can’t see pictures.", advice="Choose a model that can.")

    @classmethod
    def of_narrow_picture(cls, width: int, height: int) -> PictureError:
        cause = f"A picture of {width:,} by {height:,} pixels is too narrow for this model."
        return cls(cause, advice="Cut it to a wider part.")

    @classmethod
    def of_folder(cls, fault: str) -> PictureError:
        """Return the error of a model folder with `fault` settings: "no" or "wrong"."""
        cause = f"The folder of this model has {fault} settings for pictures."
        return cls(cause, advice="Download the model again, or choose another one.")


class ContextFullError(UserFixableError):
    """The prompt does not fit the model's context."""

    title = "This chat is too long for the model."
    advice = "Edit an earlier message, or continue in a new chat."
    kind = ProblemKind.CONTEXT_FULL

    def __init__(self, cause: str, num_tokens: int = 0) -> None:
        """Create the error of a prompt with num_tokens. 0: the length is not known."""
        super().__init__(cause)
        self.problem = replace(self.problem, num_tokens=num_tokens)


class TextTooLongError(ContextFullError):
    """The new message does not fit the model's context, not even in a new conversation."""

    title = "This text is too long for the model."
    advice = "Shorten it, or choose a model with a longer context."
    kind = ProblemKind.TEXT_TOO_LONG


class MemoryFullError(UserFixableError):
    """The prompt needs more memory than the model's weights leave free."""

    title = "There is not enough memory to read this chat."
    advice = "Edit an earlier message, or choose a smaller model."


class PreviewRefusedError(UserFixableError):
    """The engine does not preview an answer. Nothing needs to be fixed: the message can be sent."""

    title = "No preview."


class DiskError(UserFixableError):
    """A file could not be written."""

    title = "The disk could not be written."
    advice = "Free some space or check the folder’s permissions, then try again."


class GgufError(UserFixableError):
    """A GGUF file cannot be imported."""

    title = "This GGUF file can’t be imported."
    advice = "Choose a model folder in MLX format."


class LibraryError(UserFixableError):
    """The libraries that the engine needs are broken or missing."""

    title = "The engine can’t start."
    advice = "Install Rejoinder again (in a checkout: remove .venv, then make setup)."


class TryAgainError(EngineError):
    """An error after which the same action may succeed later."""

    kind = ProblemKind.PASSING


class EngineEndedError(TryAgainError):
    """An error that was not handled ended the engine thread. A new thread has been started."""

    title = "The engine stopped."
    advice = "Load the model again, or choose another model."


class EngineBlockedError(TryAgainError):
    """One piece of work blocks the engine thread. A new thread has been started.

    The blocked thread keeps its model in memory until the piece of work ends.
    """

    title = "The engine no longer answers."
    advice = "Load the model again. If memory is short, open Rejoinder again first."


class OutOfMemoryError(TryAgainError):
    """The device ran out of memory."""

    title = "There was not enough memory for this answer."
    advice = "Close other apps or choose a smaller model, then try again."


class MemoryShortError(TryAgainError):
    """Memory ran out while a file was read, imported or saved."""

    title = "There was not enough memory."
    advice = "Close other apps, then try again."


class NoModelError(TryAgainError):
    """A request arrived while no model was loaded."""

    title = "No model is loaded."
    advice = "Choose a model first."


class NotAnsweredError(TryAgainError):
    """A question to the engine was withdrawn, or has no answer."""

    title = "The engine gave no answer."
    advice = "Try again."


class CancelledWaitingError(TryAgainError):
    """A request was cancelled before it started."""

    title = "This answer was canceled before it began."
    advice = "Send the message again."


class BugError(EngineError):
    """An error that only a bug in Rejoinder can cause."""

    title = "Rejoinder made a mistake."
    advice = "Try again; if it happens twice, please report the log."


@dataclass(frozen=True, slots=True)
class Failure:
    """An error as a value, without the exception object.

    An exception references its traceback, and the traceback references the local variables of every
    frame, such as large arrays. If a stored exception is part of a reference cycle, these arrays
    stay in memory until the next garbage collection.
    """

    problem: Problem
    # True for an EngineError. False for any other exception, which was logged: a bug, a panic of a
    # library, or lack of memory.
    is_expected: bool
    is_out_of_memory: bool


def attempt(task: str, work: Callable[[], T]) -> T | Failure:
    """Call work and return its result, or a Failure if it raises.

    An error in one request, command or idle job must not end other work or the engine thread.

    Args:
        task: a name for the work, written to the log if an unexpected error occurs.
        work: the function to call.
    """
    try:
        return work()
    except BaseException as error:
        if not is_failure(error):
            raise
        return failure_of(task, error)


def is_failure(error: BaseException) -> bool:
    """Return whether an exception means that a piece of work failed.

    True for every Exception, and for a panic of a library that is written in Rust, which derives
    from BaseException. False for KeyboardInterrupt and SystemExit.
    """
    return isinstance(error, Exception) or _is_panic(error)


def _is_panic(error: BaseException) -> bool:
    # Each Rust library has its own class, and none of these classes can be imported.
    return type(error).__module__ == "pyo3_runtime"


def failure_of(task: str, error: BaseException) -> Failure:
    """Return an exception as a Failure. Log the exception unless it is an EngineError."""
    is_expected = isinstance(error, EngineError)
    if not is_expected:
        log.error("%s failed", task, exc_info=error)
    return Failure(problem_of(error), is_expected, is_out_of_memory(error))


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an exception of Python or MLX was caused by lack of memory."""
    words = str(error).lower()
    return isinstance(error, MemoryError) or "malloc" in words or tells_of_full_memory(words)


def tells_of_full_memory(words: str) -> bool:
    """Return whether lower-case words of MLX, Metal or the system report a lack of memory."""
    # Metal: "Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)".
    return "out of memory" in words or "insufficient memory" in words


def printable(text: str, max_len: int = 300) -> str:
    """Return a text of foreign code without control characters, and cut to max_len characters."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text[: max_len + 1])
    return shown if len(text) <= max_len else f"{shown[: max_len - 1]}…"


def problem_of(error: BaseException) -> Problem:
    """Return a description of an exception for the user. Do not log the exception.

    An exception becomes a BugError if it is not an EngineError and not caused by lack of memory.
    """
    if isinstance(error, EngineError):
        return error.problem
    if _is_panic(error):
        # A panic comes from tokenizers, which runs a file of the model. The other library in Rust,
        # llguidance, reports a panic of a matcher as an error (grammar/matcher.py).
        return TokenizerError(f"It says: {error}.", details=repr(error)).problem
    if is_out_of_memory(error):
        return MemoryShortError("The device had none left.", details=repr(error)).problem
    return BugError(f"{type(error).__name__}: {error}.", details=repr(error)).problem
