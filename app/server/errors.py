"""Errors that a client of the server gets. Each protocol has its own form for them."""

from __future__ import annotations

from enum import StrEnum

from app.words import server as words
from engine.problem import Problem, ProblemKind


class ErrorKind(StrEnum):
    """Kinds of errors, with the names that OpenAI's protocol uses."""

    INVALID = "invalid_request_error"
    CONTEXT = "context_length_exceeded"
    KEY = "authentication_error"
    FORBIDDEN = "permission_error"
    NOT_FOUND = "not_found_error"
    TOO_LARGE = "request_too_large"
    BUSY = "rate_limit_error"
    UNAVAILABLE = "overloaded_error"
    BROKEN = "api_error"


STATUS = {
    ErrorKind.INVALID: 400,
    ErrorKind.CONTEXT: 400,
    ErrorKind.KEY: 401,
    ErrorKind.FORBIDDEN: 403,
    ErrorKind.NOT_FOUND: 404,
    ErrorKind.TOO_LARGE: 413,
    ErrorKind.BUSY: 429,
    ErrorKind.UNAVAILABLE: 503,
    ErrorKind.BROKEN: 500,
}


class ServerError(Exception):
    """A request that was refused or failed. The message is one or two sentences for the user."""

    def __init__(
        self, kind: ErrorKind, message: str, param: str | None = None, reported: str = ""
    ) -> None:
        """Create an error.

        Args:
            kind: the kind, which gives the status of the response.
            message: what is wrong, and what to do.
            param: the field of the body that is the cause, if one is.
            reported: the message for reports, if `message` may quote a text of the client.
        """
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.param = param
        self.reported = reported or message

    @property
    def located_message(self) -> str:
        """The message with the field's name, for protocols that have no place for the name."""
        is_named = not self.param or self.param in self.message
        return self.message if is_named else f"{self.param}: {self.message}"

    @property
    def status(self) -> int:
        return STATUS[self.kind]


def error_of(problem: Problem) -> ServerError:
    """Return the error that a client gets for a problem of the engine."""
    match problem.kind:
        case ProblemKind.CONTEXT_FULL | ProblemKind.TEXT_TOO_LONG:
            return ServerError(ErrorKind.CONTEXT, str(problem), "messages")
        case ProblemKind.ANSWER_FORMAT:
            return ServerError(ErrorKind.INVALID, str(problem), reported=_reported(problem))
        case ProblemKind.NO_MODEL:
            return ServerError(ErrorKind.UNAVAILABLE, str(problem))
        case ProblemKind.PASSING:
            return ServerError(ErrorKind.UNAVAILABLE, str(problem), reported=_reported(problem))
        case ProblemKind.TEMPLATE | ProblemKind.CANNOT_CONTINUE:
            message = str(problem)
            return ServerError(ErrorKind.INVALID, message, "messages", _reported(problem))
        case _:
            return ServerError(ErrorKind.BROKEN, str(problem), reported=_reported(problem))


def _reported(problem: Problem) -> str:
    """Return a problem without its cause, which may quote a message: templates raise any text."""
    return f"{problem.title} {problem.advice}".strip()


def invalid(message: str, param: str | None = None) -> ServerError:
    return ServerError(ErrorKind.INVALID, message, param)


def unsupported(path: str, value: str) -> ServerError:
    """Return the error of a field whose value the server does not know."""
    message = words.unknown_value(path, value)
    return ServerError(ErrorKind.INVALID, message, path, words.unsupported_field(path))
