"""Anthropic's messages, over HTTP, answered by a real engine."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from app.server import answer as answering
from app.server.anthropic_body import read
from app.server.anthropic_messages import MessageForm, error_body
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
from app.server.guard import Access
from app.server.kept_replies import KeptReplies
from app.server.known_chats import KnownChats
from app.server.protocol import WholeAnswer
from engine.events import ModelFacts
from engine.types import ForcedReply, Message, ReplyTokens, Role, ToolCall
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.served_model import KEY, Response, ServedModel, served_model
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template
from tests.fakes.trl_templates import build_with_template

PATH = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
SYSTEM = "Write a short story about a small boat. " * 6
MARK = {"cache_control": {"type": "ephemeral"}}
ENDED = Ended(
    at_limit=False,
    stop=None,
    prompt_tokens=10,
    restored=7,
    replayed=1,
    read=2,
    output_tokens=5,
    reasoning_tokens=3,
    first_word_ms=1.0,
)
CALL = ToolCall(name="add", arguments='{"first": 1.0, "second": [2]}')
PIECES: list[Piece] = [
    Begun(10, 7),
    SignOfLife(1, 2),
    Thought("Well"),
    Thought("."),
    Said("\n\n"),
    Said("I add."),
    Called(CALL),
    Said("\n"),
    Called(ToolCall(name="say", arguments="{}")),
    Said("\n"),
    ENDED,
]


@dataclass(frozen=True)
class Model:
    """The part of ModelFacts that the form reads."""

    name: str = "tiny"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def text(text: str, **more: object) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def message_of(stream: Response) -> dict[str, Any]:
    """Return the message of a stream, put together as clients do it."""
    return assembled(stream.events)


def assembled(events: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    assert all(name == data["type"] for name, data in events)
    data = [one for _, one in events if one["type"] != "ping"]
    message = data[0]["message"]
    assert [data[0]["type"], data[-1]["type"]] == ["message_start", "message_stop"]
    opened: int | None = None
    for one in data[1:-1]:
        match one["type"]:
            case "content_block_start":
                assert opened is None
                opened = one["index"]
                assert opened == len(message["content"])
                message["content"].append(dict(one["content_block"]))
            case "content_block_delta":
                assert one["index"] == opened
                _add(message["content"][opened], one["delta"])
            case "content_block_stop":
                assert one["index"] == opened
                block, opened = message["content"][opened], None
                if "partial" in block:
                    block["input"] = json.loads(block.pop("partial"))
            case _:
                assert one["type"] == "message_delta"
                message |= one["delta"]
                message["usage"] = one["usage"]
    assert opened is None
    return message


def _add(block: dict[str, Any], delta: dict[str, str]) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] += delta["text"]
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            block["signature"] += delta["signature"]
        case kind:
            assert kind == "input_json_delta"
            block["partial"] = block.get("partial", "") + delta["partial_json"]


LOOK: dict[str, Any] = {
    "name": "look",
    "description": "Look a word up.",
    "input_schema": {"type": "object", "properties": {"word": {"type": "string"}}},
}


def form() -> MessageForm:
    return MessageForm(Fields({}), ChatRequest(messages=()), cast("ModelFacts", Model()))


def whole(pieces: list[Piece]) -> dict[str, Any]:
    answer = WholeAnswer()
    for piece in pieces:
        answer.add(piece)
    assert answer.ended is not None
    return form().whole(answer, answer.ended)


def streamed(pieces: list[Piece]) -> dict[str, Any]:
    one = form()
    blocks = "".join(event for piece in pieces for event in one.events(piece)).split("\n\n")
    lines = [block.split("\n") for block in blocks if block.startswith("event: ")]
    events = [(head[7:], json.loads(data[6:])) for head, data in lines]
    return assembled(events)


# The form of an answer


@pytest.mark.parametrize("written", [whole, streamed])
def test_thoughts_text_and_calls_are_blocks(written: Any) -> None:
    message = written(PIECES)

    thinking, answer, call, other = message["content"]
    assert (thinking["type"], thinking["thinking"]) == ("thinking", "Well.")
    assert thinking["signature"]
    assert (answer["type"], answer["text"].strip()) == ("text", "I add.")
    assert call["input"] == {"first": 1.0, "second": [2]}
    assert (call["type"], call["name"], other["name"]) == ("tool_use", "add", "say")
    assert call["id"] != other["id"]
    assert (message["stop_reason"], message["stop_sequence"]) == ("tool_use", None)
    usage = message["usage"]
    assert usage["input_tokens"] == 3
    assert usage["cache_read_input_tokens"] == 7
    assert usage["cache_creation_input_tokens"] == 0
    assert usage["output_tokens"] == 5


@pytest.mark.parametrize(
    ("ended", "reason"),
    [
        (ENDED, "end_turn"),
        (replace(ENDED, at_limit=True), "max_tokens"),
        (replace(ENDED, stop="END"), "stop_sequence"),
    ],
)
@pytest.mark.parametrize("written", [whole, streamed])
def test_reason_of_the_end(written: Any, ended: Ended, reason: str) -> None:
    message = written([Begun(10, 7), Said("Hi."), ended])

    assert (message["stop_reason"], message["stop_sequence"]) == (reason, ended.stop)


@pytest.mark.parametrize("written", [whole, streamed])
def test_answer_of_blanks_has_no_block(written: Any) -> None:
    assert written([Begun(10, 7), Said(" "), Said("\n"), ENDED])["content"] == []


def test_sign_of_life_is_a_ping_after_the_start_of_the_message() -> None:
    one = form()
    waits = list(one.events(SignOfLife()))
    starts = list(one.events(Begun(10, 7)))
    pings = list(one.events(SignOfLife(1, 2)))

    assert waits[0].startswith(": ")
    assert starts[0].startswith("event: message_start\n")
    assert pings == ['event: ping\ndata: {"type": "ping"}\n\n']


@pytest.mark.parametrize("written", [whole, streamed])
@pytest.mark.parametrize("is_javascript", [False, True])
def test_blocks_that_a_client_sends_back_find_the_reply(written: Any, is_javascript: bool) -> None:
    """JavaScript writes 1.0 as 1."""
    chats = KnownChats(KeptReplies(None))
    first = read(Fields({"messages": [user("Add.")]}))
    placed = chats.place(first.messages)
    tokens = ReplyTokens.of([1, 2], answer_start=1, tokenizer_hash="")
    reply = Message(role=Role.ASSISTANT, content="I add.<call>", reply=tokens)
    calls = tuple(piece.call for piece in PIECES if isinstance(piece, Called))
    chats.note_reply(placed, reply, "\n\nI add.\n", calls)
    chats.release(placed)
    content = json.loads(json.dumps(written(PIECES)["content"]))
    if is_javascript:
        content[2]["input"]["first"] = 1
    results = [
        {"type": "tool_result", "tool_use_id": block["id"], "content": "3"} for block in content[2:]
    ]
    messages = [
        user("Add."),
        {"role": "assistant", "content": content},
        {"role": "user", "content": results},
    ]
    second = chats.place(read(Fields({"messages": messages})).messages)

    assert second.conversation_id == placed.conversation_id
    assert second.messages[1] == reply
    assert [(one.tool_name, one.content) for one in second.messages[2:]] == [
        ("add", "3"),
        ("say", "3"),
    ]


# Answers of the engine


def test_answer_has_text_reason_and_usage(served: ServedModel) -> None:
    served.replies.append(ForcedReply(text="A story."))
    answer = served.post(
        f"{PATH}?beta=true", model="any", max_tokens=50, messages=[user("What is it like?")]
    )

    assert answer.status == 200
    assert answer.body["content"] == [text("A story.")]
    assert (answer.body["role"], answer.body["stop_reason"]) == ("assistant", "end_turn")
    usage = answer.body["usage"]
    assert usage["input_tokens"] == int(answer.headers["x-rejoinder-read"]) > 0


def test_stream_gives_the_same_message_as_the_whole_answer(served: ServedModel) -> None:
    served.replies += [ForcedReply(text="In other words, a boat.")] * 2
    body: dict[str, Any] = {"messages": [user("Say that in other words.")], "max_tokens": 50}
    first = served.post(PATH, **body).body
    stream = served.post(PATH, **body, stream=True)
    message = message_of(stream)

    assert message["content"] == first["content"]
    assert message["stop_reason"] == first["stop_reason"]
    assert message["usage"]["output_tokens"] == first["usage"]["output_tokens"]
    start = stream.events[0][1]["message"]["usage"]
    for name in ("input_tokens", "cache_read_input_tokens"):
        assert start[name] == message["usage"][name]


def test_answer_ends_before_a_stop_sequence(served: ServedModel) -> None:
    served.replies.append(ForcedReply(text="one, two, three, four, five, six"))
    answer = served.post(PATH, messages=[user("Count.")], stop_sequences=["three", "five"])

    assert answer.body["content"] == [text("one, two, ")]
    assert answer.body["stop_reason"] == "stop_sequence"
    assert answer.body["stop_sequence"] == "three"


def test_answer_at_its_limit_says_so(served: ServedModel) -> None:
    answer = served.post(PATH, messages=[user("Hello.")], max_tokens=3)

    assert answer.body["stop_reason"] == "max_tokens"
    assert answer.body["usage"]["output_tokens"] == 3


def test_sampling_of_the_body_reaches_the_engine(served: ServedModel) -> None:
    served.post(PATH, messages=[user("Hi.")], max_tokens=1, temperature=0.25, top_p=0.5, top_k=20)

    sampling = served.requests[-1].sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.25, 0.5, 20)


@pytest.mark.parametrize(
    ("thinking", "wanted"),
    [
        (None, False),
        ({"type": "disabled"}, False),
        ({"type": "adaptive"}, None),
        ({"type": "enabled", "budget_tokens": 1024}, True),
    ],
)
def test_thinking_reaches_the_engine(
    served: ServedModel, thinking: object, wanted: bool | None
) -> None:
    served.post(PATH, messages=[user("Hi.")], max_tokens=1, thinking=thinking)

    assert served.requests[-1].thinking is wanted


def test_messages_get_one_form(calling: ServedModel) -> None:
    called = {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}, **MARK}
    calling.post(
        PATH,
        max_tokens=1,
        system=[text("Be brief.", **MARK), text("Be kind.")],
        messages=[
            {"role": "user", "content": [text("a", **MARK), text("b")]},
            {"role": "system", "content": [text("It is late.", **MARK)]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Well.", "signature": "x"},
                    {"type": "redacted_thinking", "data": "x"},
                    text("I "),
                    text("add."),
                    called,
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": "3", **MARK},
                    {
                        "type": "tool_result",
                        "tool_use_id": "none",
                        "is_error": True,
                        "content": [
                            text("c"),
                            {"type": "tool_reference", "tool_name": "d"},
                        ],
                    },
                    {"type": "tool_result", "tool_use_id": "toolu_1"},
                    text("Go on."),
                ],
            },
        ],
    )

    messages = calling.requests[-1].messages
    assert [(one.role, one.content, one.tool_name) for one in messages] == [
        (Role.SYSTEM, "Be brief.\nBe kind.", ""),
        (Role.USER, "a\nb", ""),
        (Role.USER, "It is late.", ""),
        (Role.ASSISTANT, "I add.", ""),
        (Role.TOOL, "3", "add"),
        (Role.TOOL, "Error: c\nd", ""),
        (Role.TOOL, "", "add"),
        (Role.USER, "Go on.", ""),
    ]
    assert messages[3].reasoning == "Well."
    assert messages[3].calls == (ToolCall(name="add", arguments='{"a": 1}'),)


def test_tools_reach_the_engine(calling: ServedModel) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    calling.post(
        PATH,
        max_tokens=1,
        messages=[user("Add.")],
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        tools=[{"name": "add", "description": "Add.", "input_schema": schema, **MARK}],
    )

    function = {"name": "add", "description": "Add.", "parameters": schema}
    assert json.loads(calling.requests[-1].tools) == [{"type": "function", "function": function}]


def test_what_is_ignored_is_named(calling: ServedModel) -> None:
    answer = calling.post(
        PATH,
        max_tokens=1,
        messages=[user("Hi.")],
        system=[text("x-anthropic-billing-header: cc_version=2.1; cch=1a2b3;"), text("Be brief.")],
        tools=[
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "custom", "name": "add", "input_schema": {"type": "object"}},
        ],
        thinking={"type": "adaptive", "display": "omitted"},
        metadata={"user_id": "me"},
        context_management={"edits": []},
        output_config={"effort": "high"},
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        betas=["x"],
        container=None,
    )

    named = answer.headers["x-rejoinder-ignored"].split(", ")
    assert sorted(named) == [
        "betas",
        "context_management",
        "metadata",
        "output_config.effort",
        "system.x-anthropic-billing-header",
        "thinking.display",
        "tool_choice.disable_parallel_tool_use",
        "tools.web_search",
    ]
    request = calling.requests[-1]
    assert request.messages[0].content == "Be brief."
    assert [one["function"]["name"] for one in json.loads(request.tools)] == ["add"]


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("a\r\nset-cookie: é", "a??set-cookie: ?"),
        (" a ", "a"),
        ("fox " * 200, "fox " * 124 + "fox"),  # it is cut at a blank
        ("  ", None),
    ],
)
def test_name_of_an_ignored_field_cannot_break_a_header(
    served: ServedModel, name: str, header: str | None
) -> None:
    answer = served.post(PATH, max_tokens=1, messages=[user("Hi.")], **{name: 1})

    assert answer.status == 200
    assert answer.headers.get("x-rejoinder-ignored") == header


@pytest.mark.parametrize("thinking", [{"type": "adaptive"}, {"type": "disabled"}])
def test_counted_tokens_are_those_of_the_request(
    calling: ServedModel, thinking: dict[str, Any]
) -> None:
    called = {"type": "tool_use", "id": "1", "name": "look", "input": {"word": "fox"}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": "A list of numbers."}
    messages: list[dict[str, Any]] = [user("What is it like?")]
    body: dict[str, Any] = {"messages": messages, "system": "Be brief.", "tools": [LOOK]}
    body |= {"max_tokens": 9, "thinking": thinking}
    num_tokens = 0
    for _turn in range(3):
        calling.replies.append(ForcedReply(text="It is red.", reasoning="Well."))
        counted = calling.post(COUNT, **body, model="any")
        usage = (answer := calling.post(PATH, **body).body)["usage"]
        num_tokens = usage["input_tokens"] + usage["cache_read_input_tokens"]
        assert abs(counted.body["input_tokens"] - num_tokens) <= 1
        messages += [
            {"role": "assistant", "content": answer["content"]},
            user("And then?"),
            {"role": "assistant", "content": [called]},
            {"role": "user", "content": [result]},
        ]
    messages.append({"role": "assistant", "content": "In other words"})

    assert calling.post(COUNT, **body).body["input_tokens"] > num_tokens
    assert len(calling.requests) == 3


# The promise


class Agent:
    """A client that marks its newest message, as Claude Code does.

    A marked message has a list of blocks, the others have a text if they can.
    """

    def __init__(self, served: ServedModel, *, keeps_thoughts: bool) -> None:
        self.served = served
        self.messages: list[dict[str, Any]] = []
        self._keeps_thoughts = keeps_thoughts

    def ask(self, *messages: dict[str, Any]) -> None:
        """Send messages after those before, and keep the answer."""
        self.messages += messages
        *above, last = self.messages
        is_stream = len(self.messages) % 4 == 1
        answer = self.served.post(
            PATH,
            system=[text(SYSTEM, **(MARK if is_stream else {}))],
            messages=[*above, {**last, "content": _marked(last["content"])}],
            max_tokens=24,
            stream=is_stream,
            temperature=1.0,
            thinking={"type": "enabled", "budget_tokens": 1024},
        )
        assert answer.status == 200
        content = (message_of(answer) if is_stream else answer.body)["content"]
        if not self._keeps_thoughts:
            content = [block for block in content if block["type"] != "thinking"]
        kinds = [block["type"] for block in content]
        sent = content[0]["text"] if kinds == ["text"] and len(self.messages) % 3 else content
        self.messages.append({"role": "assistant", "content": sent})
        self.served.await_idle()


def _marked(content: Any) -> list[dict[str, Any]]:
    blocks = [text(content)] if isinstance(content, str) else list(content)
    return [*blocks[:-1], {**blocks[-1], **MARK}]


@pytest.mark.parametrize(
    ("template", "keeps_thoughts"),
    rest_in_soak(
        product([Template.KEEPING, Template.THINKING], [True, False]),
        (Template.KEEPING, True),
        (Template.THINKING, True),
        (Template.THINKING, False),
    ),
)
@pytest.mark.parametrize("name", rest_in_soak(["qwen3_5", "lfm2", "llama"], "qwen3_5"))
def test_turns_of_a_client_feed_no_known_token(
    tiny_model: TinyModel, name: str, template: Template, keeps_thoughts: bool
) -> None:
    with served_model(tiny_model(name, template)) as served:
        agent = Agent(served, keeps_thoughts=keeps_thoughts)

        def ask(*messages: dict[str, Any]) -> None:
            # A reply of the thinking template is forced: a random one never ends its reasoning.
            if template is Template.THINKING:
                served.replies.append(ForcedReply(text="A boat.", reasoning="Well."))
            agent.ask(*messages)
            assert served.redo() == 0

        ask(user("What is it like?"), {"role": "system", "content": "It is late."})
        ask(user("And then?"))
        ask({"role": "user", "content": [text("In other words,"), text("please.")]})
        ask(user("Thank you."))
        agent.messages = agent.messages[:3]
        ask(user("Is it small?"))

        assert len({one.conversation_id for one in served.requests}) == 1
        assert served.requests[-1].messages[-2].reply is not None


@pytest.mark.parametrize("is_stream", [False, True])
def test_calls_and_results_feed_no_known_token(calling: ServedModel, is_stream: bool) -> None:
    calls = "".join(
        f"<tool_call>\n<function=look>\n<parameter=word>\n{word}\n</parameter>\n</function>\n"
        "</tool_call>\n"
        for word in ("fox", "dog")
    )
    messages: list[dict[str, Any]] = [user(f"{is_stream}: what is a fox?")]

    def ask(reply: str) -> dict[str, Any]:
        calling.replies.append(ForcedReply(text=reply, reasoning="Well."))
        answer = calling.post(
            PATH,
            messages=messages,
            tools=[LOOK],
            max_tokens=200,
            thinking={"type": "adaptive"},
            stream=is_stream,
        )
        message = message_of(answer) if is_stream else answer.body
        messages.append({"role": "assistant", "content": message["content"]})
        calling.await_idle()
        assert calling.redo() == 0
        return message

    called = ask(f"I look.\n\n{calls}")
    blocks = called["content"]
    assert called["stop_reason"] == "tool_use"
    assert [one["type"] for one in blocks] == ["thinking", "text", "tool_use", "tool_use"]
    assert [one["input"] for one in blocks[2:]] == [{"word": "fox"}, {"word": "dog"}]
    results = [
        {"type": "tool_result", "tool_use_id": one["id"], "content": "An animal."}
        for one in blocks[2:]
    ]
    messages.append({"role": "user", "content": results})
    ask("It is red.")
    messages.append(user("And a dog?"))
    ask("A pet.")

    replies = [one for one in calling.requests[-1].messages if one.role is Role.ASSISTANT]
    assert all(one.reply is not None for one in replies)


def test_system_message_after_a_result_keeps_the_thoughts_of_the_task(calling: ServedModel) -> None:
    """Claude Code sends reminders as system messages. After a message of the user, thoughts are dropped."""
    call = "<tool_call>\n<function=look>\n<parameter=word>\nfox\n</parameter>\n</function>\n</tool_call>"
    messages: list[dict[str, Any]] = [user("Reminded: what is a fox?")]
    for content in ("An animal.", "A red one."):
        calling.replies.append(ForcedReply(text=call, reasoning="I look it up."))
        answer = calling.post(
            PATH, messages=messages, tools=[LOOK], max_tokens=200, thinking={"type": "adaptive"}
        )
        (block,) = [one for one in answer.body["content"] if one["type"] == "tool_use"]
        result = {"type": "tool_result", "tool_use_id": block["id"], "content": content}
        messages += [
            {"role": "assistant", "content": answer.body["content"]},
            {"role": "user", "content": [result]},
            {"role": "system", "content": "Use the list of tasks."},
        ]
    calling.replies.append(ForcedReply(text="Red."))
    answer = calling.post(
        PATH, messages=messages, tools=[LOOK], max_tokens=200, thinking={"type": "adaptive"}
    )

    assert [one.role for one in calling.requests[-1].messages[-2:]] == [Role.ASSISTANT, Role.TOOL]
    assert calling.requests[-1].messages[-1].content == "A red one.\n\nUse the list of tasks."
    plan = answer.body["usage"]["rejoinder"]
    assert (plan["replayed"], plan["read"] < 60) == (0, True)


def test_stream_gives_signs_of_life_while_the_model_writes_a_call(
    calling: ServedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients end a stream that is silent for minutes, and a call is delivered at its end."""
    monkeypatch.setattr(answering, "SILENCE_S", -1.0)
    call = "<function=look>\n<parameter=word>\nfox fox fox fox\n</parameter>\n</function>"
    calling.replies.append(ForcedReply(text=f"<tool_call>\n{call}\n</tool_call>"))
    answer = calling.post(
        PATH, messages=[user("A fox?")], tools=[LOOK], max_tokens=200, stream=True
    )

    names = [name for name, _ in answer.events]
    assert names.index("ping") < names.index("content_block_start")
    assert names.count("ping") > 10
    assert message_of(answer)["stop_reason"] == "tool_use"


# Refusals


REFUSED: list[tuple[str, Any]] = [
    ("messages", []),
    ("messages", "Hi."),
    ("messages", [user("")]),
    ("messages", [{"role": "assistant", "content": "Hi."}]),
    ("messages", [{"role": "system", "content": "Be brief."}]),
    ("messages", [{"role": "tool", "content": "Hi."}]),
    ("messages", [{"role": "user", "content": [{"type": "image", "source": {}}]}]),
    ("messages", [{"role": "user", "content": [{"type": "document", "source": {}}]}]),
    ("messages", [{"role": "user", "content": [{"type": "wizard"}]}]),
    (
        "messages",
        [
            {
                "role": "user",
                "content": [{"type": "tool_result", "content": [{"type": "image"}]}],
            }
        ],
    ),
    (
        "messages",
        [
            {"role": "user", "content": "Hi."},
            {"role": "assistant", "content": [{"type": "tool_use", "input": "a"}]},
        ],
    ),
    ("system", 1),
    ("system", [{"type": "image"}]),
    ("temperature", "hot"),
    ("max_tokens", 0),
    ("stop_sequences", [1]),
    ("thinking", {"type": "deep"}),
    ("tools", [{"name": "add", "input_schema": "object"}]),
    ("tool_choice", {"type": "any"}),
    ("tool_choice", {"type": "tool", "name": "add"}),
    ("tool_choice", "auto"),
    ("output_config", {"format": {"type": "json_schema", "schema": []}}),
    ("output_format", {"type": "json_schema"}),
    ("stream", "yes"),
]


@pytest.mark.parametrize(("field", "value"), REFUSED)
def test_what_cannot_be_done_is_refused_with_a_sentence(
    served: ServedModel, field: str, value: object
) -> None:
    for path in (PATH, COUNT):
        body = {"messages": [user("Hi.")], "max_tokens": 1, field: value}
        if path == COUNT and field == "stream":
            continue
        answer = served.post(path, **body)

        assert answer.status == 400
        assert answer.body["type"] == "error"
        assert answer.body["error"]["type"] == "invalid_request_error"
        assert field in answer.body["error"]["message"]
    assert not served.requests


@pytest.mark.parametrize("path", [PATH, COUNT])
def test_refusals_have_the_form_of_the_protocol(path: str) -> None:
    with served_model(None, Access(key=KEY)) as served:
        hello = {"messages": [user("Hi.")], "max_tokens": 1}
        no_key = {"authorization": "", "x-api-key": "wrong"}
        answers = {
            "authentication_error": served.send("POST", path, hello, no_key),
            "permission_error": served.send("POST", path, hello, {"host": "evil.example"}),
            "invalid_request_error": served.send("POST", path, b"[]"),
            "overloaded_error": served.send("POST", path, hello, {"x-api-key": KEY}),
            "not_found_error": served.post(f"{path}/none", **hello),
        }

    for kind, answer in answers.items():
        assert answer.body["type"] == "error"
        assert answer.body["error"]["type"] == kind
    assert [one.status for one in answers.values()] == [401, 403, 400, 503, 404]


def test_user_messages_in_a_row_are_merged_for_a_template_that_refuses_them(tmp_path: Path) -> None:
    body: dict[str, Any] = {"messages": [user("a"), user("b"), user("c")], "max_tokens": 1}
    with served_model(build_with_template("cohere", tmp_path)) as served:
        counted = served.post(COUNT, **body)
        answer = served.post(PATH, **body)

        assert (counted.status, answer.status) == (200, 200)
        assert served.requests[-1].messages[0].content == "a\n\nb\n\nc"
        prompt = len(served.finished[-1].prompt_ids)
        assert abs(counted.body["input_tokens"] - prompt) <= 1


def test_refused_messages_change_no_later_prompt(served: ServedModel) -> None:
    """User messages in a row are merged only for templates that refuse them."""
    twice = [user("a"), user("b")]
    call = {"type": "tool_use", "id": "1", "name": "look", "input": {"word": "fox"}}
    refused = [*twice, {"role": "assistant", "content": [call]}, user("c")]

    assert served.post(PATH, messages=refused, max_tokens=1).status == 400
    assert served.post(PATH, messages=twice, max_tokens=1).status == 200
    assert [one.content for one in served.requests[-1].messages] == ["a", "b"]


def test_begun_reply_that_cannot_be_continued_is_refused(served: ServedModel) -> None:
    blank = {"type": "thinking", "thinking": ""}
    begun = {"role": "assistant", "content": [blank, blank]}
    answer = served.post(PATH, messages=[user("Hi."), begun], max_tokens=1)

    assert answer.status == 400
    assert answer.body["error"]["type"] == "invalid_request_error"


def test_too_long_prompt_is_refused_in_words_that_clients_know(served: ServedModel) -> None:
    most = served.get("/v1/models").body["data"][0]["context_length"]
    messages = [user("a 1 " * most)]
    answer = served.post(PATH, messages=messages, max_tokens=1)

    assert answer.status == 400
    assert answer.body["error"]["type"] == "invalid_request_error"
    assert answer.body["error"]["message"].startswith("Prompt is too long")
    assert f"{most:,}" in answer.body["error"]["message"]
    assert served.post(COUNT, messages=messages).body["input_tokens"] > most


def test_each_error_has_a_type_of_the_protocol() -> None:
    errors: list[Any] = [error_body(ServerError(kind, "x"))["error"] for kind in ErrorKind]

    assert {error["type"] for error in errors} == {
        "invalid_request_error",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "request_too_large",
        "rate_limit_error",
        "overloaded_error",
        "api_error",
    }


# Any JSON value, with the names and values that the protocol knows
_NAMES = st.sampled_from(
    [
        "type",
        "text",
        "content",
        "role",
        "system",
        "user",
        "assistant",
        "messages",
        "tools",
        "tool_choice",
        "name",
        "input_schema",
        "thinking",
        "input",
        "tool_use",
        "tool_result",
        "image",
        "document",
        "adaptive",
        "max_tokens",
        "stop_sequences",
        "temperature",
        "top_k",
        "top_p",
        "tool_use_id",
        "is_error",
        "id",
        "output_config",
        "format",
        "metadata",
        "stream",
        "cache_control",
    ]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | _NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=8,
)
_BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "thinking", "tool_use", "tool_result", "redacted_thinking"])},
    optional={
        "text": st.text(max_size=5) | _VALUES,
        "thinking": st.text(max_size=5),
        "id": _NAMES,
        "tool_use_id": _NAMES,
        "name": _NAMES | _VALUES,
        "input": st.dictionaries(_NAMES, _VALUES, max_size=2) | _VALUES,
        "content": st.text(max_size=5) | _VALUES,
        "is_error": st.booleans() | _VALUES,
    },
)
_MESSAGE = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system"]),
        "content": st.text(max_size=5) | st.lists(_BLOCK, max_size=3) | _VALUES,
    }
)
_BODY = st.fixed_dictionaries(
    {"messages": st.lists(_MESSAGE, max_size=4) | _VALUES, "max_tokens": st.just(1) | _VALUES},
    optional={
        "system": st.text(max_size=5) | st.lists(_BLOCK, max_size=2) | _VALUES,
        "tools": st.lists(st.dictionaries(_NAMES, _VALUES), max_size=2) | _VALUES,
        "thinking": st.fixed_dictionaries({"type": _NAMES}) | _VALUES,
        **dict.fromkeys(
            ("tool_choice", "stop_sequences", "temperature", "top_k", "top_p", "stream", "model"),
            _VALUES,
        ),
    },
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=_BODY, path=st.sampled_from([PATH, COUNT]))
def test_no_body_makes_the_server_fail(
    served: ServedModel, body: dict[str, Any], path: str
) -> None:
    if not isinstance(body["max_tokens"], list | dict | str | bool):
        body["max_tokens"] = 1  # long answers of a random model take time
    answer = served.post(path, **body)

    assert answer.status in (200, 400)
    if answer.status == 400:
        assert answer.body["error"]["type"] == "invalid_request_error"
    for _, event in answer.events:
        assert event["type"] != "error"
