"""OpenAI's older completions: POST /v1/completions.

Source: OpenAI API reference, "Completions". The prompt is no raw text for the model: it is answered
as the only user message of a chat, through the chat template. The reasoning is not part of the
text.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import cast

from typing_extensions import override

from app.server.chat_request import (
    Begun,
    Called,
    ChatRequest,
    Ended,
    Piece,
    Said,
    SignOfLife,
    Thought,
    normal_messages,
)
from app.server.errors import ServerError, invalid
from app.server.fields import Fields
from app.server.logprobs import columns, read_likeliest_number
from app.server.openai_chat import error_body, usage_of
from app.server.protocol import (
    STREAM_END,
    AnswerForm,
    Protocol,
    WholeAnswer,
    comment,
    server_event,
)
from app.server.shared_fields import (
    empty_usage,
    read_limit,
    read_sampling,
    read_thinking,
    sends_usage,
)
from app.words import server as words
from engine.events import ModelFacts
from engine.types import Message, Role


def read(fields: Fields) -> ChatRequest:
    """Translate the body of a request."""
    for name in ("n", "best_of"):
        if fields.integer(name, 1, 1 << 31) not in (None, 1):
            raise invalid(words.too_many_choices(1), name)
    if fields.flag("echo"):
        raise invalid(words.NO_ECHO, "echo")
    if fields.text("suffix"):
        raise invalid(words.NO_SUFFIX, "suffix")
    messages = normal_messages([Message(role=Role.USER, content=_prompt(fields))])
    if not messages:
        raise invalid(words.NO_MESSAGES, "prompt")
    return ChatRequest(
        messages=messages,
        num_likeliest=read_likeliest_number(fields),
        max_tokens=read_limit(fields, "max_tokens"),
        stops=fields.texts("stop", most=16),
        thinking=read_thinking(fields),
        sampling=read_sampling(fields),
    )


def _prompt(fields: Fields) -> str:
    """Return the prompt: a text, or the only one of a list."""
    value = fields.raw("prompt")
    if isinstance(value, list) and len(cast("list[object]", value)) == 1:
        (text,) = fields.texts("prompt", most=1)
        return text
    return fields.text("prompt")


class _CompletionForm(AnswerForm):
    """A completion, whole or as chunks."""

    def __init__(self, fields: Fields, _chat: ChatRequest, model: ModelFacts) -> None:
        self._sends_usage = sends_usage(fields)
        self._no_usage = empty_usage(sends_usage=self._sends_usage)
        self._head: dict[str, object] = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": model.name,
        }

    @override
    def begin(self) -> Iterator[str]:
        yield from ()

    @override
    def events(self, piece: Piece) -> Iterator[str]:
        match piece:
            case SignOfLife(done, total):
                yield comment(f"{done}/{total}")
            case Thought():
                yield comment("")
            case Begun() | Called():
                pass
            case Said(text):
                yield server_event({**self._body(text), **self._no_usage})
            case Ended():
                yield server_event({**self._body("", piece), **self._no_usage})
                if self._sends_usage:
                    yield server_event({**self._head, "choices": [], "usage": usage_of(piece)})
                yield STREAM_END

    @override
    def error(self, error: ServerError) -> Iterator[str]:
        yield server_event(error_body(error))

    @override
    def whole(self, answer: WholeAnswer, ended: Ended) -> dict[str, object]:
        return {**self._body(answer.text, ended), "usage": usage_of(ended)}

    def _body(self, text: str, ended: Ended | None = None) -> dict[str, object]:
        reason = None if ended is None else ("length" if ended.at_limit else "stop")
        logprobs = columns(ended.scores) if ended is not None and ended.scores else None
        choice = {"index": 0, "text": text, "finish_reason": reason, "logprobs": logprobs}
        return {**self._head, "choices": [choice]}


COMPLETIONS = Protocol(read, _CompletionForm, error_body)
