"""The parts of a protocol of the server: how a body is read, and how an answer is written."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from app.server.chat_request import Called, ChatRequest, Ended, Piece, Said, Thought
from app.server.errors import ErrorKind, ServerError
from app.server.fields import Fields, as_json
from engine.events import ModelFacts
from engine.types import ToolCall


@dataclass(slots=True)
class WholeAnswer:
    """An answer that is collected until its end."""

    reasoning: str = ""
    text: str = ""
    calls: list[ToolCall] = field(default_factory=list[ToolCall])
    ended: Ended | None = None

    def add(self, piece: Piece) -> None:
        match piece:
            case Thought(text):
                self.reasoning += text
            case Said(text):
                self.text += text
            case Called(call):
                self.calls.append(call)
            case Ended():
                self.ended = piece
            case _:
                pass


class AnswerForm(ABC):
    """The form that a protocol gives to one answer."""

    @abstractmethod
    def begin(self) -> Iterator[str]:
        """Yield the events at the start of a stream."""

    @abstractmethod
    def events(self, piece: Piece) -> Iterator[str]:
        """Yield the events of a piece."""

    @abstractmethod
    def error(self, error: ServerError) -> Iterator[str]:
        """Yield the events of an error within a stream."""

    @abstractmethod
    def whole(self, answer: WholeAnswer, ended: Ended) -> dict[str, object]:
        """Return the body of a response without a stream."""

    def several(self, answers: Sequence[WholeAnswer], ended: Ended) -> dict[str, object]:
        """Return the body of a response with several answers. `ended` is their sum."""
        (only,) = answers
        return self.whole(only, ended)


def _always_answer(_fields: Fields, _model: ModelFacts) -> None:
    return None


@dataclass(frozen=True, slots=True)
class Protocol:
    """One address to which clients send chats."""

    # Translates a body. Raises ServerError.
    read: Callable[[Fields], ChatRequest]
    # Returns the form of the answer to a body, which was translated before.
    form: Callable[[Fields, ChatRequest, ModelFacts], AnswerForm]
    error_body: Callable[[ServerError], dict[str, object]]
    # Errors before the answer that a stream has as events, in place of the status of the response
    streamed_errors: frozenset[ErrorKind] = frozenset()
    # Returns the response to a body that only asks to load a model; None for any other body
    without_answer: Callable[[Fields, ModelFacts], dict[str, object] | None] = _always_answer
    streams: bool = False  # True if an answer is a stream, unless the body says otherwise
    stream_type: str = "text/event-stream"


# The end of a stream of OpenAI's older protocols
STREAM_END = "data: [DONE]\n\n"


def server_event(data: dict[str, object], name: str = "") -> str:
    """Return a server-sent event.

    Source: WHATWG HTML, section 9.2 "Server-sent events".
    """
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {as_json(data)}\n\n"


def comment(text: str) -> str:
    """Return a comment in a stream of server-sent events, which clients ignore."""
    return f": {text}\n\n"


def arguments_of(call: ToolCall) -> object:
    """Return the arguments of a call as a JSON value."""
    return json.loads(call.arguments)


def promise(ended: Ended) -> dict[str, object]:
    """Return the figures that only this server has, for the usage of every protocol."""
    return {
        "restored": ended.restored,
        "replayed": ended.replayed,
        "read": ended.read,
        "first_token_ms": round(ended.first_word_ms, 1),
    }
