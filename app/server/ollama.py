"""Ollama's chats and completions: POST /api/chat and POST /api/generate.

Source: Ollama API reference, https://docs.ollama.com/api. A prompt of /api/generate is answered as
the only user message of a chat, through the chat template. A request without a message or prompt
loads the model.

A stream has one JSON object in each line. It has no comments, and Ollama's clients for Go and
Python fail at an empty line. So the sign of life is a part without text, as Ollama itself sends it
between tokens.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial

from typing_extensions import override

from app.server.answer_rules import read_call_rule, schema_text
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
from app.server.errors import ServerError, invalid, unsupported
from app.server.fields import Fields, as_json
from app.server.logprobs import read_likeliest, token_list
from app.server.openai_chat import read_tools
from app.server.protocol import AnswerForm, Protocol, WholeAnswer, arguments_of, promise
from app.server.shared_fields import MAX_TOKENS, read_sampling
from app.words import server as words
from engine.events import ModelFacts
from engine.types import Message, Role, ToolCall

STREAM_TYPE = "application/x-ndjson"
_ROLES = {
    "system": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
_EFFORTS = ("low", "medium", "high", "max")
_NS_IN_MS = 1e6

# Returns the fields of a text, a reasoning and calls.
_Part = Callable[[str, str, Sequence[dict[str, object]]], dict[str, object]]


def read_chat(fields: Fields) -> ChatRequest:
    """Translate the body of a chat."""
    return _request(fields, tuple(_messages(fields)), "messages", read_tools(fields))


def read_generate(fields: Fields) -> ChatRequest:
    """Translate the body of a completion."""
    for name in ("template", "context", "raw"):
        if fields.raw(name):
            raise _unknown_value(fields, name)
    if fields.text("suffix"):
        raise invalid(words.NO_SUFFIX, "suffix")
    _refuse_images(fields)
    messages = (
        Message(role=Role.SYSTEM, content=fields.text("system")),
        Message(role=Role.USER, content=fields.text("prompt")),
    )
    return _request(fields, messages, "prompt")


def _request(
    fields: Fields,
    messages: Sequence[Message],
    param: str,
    tools: str = "",
) -> ChatRequest:
    """Translate what both protocols have in common. param: the field of the messages."""
    rule = read_call_rule(fields)
    normal = normal_messages(messages)
    if all(message.role not in (Role.USER, Role.TOOL) for message in normal):
        raise invalid(words.NO_MESSAGES, param)
    options = fields.section("options") or Fields({})
    sampling = read_sampling(options)
    if options.raw("seed") == -1:  # Ollama's default: a random seed
        del sampling["seed"]
    most = options.integer("num_predict", -MAX_TOKENS, MAX_TOKENS)
    return ChatRequest(
        messages=normal,
        tools=tools,
        may_call=rule.may_call,
        num_likeliest=read_likeliest(fields),
        answer_format=rule.format_with(_read_schema(fields), tools),
        max_tokens=most if most and most > 0 else None,  # Ollama: no limit at 0 or below
        stops=options.texts("stop", most=16),
        thinking=_read_thinking(fields),
        sampling=sampling,
    )


def _read_schema(fields: Fields) -> str:
    """Return the JSON schema of the answer. "": the answer is free."""
    match wanted := fields.raw("format") or "":
        case "":
            return ""
        case "json":
            return schema_text({"type": "object"}, "format")
        case str():
            raise unsupported("format", wanted)
        case _:
            return schema_text(wanted, "format")


def _messages(fields: Fields) -> Iterator[Message]:
    names: dict[str, str] = {}  # of called functions, by the id of the call
    for message in fields.sections("messages"):
        role = _ROLES.get(name := message.text("role"))
        if role is None:
            raise unsupported(message.path_of("role"), name)
        _refuse_images(message)
        called = names.get(message.text("tool_call_id"), "")
        tool_name = message.text("tool_name") or message.text("name") or called
        yield Message(
            role=role,
            content=message.text("content"),
            reasoning=message.text("thinking"),
            calls=tuple(_calls(message, names)),
            tool_name=tool_name if role is Role.TOOL else "",
        )


def _calls(message: Fields, names: dict[str, str]) -> Iterator[ToolCall]:
    for call in message.sections("tool_calls"):
        function = call.section("function")
        if function is None:
            path = call.path_of("function")
            raise invalid(words.wrong_field(path, words.AN_OBJECT), path)
        name = names[call.text("id")] = function.text("name")
        function.section("arguments")
        yield ToolCall(name=name, arguments=as_json(function.raw("arguments") or {}))


def _unknown_value(fields: Fields, name: str) -> ServerError:
    value = fields.raw(name)
    text = value if isinstance(value, str) else as_json(value)
    return unsupported(name, text)


def _refuse_images(fields: Fields) -> None:
    if fields.raw("images"):
        raise invalid(words.CANNOT_SEE, fields.path_of("images"))


def _read_thinking(fields: Fields) -> bool | None:
    """Return whether the model is to reason. Ollama has a flag or an effort."""
    if not isinstance(fields.raw("think"), str):
        return fields.flag("think")
    effort = fields.text("think")
    if effort not in _EFFORTS:
        raise unsupported("think", effort)
    return True


class OllamaForm(AnswerForm):
    """An answer, whole or as lines."""

    def __init__(self, part: _Part, _fields: Fields, _chat: ChatRequest, model: ModelFacts) -> None:
        self._part = part
        self._model = model
        self._num_calls = 0

    @override
    def begin(self) -> Iterator[str]:
        yield from ()

    @override
    def events(self, piece: Piece) -> Iterator[str]:
        match piece:
            case SignOfLife():
                yield self._line()
            case Begun():
                pass
            case Thought(text):
                yield self._line(reasoning=text)
            case Said(text):
                yield self._line(text)
            case Called(call):
                yield self._line(calls=[_as_call(call, self._num_calls)])
                self._num_calls += 1
            case Ended():
                yield f"{as_json({**_head(self._model), **self._part('', '', ()), **_end(piece)})}\n"

    @override
    def error(self, error: ServerError) -> Iterator[str]:
        yield f"{as_json(error_body(error))}\n"

    @override
    def whole(self, answer: WholeAnswer, ended: Ended) -> dict[str, object]:
        calls = [_as_call(call, index) for index, call in enumerate(answer.calls)]
        part = self._part(answer.text, answer.reasoning, calls)
        return {**_head(self._model), **part, **_end(ended)}

    def _line(
        self, text: str = "", reasoning: str = "", calls: Sequence[dict[str, object]] = ()
    ) -> str:
        part = self._part(text, reasoning, calls)
        return f"{as_json({**_head(self._model), **part, 'done': False})}\n"


def _head(model: ModelFacts) -> dict[str, object]:
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    return {"model": model.name, "created_at": now}


def _loaded(part: _Part, name: str, fields: Fields, model: ModelFacts) -> dict[str, object] | None:
    """Return the response to a body whose field has no message or prompt; else None."""
    if fields.raw(name) not in (None, "", []):
        return None
    return {**_head(model), **part("", "", ()), "done": True, "done_reason": "load"}


def _of_chat(text: str, reasoning: str, calls: Sequence[dict[str, object]]) -> dict[str, object]:
    return {"message": {"role": "assistant", "content": text, **_more(reasoning, calls)}}


def _of_generate(
    text: str, reasoning: str, calls: Sequence[dict[str, object]]
) -> dict[str, object]:
    return {"response": text, **_more(reasoning, calls)}


def _more(reasoning: str, calls: Sequence[dict[str, object]]) -> dict[str, object]:
    more: dict[str, object] = {"thinking": reasoning} if reasoning else {}
    return {**more, "tool_calls": calls} if calls else more


def _as_call(call: ToolCall, index: int) -> dict[str, object]:
    function = {"index": index, "name": call.name, "arguments": arguments_of(call)}
    return {"id": f"call_{uuid.uuid4().hex[:24]}", "function": function}


def _end(ended: Ended) -> dict[str, object]:
    """Return the fields of the end of an answer. Durations are in nanoseconds."""
    logprobs = {"logprobs": token_list(ended.scores)} if ended.scores else {}
    return {
        **logprobs,
        "done": True,
        "done_reason": "length" if ended.at_limit else "stop",
        "total_duration": round(ended.total_ms * _NS_IN_MS),
        "load_duration": round(ended.queue_ms * _NS_IN_MS),
        "prompt_eval_count": ended.prompt_tokens,
        "prompt_eval_duration": round((ended.first_word_ms - ended.queue_ms) * _NS_IN_MS),
        "eval_count": ended.output_tokens,
        "eval_duration": round((ended.total_ms - ended.first_word_ms) * _NS_IN_MS),
        "rejoinder": promise(ended),
    }


def error_body(error: ServerError) -> dict[str, object]:
    return {"error": error.located_message}


def _protocol(read: Callable[[Fields], ChatRequest], part: _Part, messages: str) -> Protocol:
    return Protocol(
        read,
        partial(OllamaForm, part),
        error_body,
        without_answer=partial(_loaded, part, messages),
        streams=True,
        stream_type=STREAM_TYPE,
    )


CHAT = _protocol(read_chat, _of_chat, "messages")
GENERATE = _protocol(read_generate, _of_generate, "prompt")
