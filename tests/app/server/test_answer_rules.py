"""Answers that must be JSON of a schema or a tool call, in the fields of each protocol.

The model is random, so that nothing but the format makes it write JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from engine.types import AnswerFormat, ForcedReply
from tests.fakes.qwen import Qwen, build_qwen
from tests.fakes.served_model import Response, ServedModel, served_model

pytestmark = pytest.mark.slow

MOOD: dict[str, Any] = {
    "type": "object",
    "properties": {"mood": {"enum": ["glad", "sad"]}},
    "required": ["mood"],
    "additionalProperties": False,
}
LOOK = {"name": "look", "description": "Look at a mood.", "parameters": MOOD}
TOOL = {"type": "function", "function": LOOK}
CLAUDE_TOOL = {"name": "look", "description": "Look at a mood.", "input_schema": MOOD}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedModel]:
    folder = build_qwen(Qwen.QWEN3, tmp_path_factory.mktemp("models") / "qwen3", num_tokens=8_000)
    with served_model(folder) as model:
        yield model


def ask(served: ServedModel, path: str, **fields: Any) -> Response:
    body: dict[str, Any] = {
        "/v1/responses": {"input": "How are you?", "reasoning": {"effort": "none"}},
        "/v1/messages": {"max_tokens": 200},
        "/v1/chat/completions": {"reasoning_effort": "none"},
        "/api/chat": {"stream": False, "think": False},
    }[path]
    if path != "/v1/responses":
        body["messages"] = [{"role": "user", "content": "How are you?"}]
    answer = served.post(path, **body, **fields)
    assert answer.status == 200, answer.body
    return answer


NAMED = {"name": "mood", "strict": True, "schema": MOOD}
CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"
MESSAGES = "/v1/messages"
OLLAMA = "/api/chat"
IN_SCHEMA: list[tuple[str, dict[str, Any]]] = [
    (CHAT, {"response_format": {"type": "json_schema", "json_schema": NAMED}}),
    (CHAT, {"response_format": {"type": "json_object", "schema": MOOD}}),
    (RESPONSES, {"text": {"format": {"type": "json_schema", **NAMED}}}),
    (MESSAGES, {"output_config": {"format": {"type": "json_schema", "schema": MOOD}}}),
    (MESSAGES, {"output_format": {"type": "json_schema", "schema": MOOD}}),
    (OLLAMA, {"format": MOOD}),
]


def text_of(path: str, answer: Response) -> str:
    match path, answer.body:
        case "/v1/chat/completions", {"choices": [{"message": {"content": text}}]}:
            return text
        case "/v1/responses", {"output": [*_, {"content": [{"text": text}]}]}:
            return text
        case "/v1/messages", {"content": [{"text": text}]}:
            return text
        case "/api/chat", {"message": {"content": text}}:
            return text
        case _:
            raise AssertionError(answer.body)


@pytest.mark.parametrize(("path", "fields"), IN_SCHEMA)
def test_answer_has_the_schema(served: ServedModel, path: str, fields: dict[str, Any]) -> None:
    answer = ask(served, path, **fields)

    assert json.loads(text_of(path, answer))["mood"] in {"glad", "sad"}
    assert "x-rejoinder-ignored" not in answer.headers
    assert served.requests[-1].answer_format == AnswerFormat(schema=json.dumps(MOOD))


def test_any_object_is_an_object(served: ServedModel) -> None:
    for path, fields in (
        (CHAT, {"response_format": {"type": "json_object"}, "max_tokens": 40}),
        (OLLAMA, {"format": "json", "options": {"num_predict": 40}}),
    ):
        answer = ask(served, path, **fields)

        assert text_of(path, answer).startswith("{")


CALLED: list[tuple[str, dict[str, Any]]] = [
    (CHAT, {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False}),
    (CHAT, {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look"}}}),
    (
        RESPONSES,
        {
            "tools": [{"type": "function", **LOOK}],
            "tool_choice": {"type": "function", "name": "look"},
        },
    ),
    (
        MESSAGES,
        {
            "tools": [CLAUDE_TOOL],
            "tool_choice": {"type": "tool", "name": "look", "disable_parallel_tool_use": True},
        },
    ),
    (OLLAMA, {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "look"}}}),
]


def arguments_in(path: str, answer: Response) -> object:
    match path, answer.body:
        case "/v1/chat/completions", {"choices": [{"message": {"tool_calls": [call]}}]}:
            return json.loads(call["function"]["arguments"])
        case "/v1/responses", {"output": [*_, {"type": "function_call", "arguments": text}]}:
            return json.loads(text)
        case "/v1/messages", {"content": [{"type": "tool_use", "input": value}]}:
            return value
        case "/api/chat", {"message": {"tool_calls": [call]}}:
            return call["function"]["arguments"]
        case _:
            raise AssertionError(answer.body)


@pytest.mark.parametrize(("path", "fields"), CALLED)
def test_answer_is_the_call(served: ServedModel, path: str, fields: dict[str, Any]) -> None:
    arguments = arguments_in(path, ask(served, path, **fields))

    assert arguments in ({"mood": "glad"}, {"mood": "sad"})


def test_a_schema_beside_tools_allows_calls_too(served: ServedModel) -> None:
    for rule, functions in (({}, ("look",)), ({"tool_choice": "none"}, ())):
        ask(
            served,
            CHAT,
            tools=[TOOL],
            response_format={"type": "json_object", "schema": MOOD},
            **rule,
        )

        wanted = AnswerFormat(schema=json.dumps(MOOD), functions=functions)
        assert served.requests[-1].answer_format == wanted


def test_a_stream_in_a_schema_is_the_same_answer(served: ServedModel) -> None:
    fields = IN_SCHEMA[0][1]
    whole = text_of(CHAT, ask(served, CHAT, **fields))
    streamed = ask(served, CHAT, stream=True, **fields)
    pieces = [data["choices"][0]["delta"].get("content") or "" for _, data in streamed.events]

    assert "".join(pieces) == whole


def test_a_formatted_chat_goes_on_without_a_token_read_again(served: ServedModel) -> None:
    messages: list[dict[str, str]] = [{"role": "user", "content": "How are you?"}]
    for _ in range(3):
        answer = served.post(CHAT, messages=messages, reasoning_effort="none", **IN_SCHEMA[0][1])
        assert served.redo() == 0
        content = answer.body["choices"][0]["message"]["content"]
        messages += [
            {"role": "assistant", "content": content},
            {"role": "user", "content": "And now?"},
        ]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    (CHAT, {"response_format": {"type": "json_object", "schema": {"type": "banana"}}}, "banana"),
    (
        CHAT,
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "leap"}}},
        "leap",
    ),
    (CHAT, {"tool_choice": "required"}, "no tools"),
    (CHAT, {"tools": [TOOL], "tool_choice": {"type": "function"}}, "tool_choice.name"),
    (
        MESSAGES,
        {"tools": [CLAUDE_TOOL], "tool_choice": {"type": "tool"}, "max_tokens": 9},
        "tool_choice.name",
    ),
    (
        CHAT,
        {"response_format": {"type": "json_object", "schema": {"enum": ["a" * 200_000]}}},
        "200,000",
    ),
]


@pytest.mark.parametrize(("path", "fields", "cause"), REFUSED)
@pytest.mark.parametrize("stream", [False, True])
def test_a_format_that_cannot_be_kept_is_refused(
    served: ServedModel, path: str, fields: dict[str, Any], cause: str, *, stream: bool
) -> None:
    messages = [{"role": "user", "content": "How are you?"}]
    answer = served.post(path, messages=messages, stream=stream, **fields)

    assert answer.status == 400
    assert cause in answer.body["error"]["message"]


def test_text_of_a_schema_never_reaches_the_log(
    served: ServedModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    schema = {"type": "object", "properties": {"secret word": {"type": "banana"}}}
    ask_format = {"response_format": {"type": "json_object", "schema": schema}}
    served.post(CHAT, messages=[{"role": "user", "content": "Hi."}], **ask_format)
    served.replies.append(ForcedReply(text="{}"))
    served.post(CHAT, messages=[{"role": "user", "content": "Hi."}])

    assert "secret word" not in caplog.text
    assert "banana" not in caplog.text
