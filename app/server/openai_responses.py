"""OpenAI's Responses API: POST /v1/responses.

Source: OpenAI API reference, "Responses". Nothing is stored, so a request must bring the whole
    chat.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from app.server.answer_rules import read_call_rule, read_schema
from app.server.chat_request import ChatRequest, normal_messages
from app.server.errors import ErrorKind, invalid, unsupported
from app.server.fields import Fields, as_json
from app.server.logprobs import MAX_LIKELIEST
from app.server.openai_chat import error_body
from app.server.protocol import Protocol
from app.server.response_form import ResponseForm
from app.server.response_tools import ResponseTools, read_tools
from app.server.shared_fields import (
    MAX_TOKENS,
    read_sampling,
    text_of,
    thinks_with,
)
from app.words import server as words
from engine.types import Message, Role, ToolCall

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
}
# Fields that refer to what OpenAI's servers have stored
_STORED = ("previous_response_id", "conversation", "prompt")
# Traces of tools that OpenAI's servers ran. The text of an answer has their results.
_IGNORED_ITEMS = (
    "code_interpreter_call",
    "file_search_call",
    "image_generation_call",
    "mcp_list_tools",
    "web_search_call",
)


# The only value of `include` that has an effect
_LOGPROBS = "message.output_text.logprobs"


def _ignored_parts(included: Iterable[str]) -> tuple[str, ...]:
    return ("include",) if set(included) - {_LOGPROBS} else ()


def read(fields: Fields) -> ChatRequest:
    """Translate the body of a request."""
    for name in _STORED:
        if fields.raw(name) is not None:
            raise invalid(words.nothing_stored(name), name)
    if fields.flag("background"):
        raise unsupported("background", "true")
    text = fields.section("text")
    schema = read_schema(text and text.section("format"))
    reasoning = fields.section("reasoning")
    included = fields.texts("include", most=32)
    likeliest = fields.integer("top_logprobs", 0, MAX_LIKELIEST)
    if likeliest is None and _LOGPROBS in included:
        likeliest = 0
    tools, rule = read_tools(fields), read_call_rule(fields)
    if rule.name:
        rule = replace(rule, name=tools.model_name("", rule.name))
    items = _Items(tools)
    messages = normal_messages(items.messages(fields))
    if not messages:
        raise invalid(words.NO_MESSAGES, "input")
    return ChatRequest(
        messages=messages,
        tools=tools.definitions,
        client_names=tools.client_names,
        may_call=rule.may_call,
        answer_format=rule.format_with(schema, tools.definitions),
        num_likeliest=likeliest,
        max_tokens=fields.integer("max_output_tokens", 1, MAX_TOKENS),
        thinking=reasoning and thinks_with(reasoning.text("effort")),
        sampling=read_sampling(fields),
        ignored=(*tools.ignored, *dict.fromkeys(items.ignored), *_ignored_parts(included)),
    )


class _Items:
    """Reads the items of a chat."""

    def __init__(self, tools: ResponseTools) -> None:
        self._tools = tools
        self._names: dict[str, str] = {}  # of called functions, by the id of the call
        self.ignored: list[str] = []

    def messages(self, fields: Fields) -> Iterator[Message]:
        """Yield the instructions and the messages of a body."""
        yield Message(role=Role.SYSTEM, content=fields.text("instructions"))
        value = fields.raw("input")
        if isinstance(value, list):
            yield from self._of_items(fields.sections("input"))
        elif value is None or isinstance(value, str):
            yield Message(role=Role.USER, content=fields.text("input"))
        else:
            raise invalid(words.wrong_field("input", words.TEXT_OR_LIST), "input")

    def _of_items(self, items: Iterable[Fields]) -> Iterator[Message]:
        reply = _Reply()
        for item in items:
            if self._add(reply, item):
                continue
            yield from reply.messages()
            reply = _Reply()
            yield self._message(item)
        yield from reply.messages()

    def _add(self, reply: _Reply, item: Fields) -> bool:
        """Add an item to a reply. Return False if the item belongs to no reply."""
        match kind := _kind(item):
            case "message" if item.text("role") == "assistant":
                reply.add_text(text_of(item, "content"))
            case "reasoning":
                reply.reasoning += text_of(item, "content")
            case "function_call":
                reply.calls.append(self._call(item, item.text("arguments") or "{}"))
            case "custom_tool_call":
                arguments = as_json({"input": item.text("input")})
                reply.calls.append(self._call(item, arguments))
            case _ if kind in _IGNORED_ITEMS:
                self.ignored.append(f"input.{kind}")
            case _:
                return False
        return True

    def _call(self, item: Fields, arguments: str) -> ToolCall:
        name = self._tools.model_name(item.text("namespace"), item.text("name"))
        self._names[item.text("call_id")] = name
        return ToolCall(name=name, arguments=arguments)

    def _message(self, item: Fields) -> Message:
        """Return the message of an item that belongs to no reply."""
        path = item.path_of("type")
        match kind := _kind(item):
            case "message":
                role = _ROLES.get(name := item.text("role"))
                if role is None:
                    path = item.path_of("role")
                    raise unsupported(path, name)
                return Message(role=role, content=text_of(item, "content"))
            case "function_call_output" | "custom_tool_call_output":
                name = self._names.get(item.text("call_id")) or item.text("name")
                return Message(role=Role.TOOL, content=text_of(item, "output"), tool_name=name)
            case "item_reference":
                raise invalid(words.nothing_stored(kind), path)
            case _:
                raise unsupported(path, kind)


class _Reply:
    """A reply, whose text, reasoning and calls are items of their own."""

    def __init__(self) -> None:
        self.reasoning = ""
        self.calls: list[ToolCall] = []
        self._texts: list[str] = []
        self._num_calls_before = 0  # number of the calls before the last text

    def add_text(self, text: str) -> None:
        # A text is divided where the model called a function within it.
        is_rest = len(self.calls) > self._num_calls_before
        if self._texts and is_rest:
            self._texts[-1] += text
        else:
            self._texts.append(text)
        self._num_calls_before = len(self.calls)

    def messages(self) -> Iterator[Message]:
        """Yield the reply, if there is one."""
        if self._texts or self.calls or self.reasoning:
            yield Message(
                role=Role.ASSISTANT,
                content="\n\n".join(self._texts),
                reasoning=self.reasoning,
                calls=tuple(self.calls),
            )


def _kind(item: Fields) -> str:
    """Return the type of an item, which messages and references need not have."""
    default = "message" if item.raw("role") is not None else "item_reference"
    return item.text("type") or default


# Codex shows its sentence about a full context only for an event within a stream.
RESPONSES = Protocol(read, ResponseForm, error_body, frozenset({ErrorKind.CONTEXT}))
