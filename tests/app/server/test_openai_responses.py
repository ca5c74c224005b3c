"""OpenAI's Responses API over HTTP, answered by a real engine, and the form of its answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.server import response_tools
from app.server.chat_request import Called, Ended, Piece, Said, SignOfLife, Thought
from app.server.errors import ErrorKind, ServerError
from app.server.fields import Fields
from app.server.openai_responses import RESPONSES
from app.server.protocol import AnswerForm, WholeAnswer
from app.server.shared_fields import function_tool
from engine.events import ModelFacts
from engine.types import ForcedReply, Message, Role, SamplingParams, ToolCall
from tests.fakes.served_model import ServedModel

PATH = "/v1/responses"
MODEL = ModelFacts(
    path="/models/tiny",
    name="tiny",
    model_type="llama",
    context_len=1000,
    weight_bytes=0,
    has_thinking=True,
    can_keep_thinking=True,
    tokenizer_hash="",
    template_hash="",
    kv_bytes_per_token=1,
    snapshot_bytes=0,
    default_sampling=SamplingParams(),
)
ENDED = Ended(
    at_limit=False,
    stop=None,
    prompt_tokens=10,
    restored=6,
    replayed=1,
    read=3,
    output_tokens=4,
    reasoning_tokens=2,
    first_word_ms=5.0,
)
CALL = ToolCall(name="look", arguments='{"at": "the sea"}')
WAIT = {
    "type": "namespace",
    "name": "agents",
    "tools": [{"type": "function", "name": "wait", "parameters": {"type": "object"}}],
}


def text_item(role: str, text: str) -> dict[str, Any]:
    part = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": part, "text": text}]}


def call_item(call_id: str, **more: Any) -> dict[str, Any]:
    call = {"type": "function_call", "call_id": call_id, "name": "look", "arguments": "{}"}
    return {**call, **more}


def sent(served: ServedModel, **body: Any) -> tuple[Message, ...]:
    """Send a request. Return the messages that reached the engine."""
    answer = served.post(PATH, **{"max_output_tokens": 1, **body})
    assert answer.status == 200, answer.text
    return served.requests[-1].messages


def translated(**body: Any) -> tuple[Message, ...]:
    return RESPONSES.read(Fields(body)).messages


def new_form(**body: Any) -> AnswerForm:
    fields = Fields({"input": "Hi.", **body})
    return RESPONSES.form(fields, RESPONSES.read(fields), MODEL)


def written(form: AnswerForm, *pieces: Piece) -> list[dict[str, Any]]:
    """Return the events of an answer."""
    blocks = [*form.begin(), *(event for piece in pieces for event in form.events(piece))]
    return [json.loads(block.split("data: ")[1]) for block in blocks if "data: " in block]


def test_whole_response_has_items_and_usage(served: ServedModel) -> None:
    served.replies.append(ForcedReply(text="A story."))
    response = served.post(PATH, model="any", input="What is it like?").body

    (item,) = response["output"]
    assert (item["type"], item["role"], item["status"]) == ("message", "assistant", "completed")
    assert [(part["type"], part["text"]) for part in item["content"]] == [
        ("output_text", "A story.")
    ]
    assert (response["object"], response["status"]) == ("response", "completed")
    usage = response["usage"]
    own = usage["rejoinder"]
    assert usage["input_tokens"] == own["restored"] + own["replayed"] + own["read"]
    assert usage["input_tokens_details"]["cached_tokens"] == own["restored"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


def test_stream_ends_with_the_response_that_its_events_describe(served: ServedModel) -> None:
    served.replies.append(ForcedReply(text="In other words, a boat."))
    stream = served.post(PATH, input="Say that in other words.", stream=True)

    assert all(name == event["type"] for name, event in stream.events)
    events = [event for _, event in stream.events]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    kinds = list(dict.fromkeys(event["type"] for event in events))
    assert kinds == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    deltas = [event["delta"] for event in events if event["type"] == kinds[4]]
    assert "".join(deltas) == "In other words, a boat."
    assert events[-1]["response"]["output"] == [events[-2]["item"]]
    assert events[-1]["response"]["id"] == events[0]["response"]["id"]


def test_response_at_its_limit_is_incomplete(served: ServedModel) -> None:
    body = {"input": "Hello.", "max_output_tokens": 3}
    whole = served.post(PATH, **body).body
    name, last = served.post(PATH, **body, stream=True).events[-1]

    assert name == "response.incomplete"
    for response in (whole, last["response"]):
        assert response["status"] == response["output"][-1]["status"] == "incomplete"
        assert response["incomplete_details"] == {"reason": "max_output_tokens"}
        assert response["usage"]["output_tokens"] == 3


def test_items_become_messages() -> None:
    messages = translated(
        instructions="Be brief.",
        input=[
            text_item("developer", "Be kind."),
            {"role": "user", "content": "What is there?"},
            {"type": "reasoning", "summary": [], "content": None},
            {"type": "web_search_call", "id": "ws_1", "status": "completed"},
            text_item("assistant", "I look."),
            call_item("c1"),
            call_item("c2", name="wait", namespace="agents"),
            {"type": "function_call_output", "call_id": "c1", "output": "A boat."},
            {
                "type": "function_call_output",
                "call_id": "c2",
                "output": [{"type": "input_text", "text": "Done."}],
            },
            text_item("developer", "It is late."),
            text_item("user", "Go on."),
        ],
    )

    assert [(one.role, one.content, one.tool_name) for one in messages] == [
        (Role.SYSTEM, "Be brief.\n\nBe kind.", ""),
        (Role.USER, "What is there?", ""),
        (Role.ASSISTANT, "I look.", ""),
        (Role.TOOL, "A boat.", "look"),
        (Role.TOOL, "Done.\n\nIt is late.", "wait"),
        (Role.USER, "Go on.", ""),
    ]
    assert [call.name for call in messages[2].calls] == ["look", "wait"]


def test_reasoning_item_is_the_reasoning_of_the_reply_behind_it(served: ServedModel) -> None:
    content = [{"type": "reasoning_text", "text": "Well."}]
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "content": content}
    items = [
        text_item("user", "Hi."),
        thought,
        text_item("assistant", "Hello."),
        text_item("user", "And?"),
    ]

    assert sent(served, input=items)[1] == Message(
        role=Role.ASSISTANT, content="Hello.", reasoning="Well."
    )


def test_freeform_call_is_a_call_with_one_argument() -> None:
    call = {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "a\nb"}
    result = {"type": "custom_tool_call_output", "call_id": "c1", "output": "Done."}
    messages = translated(input=[text_item("user", "Hi."), call, result])

    assert json.loads(messages[1].calls[0].arguments) == {"input": "a\nb"}
    assert messages[2].tool_name == "patch"


def test_functions_of_namespaces_are_tools() -> None:
    look = {
        "type": "function",
        "name": "look",
        "description": "Look.",
        "strict": False,
        "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
    }
    chat = RESPONSES.read(Fields({"input": "Hi.", "tools": [look, WAIT]}))

    functions = [tool["function"] for tool in json.loads(chat.tools)]
    assert functions[0] == {
        "name": "look",
        "description": "Look.",
        "parameters": look["parameters"],
    }
    assert [function["name"] for function in functions] == ["look", "wait"]


def test_tools_of_another_server_are_named(served: ServedModel) -> None:
    tools = [{"type": "web_search"}, {"type": "custom", "name": "patch"}, {"type": "web_search"}]
    answer = served.post(PATH, input="Hi.", tools=tools, store=False, max_output_tokens=1)

    assert answer.headers["x-rejoinder-ignored"] == "tools.web_search, tools.custom, store"
    assert not served.requests[-1].tools


def test_effort_of_the_reasoning_switches_it(served: ServedModel) -> None:
    efforts = {"none": False, "minimal": False, "high": True, None: None}
    for effort, thinking in efforts.items():
        sent(served, input="Hi.", reasoning={"effort": effort, "summary": "auto"})
        assert served.requests[-1].thinking is thinking


def test_fields_of_advice_are_accepted_and_named(served: ServedModel) -> None:
    advice = {
        "store": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "key",
        "parallel_tool_calls": True,
        "truncation": "auto",
        "metadata": {"a": "b"},
        "client_metadata": {"turn": 1},
        "odd\r\nname": 1,
    }
    answer = served.post(
        PATH, input="Hi.", max_output_tokens=1, text={"verbosity": "low"}, **advice
    )

    assert answer.status == 200
    names = answer.headers["x-rejoinder-ignored"].split(", ")
    assert sorted(names) == sorted([*list(advice)[:-1], "odd??name", "text.verbosity"])


REFUSED: list[tuple[str, object]] = [
    ("input", None),
    ("input", []),
    ("input", 5),
    ("input", ["Hi."]),
    ("input", [{"role": "wizard", "content": "Hi."}]),
    ("input", [{"role": "user", "content": [{"type": "input_image", "image_url": "a"}]}]),
    ("input", [{"type": "item_reference", "id": "msg_1"}]),
    ("input", [{"id": "msg_1"}]),
    ("input", [text_item("assistant", "Hello.")]),
    ("input", [{"type": "compaction", "encrypted_content": "a"}]),
    ("previous_response_id", "resp_1"),
    ("conversation", "conv_1"),
    ("prompt", {"id": "pmpt_1"}),
    ("background", True),
    ("instructions", ["Be brief."]),
    ("tools", [{"name": "look"}]),
    ("tools", [{"type": "function", "name": "look", "parameters": []}]),
    ("tools", [{"type": "namespace", "name": "a", "tools": [{"type": "custom"}]}]),
    ("tool_choice", "required"),
    ("tool_choice", {"type": "function", "name": "look"}),
    ("text", {"format": {"type": "json_schema"}}),
    ("reasoning", "high"),
    ("max_output_tokens", 0),
    ("temperature", "hot"),
    ("top_logprobs", 21),
]


@pytest.mark.parametrize(("field", "value"), REFUSED)
def test_what_cannot_be_done_is_refused_with_the_field(
    served: ServedModel, field: str, value: object
) -> None:
    answer = served.post(PATH, **{"input": "Hi.", "max_output_tokens": 1, field: value})

    assert answer.status == 400
    assert answer.body["error"]["param"].startswith(field)
    assert not served.requests


def test_too_long_prompt_fails_within_a_stream(served: ServedModel) -> None:
    """Codex knows this error only there."""
    most = served.get("/v1/models").body["data"][0]["context_length"]
    body = {"input": "a 1 " * most}
    whole, stream = served.post(PATH, **body), served.post(PATH, **body, stream=True)

    assert (whole.status, whole.body["error"]["code"]) == (400, "context_length_exceeded")
    assert [name for name, _ in stream.events][::2] == ["response.created", "response.failed"]
    failed = stream.events[-1][1]["response"]
    assert failed["status"] == "failed"
    assert failed["error"]["code"] == "context_length_exceeded"
    assert failed["error"]["message"] == whole.body["error"]["message"]


def test_events_of_reasoning_text_and_calls() -> None:
    called = ToolCall(name="wait", arguments="{}")
    pieces = [Thought("We"), Thought("ll."), Said("I look."), Called(CALL), Called(called), ENDED]
    events = written(new_form(tools=[WAIT]), *pieces)

    kinds = [event["type"].removeprefix("response.") for event in events]
    call_kinds = [
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
    ]
    assert kinds == [
        *("created", "in_progress"),
        *("output_item.added", "content_part.added"),
        *("reasoning_text.delta", "reasoning_text.delta", "reasoning_text.done"),
        *("content_part.done", "output_item.done"),
        *("output_item.added", "content_part.added"),
        *("output_text.delta", "output_text.done"),
        *("content_part.done", "output_item.done"),
        *call_kinds,
        *call_kinds,
        "completed",
    ]
    reasoning, message, look, wait = events[-1]["response"]["output"]
    assert reasoning["content"] == [{"type": "reasoning_text", "text": "Well."}]
    assert message["content"][0]["text"] == "I look."
    assert (look["name"], look["arguments"]) == ("look", CALL.arguments)
    assert (wait["name"], wait["namespace"]) == ("wait", "agents")
    places = [event["output_index"] for event in events if "output_index" in event]
    assert places == sorted(places)
    assert set(places) == {0, 1, 2, 3}


def test_whole_response_has_the_items_of_the_stream() -> None:
    def shape(items: Any) -> list[dict[str, Any]]:
        return [{k: v for k, v in item.items() if k not in ("id", "call_id")} for item in items]

    pieces = [Thought("Well."), Said("I look."), Called(CALL), ENDED]
    answer = WholeAnswer()
    for piece in pieces:
        answer.add(piece)
    whole = new_form().whole(answer, ENDED)
    streamed = written(new_form(), *pieces)[-1]["response"]

    assert shape(whole.pop("output")) == shape(streamed.pop("output"))
    assert {**whole, "id": ""} == {**streamed, "id": ""}


@pytest.mark.parametrize(
    "pieces",
    [
        [Said("I look.")],
        [Called(CALL), Called(CALL)],
        [Thought("Well."), Said("I look."), Called(CALL), Said("\n\nAnd again."), Called(CALL)],
        [],
    ],
)
def test_sent_back_items_are_the_reply_again(pieces: list[Piece]) -> None:
    answer = WholeAnswer()
    for piece in pieces:
        answer.add(piece)
    streamed = written(new_form(), *pieces, ENDED)[-1]["response"]["output"]
    whole: Any = new_form().whole(answer, ENDED)["output"]

    for items in (streamed, whole):
        chat = RESPONSES.read(Fields({"input": [text_item("user", "Hi."), *items]}))
        reply = chat.messages[-1]
        assert reply == Message(
            role=Role.ASSISTANT,
            content=answer.text,
            reasoning=answer.reasoning,
            calls=tuple(answer.calls),
        )


def test_functions_with_one_name_in_two_namespaces_are_told_apart() -> None:
    other = {**WAIT, "name": "jobs"}
    body: dict[str, Any] = {
        "tools": [WAIT, other],
        "input": [text_item("user", "Hi."), call_item("c1")],
    }
    chat = RESPONSES.read(Fields(body))
    names = [tool["function"]["name"] for tool in json.loads(chat.tools)]
    called = [Called(ToolCall(name=name, arguments="{}")) for name in names]
    items = written(new_form(**body), *called, ENDED)[-1]["response"]["output"]

    assert len(set(names)) == 2
    assert [(item["namespace"], item["name"]) for item in items] == [
        ("agents", "wait"),
        ("jobs", "wait"),
    ]
    back = RESPONSES.read(Fields({**body, "input": [text_item("user", "Hi."), *items]}))
    assert [call.name for call in back.messages[-1].calls] == names


def test_tools_of_a_body_are_read_once(
    served: ServedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []

    def note(name: str, description: str, parameters: object) -> dict[str, object]:
        read.append(name)
        return function_tool(name, description, parameters)

    monkeypatch.setattr(response_tools, "function_tool", note)
    served.post(PATH, input="Hi.", tools=[WAIT], max_output_tokens=1)

    assert read == ["wait"]


def test_sign_of_life_is_a_comment_and_an_event() -> None:
    """Codex ends a stream in which only comments come."""
    comment, event = new_form().events(SignOfLife(5, 10))

    assert comment == ": 5/10\n\n"
    assert event.startswith("event: response.in_progress\n")


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ErrorKind.CONTEXT, "context_length_exceeded"),
        (ErrorKind.INVALID, "invalid_prompt"),
        (ErrorKind.BUSY, "rate_limit_exceeded"),
        (ErrorKind.UNAVAILABLE, "server_error"),
    ],
)
def test_error_within_a_stream_keeps_complete_items(kind: ErrorKind, code: str) -> None:
    form = new_form()
    written(form, Thought("Well."), Said("I lo"))
    (event,) = form.error(ServerError(kind, "It failed."))
    failed = json.loads(event.split("data: ")[1])["response"]

    assert failed["error"] == {"code": code, "message": "It failed."}
    assert [item["type"] for item in failed["output"]] == ["reasoning"]
