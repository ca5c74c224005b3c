"""OpenAI's chat completions: POST /v1/chat/completions.

Source: OpenAI API reference, "Chat Completions".
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence

from typing_extensions import override

from app.server.answer_rules import read_call_rule, read_schema
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
    sum_of,
)
from app.server.errors import ServerError, invalid, unsupported
from app.server.fields import Fields, as_json
from app.server.logprobs import read_likeliest, token_list
from app.server.protocol import (
    STREAM_END,
    AnswerForm,
    Protocol,
    WholeAnswer,
    comment,
    promise,
    server_event,
)
from app.server.shared_fields import (
    empty_usage,
    function_tool,
    read_limit,
    read_sampling,
    read_thinking,
    sends_usage,
    text_of,
)
from app.words import server as words
from engine.events import ModelFacts
from engine.types import Message, Role, TokenScore, ToolCall

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
_MAX_ANSWERS = 8


def read(fields: Fields) -> ChatRequest:
    """Translate the body of a request."""
    num_answers = fields.integer("n", 1, 1 << 31) or 1
    if num_answers > _MAX_ANSWERS:
        raise invalid(words.too_many_choices(_MAX_ANSWERS), "n")
    most = read_limit(fields, "max_completion_tokens")
    older_most = read_limit(fields, "max_tokens")
    tools, rule = read_tools(fields), read_call_rule(fields)
    messages = normal_messages(_messages(fields))
    if not messages:
        raise invalid(words.NO_MESSAGES, "messages")
    return ChatRequest(
        messages=messages,
        tools=tools,
        may_call=rule.may_call,
        answer_format=rule.format_with(read_schema(fields.section("response_format")), tools),
        num_answers=num_answers,
        num_likeliest=read_likeliest(fields),
        max_tokens=older_most if most is None else most,
        stops=fields.texts("stop", most=16),
        thinking=read_thinking(fields),
        sampling=read_sampling(fields),
    )


def _messages(fields: Fields) -> Iterator[Message]:
    names: dict[str, str] = {}  # of called functions, by the id of the call
    for message in fields.sections("messages"):
        role = _ROLES.get(name := message.text("role"))
        if role is None:
            raise unsupported(message.path_of("role"), name)
        called = names.get(message.text("tool_call_id"), "")
        tool_name = called or (message.text("name") if role is Role.TOOL else "")
        yield Message(
            role=role,
            content=text_of(message, "content"),
            reasoning=message.text("reasoning_content") or message.text("reasoning"),
            calls=tuple(_calls(message, names)),
            tool_name=tool_name,
        )


def _calls(message: Fields, names: dict[str, str]) -> Iterator[ToolCall]:
    for call in message.sections("tool_calls"):
        function = call.section("function")
        if function is None:
            wanted = words.wrong_field(call.path_of("function"), words.AN_OBJECT)
            raise invalid(wanted, call.path_of("function"))
        name = function.text("name")
        names[call.text("id")] = name
        yield ToolCall(name=name, arguments=function.text("arguments") or "{}")


def read_tools(fields: Fields) -> str:
    """Return the tools as Request.tools has them."""
    tools: list[dict[str, object]] = []
    for tool in fields.sections("tools"):
        function = tool.section("function")
        if tool.text("type") != "function" or function is None:
            kind = tool.text("type")
            raise unsupported(tool.path_of("type"), kind)
        tools.append(
            function_tool(
                function.text("name"), function.text("description"), function.raw("parameters")
            )
        )
    return as_json(tools) if tools else ""


class ChatForm(AnswerForm):
    """A chat completion, whole or as chunks."""

    def __init__(self, fields: Fields, chat: ChatRequest, model: ModelFacts) -> None:
        self._sends_usage = sends_usage(fields)
        self._no_usage = empty_usage(sends_usage=self._sends_usage)
        self._head: dict[str, object] = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": model.name,
        }
        self._num_calls = [0] * chat.num_answers  # of each answer
        self._ended: list[Ended] = []

    @override
    def begin(self) -> Iterator[str]:
        for index in range(len(self._num_calls)):
            yield self._chunk(index, {"role": "assistant", "content": ""})

    @override
    def events(self, piece: Piece) -> Iterator[str]:
        match piece:
            case SignOfLife(done, total):
                yield comment(f"{done}/{total}")
            case Begun():
                pass
            case Thought(text):
                yield self._chunk(piece.index, {"reasoning_content": text})
            case Said(text):
                yield self._chunk(piece.index, {"content": text})
            case Called(call):
                numbered = {"index": self._num_calls[piece.index], **_as_call(call)}
                yield self._chunk(piece.index, {"tool_calls": [numbered]})
                self._num_calls[piece.index] += 1
            case Ended():
                reason = _reason(piece, self._num_calls[piece.index])
                yield self._chunk(piece.index, {}, reason, piece.scores)
                self._ended.append(piece)
                if len(self._ended) == len(self._num_calls):
                    yield from self._end()

    @override
    def error(self, error: ServerError) -> Iterator[str]:
        yield server_event(error_body(error))

    @override
    def whole(self, answer: WholeAnswer, ended: Ended) -> dict[str, object]:
        return self.several([answer], ended)

    @override
    def several(self, answers: Sequence[WholeAnswer], ended: Ended) -> dict[str, object]:
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [_choice(answer, index) for index, answer in enumerate(answers)],
            "usage": usage_of(ended),
        }

    def _end(self) -> Iterator[str]:
        """Yield the end of the stream, after all answers."""
        if self._sends_usage:
            usage: dict[str, object] = {"choices": [], "usage": usage_of(sum_of(self._ended))}
            yield server_event({**self._head, "object": "chat.completion.chunk", **usage})
        yield STREAM_END

    def _chunk(
        self,
        index: int,
        delta: dict[str, object],
        reason: str | None = None,
        scores: Sequence[TokenScore] = (),
    ) -> str:
        logprobs = _logprobs(scores)
        choice = {"index": index, "delta": delta, "finish_reason": reason, "logprobs": logprobs}
        chunk: dict[str, object] = {"object": "chat.completion.chunk", "choices": [choice]}
        return server_event({**self._head, **chunk, **self._no_usage})


def _choice(answer: WholeAnswer, index: int) -> dict[str, object]:
    assert answer.ended is not None
    message: dict[str, object] = {
        "role": "assistant",
        "content": answer.text or None,
        "refusal": None,
    }
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [_as_call(call) for call in answer.calls]
    return {
        "index": index,
        "message": message,
        "finish_reason": _reason(answer.ended, len(answer.calls)),
        "logprobs": _logprobs(answer.ended.scores),
    }


def _logprobs(scores: Sequence[TokenScore]) -> dict[str, object] | None:
    return {"content": token_list(scores), "refusal": None} if scores else None


def _as_call(call: ToolCall) -> dict[str, object]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": f"call_{uuid.uuid4().hex[:24]}", "type": "function", "function": function}


def _reason(ended: Ended, num_calls: int) -> str:
    if ended.at_limit:
        return "length"
    return "tool_calls" if num_calls else "stop"


def usage_of(ended: Ended) -> dict[str, object]:
    """Return the usage of an answer, with the figures of the promise."""
    return {
        "prompt_tokens": ended.prompt_tokens,
        "completion_tokens": ended.output_tokens,
        "total_tokens": ended.prompt_tokens + ended.output_tokens,
        "prompt_tokens_details": {"cached_tokens": ended.restored},
        "completion_tokens_details": {"reasoning_tokens": ended.reasoning_tokens},
        "rejoinder": promise(ended),
    }


def error_body(error: ServerError) -> dict[str, object]:
    code = error.kind.value
    return {"error": {"message": error.message, "type": code, "param": error.param, "code": code}}


CHAT_COMPLETIONS = Protocol(read, ChatForm, error_body)
