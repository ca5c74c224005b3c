"""Anthropic's messages: POST /v1/messages.

Source: Claude API reference, "Messages", "Streaming messages" and "Errors".
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from typing_extensions import override

from app.server.anthropic_body import read
from app.server.chat_request import (
    Begun,
    Called,
    ChatRequest,
    Ended,
    Piece,
    Said,
    SignOfLife,
    Thought,
)
from app.server.errors import ErrorKind, ServerError
from app.server.fields import Fields
from app.server.protocol import (
    AnswerForm,
    Protocol,
    WholeAnswer,
    arguments_of,
    comment,
    promise,
    server_event,
)
from app.words import server as words
from engine.events import ModelFacts
from engine.types import ToolCall

# Clients keep only reasoning with a signature. This server does not check it.
_SIGNATURE = "rejoinder"
_THINKING: dict[str, object] = {"type": "thinking", "thinking": "", "signature": ""}
_TEXT: dict[str, object] = {"type": "text", "text": ""}


class MessageForm(AnswerForm):
    """A message, whole or as events.

    Texts of blanks are left out, because clients drop them or refuse them.
    """

    def __init__(self, _fields: Fields, _chat: ChatRequest, model: ModelFacts) -> None:
        self._head: dict[str, object] = {
            "id": f"msg_{uuid.uuid4().hex[:24]}",
            "type": "message",
            "role": "assistant",
            "model": model.name,
        }
        self._has_begun = False
        self._index = -1  # of the newest block
        self._open = ""  # the type of the newest block until its end
        self._blanks = ""  # text that is delivered with the text after it
        self._num_calls = 0

    @override
    def begin(self) -> Iterator[str]:
        # message_start has figures that are known with the piece Begun.
        yield from ()

    @override
    def events(self, piece: Piece) -> Iterator[str]:
        match piece:
            case SignOfLife():
                # Clients expect no event before message_start.
                yield _event({"type": "ping"}) if self._has_begun else comment("waiting")
            case Begun():
                yield from self._start(piece)
            case Thought(text):
                yield from self._open_block(_THINKING)
                yield self._delta({"type": "thinking_delta", "thinking": text})
            case Said(text):
                yield from self._text(text)
            case Called(call):
                yield from self._call(call)
            case Ended():
                yield from self._close_block()
                reason = _reason(piece, self._num_calls)
                yield _event({"type": "message_delta", "delta": reason, "usage": _usage(piece)})
                yield _event({"type": "message_stop"})

    @override
    def error(self, error: ServerError) -> Iterator[str]:
        yield _event(error_body(error))

    @override
    def whole(self, answer: WholeAnswer, ended: Ended) -> dict[str, object]:
        content: list[dict[str, object]] = []
        if answer.reasoning:
            content.append({**_THINKING, "thinking": answer.reasoning, "signature": _SIGNATURE})
        if answer.text.strip():
            content.append({**_TEXT, "text": answer.text})
        content += [{**_block(call), "input": arguments_of(call)} for call in answer.calls]
        reason = _reason(ended, len(answer.calls))
        return {**self._head, "content": content, **reason, "usage": _usage(ended)}

    def _start(self, begun: Begun) -> Iterator[str]:
        if not self._has_begun:
            self._has_begun = True
            usage = _tokens(begun.prompt_tokens - begun.restored, begun.restored, 0)
            message: dict[str, object] = {**self._head, "content": [], "usage": usage}
            message |= {"stop_reason": None, "stop_sequence": None}
            yield _event({"type": "message_start", "message": message})

    def _text(self, text: str) -> Iterator[str]:
        if self._open != "text":
            text, self._blanks = self._blanks + text, ""
            if text.isspace():
                self._blanks = text
                return
            yield from self._open_block(_TEXT)
        yield self._delta({"type": "text_delta", "text": text})

    def _call(self, call: ToolCall) -> Iterator[str]:
        self._num_calls += 1
        yield from self._open_block(_block(call))
        yield self._delta({"type": "input_json_delta", "partial_json": call.arguments})
        yield from self._close_block()

    def _open_block(self, block: dict[str, object]) -> Iterator[str]:
        if self._open != block["type"]:
            yield from self._close_block()
            self._open = str(block["type"])
            self._index += 1
            start: dict[str, object] = {"type": "content_block_start", "index": self._index}
            yield _event({**start, "content_block": block})

    def _close_block(self) -> Iterator[str]:
        if self._open == "thinking":
            yield self._delta({"type": "signature_delta", "signature": _SIGNATURE})
        if self._open:
            self._open = ""
            yield _event({"type": "content_block_stop", "index": self._index})

    def _delta(self, delta: dict[str, object]) -> str:
        return _event({"type": "content_block_delta", "index": self._index, "delta": delta})


def _event(data: dict[str, object]) -> str:
    return server_event(data, str(data["type"]))


def _block(call: ToolCall) -> dict[str, object]:
    """Return the block of a call, without its arguments."""
    call_id = f"toolu_{uuid.uuid4().hex[:24]}"
    return {"type": "tool_use", "id": call_id, "name": call.name, "input": {}}


def _reason(ended: Ended, num_calls: int) -> dict[str, object]:
    if ended.at_limit:
        reason = "max_tokens"
    elif ended.stop is not None:
        reason = "stop_sequence"
    else:
        reason = "tool_use" if num_calls else "end_turn"
    return {"stop_reason": reason, "stop_sequence": ended.stop}


def _usage(ended: Ended) -> dict[str, object]:
    return {
        **_tokens(ended.replayed + ended.read, ended.restored, ended.output_tokens),
        "output_tokens_details": {"thinking_tokens": ended.reasoning_tokens},
        "rejoinder": promise(ended),
    }


def _tokens(read_now: int, restored: int, written: int) -> dict[str, object]:
    return {
        "input_tokens": read_now,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": restored,
        "output_tokens": written,
    }


def error_body(error: ServerError) -> dict[str, object]:
    kind, message = error.kind, error.located_message
    if kind is ErrorKind.CONTEXT:
        # Claude Code knows by these words that it must shorten the chat.
        kind, message = ErrorKind.INVALID, f"{words.PROMPT_TOO_LONG}: {error.message}"
    return {"type": "error", "error": {"type": kind.value, "message": message}}


MESSAGES = Protocol(read, MessageForm, error_body)
