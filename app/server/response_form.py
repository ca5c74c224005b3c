"""The form of an answer in OpenAI's Responses API: items, and events about them.

Source: OpenAI API reference, "Responses" and "Streaming events".
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
)
from app.server.errors import ErrorKind, ServerError
from app.server.fields import Fields
from app.server.logprobs import token_list
from app.server.protocol import AnswerForm, WholeAnswer, comment, promise, server_event
from engine.events import ModelFacts
from engine.types import TokenScore, ToolCall

_CODES = {
    ErrorKind.CONTEXT: "context_length_exceeded",
    ErrorKind.BUSY: "rate_limit_exceeded",
    ErrorKind.INVALID: "invalid_prompt",
}
_OTHER_CODE = "server_error"
_COMPLETED, _INCOMPLETE, _IN_PROGRESS, _FAILED = "completed", "incomplete", "in_progress", "failed"

_Object = dict[str, object]


@dataclass(frozen=True, slots=True)
class _TextKind:
    """A kind of items that have a text."""

    id_start: str
    part: str  # type of the only part of the content
    item_fields: _Object
    part_fields: _Object  # besides type and text
    event_fields: _Object  # in the events about the text

    def make_part(self, text: str) -> _Object:
        return {"type": self.part, "text": text, **self.part_fields}

    def make_item(self, item_id: str, content: list[_Object], status: str) -> _Object:
        return {"id": item_id, **self.item_fields, "content": content, "status": status}


_REASONING = _TextKind("rs_", "reasoning_text", {"type": "reasoning", "summary": []}, {}, {})
_MESSAGE = _TextKind(
    "msg_",
    "output_text",
    {"type": "message", "role": "assistant"},
    {"annotations": [], "logprobs": []},
    {"logprobs": []},
)


@dataclass(slots=True)
class _OpenItem:
    """An item whose text is still growing."""

    kind: _TextKind
    item_id: str
    text: str = ""


class ResponseForm(AnswerForm):
    """A response, whole or as events.

    Instructions and tools are not sent back: those of an agent have 60 kB, in three events.
    """

    def __init__(self, fields: Fields, chat: ChatRequest, model: ModelFacts) -> None:
        """Create the form.

        Args:
            fields: a body that was read without an error.
            chat: the request in this body.
            model: the model that answers.
        """
        self._client_names = chat.client_names
        reasoning, text = fields.section("reasoning"), fields.section("text")
        sampling = model.default_sampling
        temperature, top_p = fields.raw("temperature"), fields.raw("top_p")
        self._head: _Object = {
            "id": _new_id("resp_"),
            "object": "response",
            "created_at": int(time.time()),
            "model": model.name,
            "instructions": None,
            "max_output_tokens": fields.raw("max_output_tokens"),
            "metadata": {},
            "parallel_tool_calls": True,
            "previous_response_id": None,
            "reasoning": {
                "effort": reasoning and (reasoning.text("effort") or None),
                "summary": None,
            },
            "store": False,
            "temperature": sampling.temperature if temperature is None else temperature,
            "text": {"format": (text and text.raw("format")) or {"type": "text"}},
            "tool_choice": fields.raw("tool_choice") or "auto",
            "tools": [],
            "top_p": sampling.top_p if top_p is None else top_p,
            "truncation": "disabled",
        }
        self._items: list[_Object] = []  # complete ones
        self._open: _OpenItem | None = None
        self._num_events = 0

    @override
    def begin(self) -> Iterator[str]:
        yield self._event("response.created", response=self._response(_IN_PROGRESS))
        yield self._event("response.in_progress", response=self._response(_IN_PROGRESS))

    @override
    def events(self, piece: Piece) -> Iterator[str]:
        match piece:
            case SignOfLife(done, total):
                yield comment(f"{done}/{total}")
                # Codex counts no comments: it ends a stream after 5 minutes without an event.
                yield self._event("response.in_progress", response=self._response(_IN_PROGRESS))
            case Begun():
                pass
            case Thought(text):
                yield from self._add_text(_REASONING, text)
            case Said(text):
                yield from self._add_text(_MESSAGE, text)
            case Called(call):
                yield from self._close_item(_COMPLETED)
                yield from self._add_call(call)
            case Ended():
                if not self._items and self._open is None:
                    yield from self._open_item(_MESSAGE)
                yield from self._close_item(_status(piece), piece.scores)
                yield self._event(f"response.{_status(piece)}", response=self._finished(piece))

    @override
    def error(self, error: ServerError) -> Iterator[str]:
        code = _CODES.get(error.kind, _OTHER_CODE)
        failed = self._response(_FAILED, error={"code": code, "message": error.message})
        yield self._event("response.failed", response=failed)

    @override
    def whole(self, answer: WholeAnswer, ended: Ended) -> dict[str, object]:
        texts = [(_REASONING, answer.reasoning), (_MESSAGE, answer.text)]
        shown = [(kind, text) for kind, text in texts if text]
        if not shown and not answer.calls:
            shown = [(_MESSAGE, "")]
        for kind, text in shown:
            scored = {"logprobs": token_list(ended.scores)} if kind is _MESSAGE else {}
            item_id, content = _new_id(kind.id_start), [{**kind.make_part(text), **scored}]
            self._items.append(kind.make_item(item_id, content, _COMPLETED))
        self._items += [self._call_item(call) for call in answer.calls]
        if ended.at_limit:
            self._items[-1]["status"] = _INCOMPLETE
        return self._finished(ended)

    def _add_text(self, kind: _TextKind, text: str) -> Iterator[str]:
        """Add text to the open item, or to a new one if the open item is of another kind."""
        if self._open is None or self._open.kind is not kind:
            yield from self._close_item(_COMPLETED)
            yield from self._open_item(kind)
        assert self._open is not None
        self._open.text += text
        yield self._part_event(f"response.{kind.part}.delta", delta=text, **kind.event_fields)

    def _open_item(self, kind: _TextKind) -> Iterator[str]:
        self._open = _OpenItem(kind, _new_id(kind.id_start))
        item = kind.make_item(self._open.item_id, [], _IN_PROGRESS)
        yield self._event("response.output_item.added", output_index=len(self._items), item=item)
        yield self._part_event("response.content_part.added", part=kind.make_part(""))

    def _close_item(self, status: str, scores: Sequence[TokenScore] = ()) -> Iterator[str]:
        """Complete the open item, if there is one. scores: those of the whole answer."""
        if self._open is None:
            return
        kind, item_id, text = self._open.kind, self._open.item_id, self._open.text
        scored = {"logprobs": token_list(scores)} if kind is _MESSAGE else {}
        part = {**kind.make_part(text), **scored}
        yield self._part_event(f"response.{kind.part}.done", text=text, **scored)
        yield self._part_event("response.content_part.done", part=part)
        yield from self._complete(kind.make_item(item_id, [part], status))
        self._open = None

    def _add_call(self, call: ToolCall) -> Iterator[str]:
        item = self._call_item(call)
        place = {"item_id": item["id"], "output_index": len(self._items)}
        begun = {**item, "arguments": "", "status": _IN_PROGRESS}
        name = "response.function_call_arguments"
        yield self._event("response.output_item.added", output_index=len(self._items), item=begun)
        yield self._event(f"{name}.delta", **place, delta=call.arguments)
        yield self._event(f"{name}.done", **place, name=item["name"], arguments=call.arguments)
        yield from self._complete(item)

    def _complete(self, item: _Object) -> Iterator[str]:
        yield self._event("response.output_item.done", output_index=len(self._items), item=item)
        self._items.append(item)

    def _call_item(self, call: ToolCall) -> _Object:
        namespace, name = self._client_names.get(call.name, ("", call.name))
        item: _Object = {
            "id": _new_id("fc_"),
            "type": "function_call",
            "call_id": _new_id("call_"),
            "name": name,
            "arguments": call.arguments,
            "status": _COMPLETED,
        }
        return {**item, "namespace": namespace} if namespace else item

    def _finished(self, ended: Ended) -> _Object:
        return self._response(
            _status(ended),
            completed_at=None if ended.at_limit else int(time.time()),
            incomplete_details={"reason": "max_output_tokens"} if ended.at_limit else None,
            usage=_usage(ended),
        )

    def _response(self, status: str, **more: object) -> _Object:
        """Return the response with its complete items."""
        none = dict.fromkeys(("completed_at", "error", "incomplete_details", "usage"))
        return {**self._head, "status": status, "output": list(self._items), **none, **more}

    def _part_event(self, name: str, /, **more: object) -> str:
        """Return an event about the part of the open item."""
        assert self._open is not None
        place = {"item_id": self._open.item_id, "output_index": len(self._items)}
        return self._event(name, **place, content_index=0, **more)

    def _event(self, name: str, /, **more: object) -> str:
        number = self._num_events
        self._num_events += 1
        return server_event({"type": name, "sequence_number": number, **more}, name)


def _status(ended: Ended) -> str:
    return _INCOMPLETE if ended.at_limit else _COMPLETED


def _usage(ended: Ended) -> _Object:
    fed = ended.prompt_tokens - ended.restored
    return {
        "input_tokens": ended.prompt_tokens,
        "input_tokens_details": {"cached_tokens": ended.restored, "cache_write_tokens": fed},
        "output_tokens": ended.output_tokens,
        "output_tokens_details": {"reasoning_tokens": ended.reasoning_tokens},
        "total_tokens": ended.prompt_tokens + ended.output_tokens,
        "rejoinder": promise(ended),
    }


def _new_id(start: str) -> str:
    return f"{start}{uuid.uuid4().hex}"
