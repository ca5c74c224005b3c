"""Reading of bodies of Anthropic's messages.

A block's `cache_control` is not read: clients move it from message to message.
"""

from __future__ import annotations

from collections.abc import Iterator

from app.server.answer_rules import CallRule, read_schema
from app.server.chat_request import ChatRequest, normal_messages
from app.server.errors import invalid, unsupported
from app.server.fields import Fields, as_json
from app.server.shared_fields import MAX_TOKENS, function_tool, read_sampling
from app.words import server as words
from engine.types import Message, Role, ToolCall

_THINKING = {"enabled": True, "adaptive": None, "disabled": False}
# Claude Code begins the system text with a block for Anthropic's accounts. It ends with a hash that
# differs from chat to chat (seen in 2.1.197), so that everything after it would be read again.
_BILLING = "x-anthropic-billing-header:"


def read(fields: Fields) -> ChatRequest:
    """Translate the body of a request."""
    config = fields.section("output_config")
    schema = read_schema(config and config.section("format")) or read_schema(
        fields.section("output_format")
    )
    ignored: list[str] = []
    tools, rule = _read_tools(fields, ignored), _read_call_rule(fields)
    system = Message(role=Role.SYSTEM, content=_system(fields, ignored))
    messages = normal_messages([system, *_messages(fields)])
    if all(message.role not in (Role.USER, Role.TOOL) for message in messages):
        raise invalid(words.NO_MESSAGES, "messages")
    return ChatRequest(
        messages=messages,
        tools=tools,
        may_call=rule.may_call,
        answer_format=rule.format_with(schema, tools),
        max_tokens=fields.integer("max_tokens", 1, MAX_TOKENS),
        stops=fields.texts("stop_sequences", most=64),
        thinking=_read_thinking(fields),
        sampling=read_sampling(fields),
        ignored=tuple(ignored),
    )


def _read_tools(fields: Fields, ignored: list[str]) -> str:
    """Return the tools as Request.tools has them.

    ignored: gets the names of tools that Anthropic defines. They have no schema, and some of them
        run on Anthropic's servers.
    """
    tools: list[dict[str, object]] = []
    for tool in fields.sections("tools"):
        name, kind = tool.text("name"), tool.text("type", "custom")
        if kind == "custom":
            tool.section("input_schema")
            tools.append(function_tool(name, tool.text("description"), tool.raw("input_schema")))
        else:
            ignored.append(f"tools.{name or kind}")
    return as_json(tools) if tools else ""


def _read_call_rule(fields: Fields) -> CallRule:
    choice = fields.section("tool_choice")
    if choice is None:
        return CallRule()
    match choice.text("type"):
        case "auto":
            return CallRule()
        case "none":
            return CallRule(may_call=False)
        case "any" | "tool" as kind:
            once = bool(choice.flag("disable_parallel_tool_use"))
            name = choice.text("name") if kind == "tool" else ""
            if kind == "tool" and not name:
                path = choice.path_of("name")
                raise invalid(words.wrong_field(path, words.A_TEXT), path)
            return CallRule(must_call=True, name=name, calls_once=once)
        case kind:
            raise unsupported("tool_choice.type", kind)


def _read_thinking(fields: Fields) -> bool | None:
    """Return whether the model is to reason. Without the field it is not, as in the original."""
    thinking = fields.section("thinking")
    kind = "disabled" if thinking is None else thinking.text("type")
    if kind not in _THINKING:
        raise unsupported("thinking.type", kind)
    return _THINKING[kind]


def _system(fields: Fields, ignored: list[str]) -> str:
    texts = [_text_of(block) for block in _blocks(fields, "system")]
    kept = [text for text in texts if not text.startswith(_BILLING)]
    if len(kept) < len(texts):
        ignored.append(f"system.{_BILLING.rstrip(':')}")
    return "\n".join(kept)


def _messages(fields: Fields) -> Iterator[Message]:
    names: dict[str, str] = {}  # of called tools, by the id of the call
    for message in fields.sections("messages"):
        match message.text("role"):
            case "user":
                yield from _of_user(message, names)
            case "assistant":
                yield _reply(message, names)
            case "system":
                texts = map(_text_of, _blocks(message, "content"))
                yield Message(role=Role.SYSTEM, content="\n".join(texts))
            case role:
                raise unsupported(message.path_of("role"), role)


def _of_user(message: Fields, names: dict[str, str]) -> Iterator[Message]:
    """Yield the results of tools and the texts of a user's message, in their order."""
    texts: list[str] = []
    for block in _blocks(message, "content"):
        if block.text("type") != "tool_result":
            texts.append(_text_of(block))
            continue
        yield Message(role=Role.USER, content="\n".join(texts))
        texts = []
        result = "\n".join(map(_text_of, _blocks(block, "content")))
        yield Message(
            role=Role.TOOL,
            content=words.failed_call(result) if block.flag("is_error") else result,
            tool_name=names.get(block.text("tool_use_id"), ""),
        )
    yield Message(role=Role.USER, content="\n".join(texts))


def _reply(message: Fields, names: dict[str, str]) -> Message:
    """Return a reply. Its blocks of text follow each other as they were written."""
    text, thoughts, calls = "", list[str](), list[ToolCall]()
    for block in _blocks(message, "content"):
        match block.text("type"):
            case "thinking":
                thoughts.append(block.text("thinking"))
            case "redacted_thinking":
                pass
            case "tool_use":
                name = names[block.text("id")] = block.text("name")
                block.section("input")
                calls.append(ToolCall(name=name, arguments=as_json(block.raw("input") or {})))
            case _:
                text += _text_of(block)
    return Message(
        role=Role.ASSISTANT, content=text, reasoning="\n\n".join(thoughts), calls=tuple(calls)
    )


def _blocks(fields: Fields, name: str) -> Iterator[Fields]:
    """Yield the blocks of a field. A text stands for one block."""
    content = fields.raw(name)
    if isinstance(content, str):
        yield Fields({"type": "text", "text": content}, fields.path_of(name))
    else:
        yield from fields.sections(name)


def _text_of(block: Fields) -> str:
    """Return the text of a block.

    Raises:
        ServerError: it has none.
    """
    match block.text("type"):
        case "text":
            return block.text("text")
        case "tool_reference":  # in the result of a search for tools, which all are in the prompt
            return block.text("tool_name")
        case "image":
            raise invalid(words.CANNOT_SEE, block.path_of("type"))
        case "document":
            raise invalid(words.CANNOT_HEAR, block.path_of("type"))
        case kind:
            path = block.path_of("type")
            raise unsupported(path, kind)
