"""The `openai` package as a client of the server. It checks all answers against its types.

The package is imported in a fixture: its import takes a second of CPU time.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, Literal

import pytest

from engine.types import FinishReason, ForcedReply
from tests.clients.task import Call
from tests.fakes.package_answers import answered_when_free, checked
from tests.fakes.served_model import KEY, ServedModel
from tests.fakes.tables import rest_in_soak

pytestmark = pytest.mark.slow

MODEL = "any"
ASKED = [{"role": "user", "content": "What is it like?"}]
BOAT = ForcedReply(text="A boat.", reasoning="Well.")
MOODS = {"type": "object", "properties": {"mood": {"enum": ["glad", "sad"]}}, "required": ["mood"]}
LOOK = {"name": "look", "description": "Look at a mood.", "parameters": MOODS}
TOOL = {"type": "function", "function": LOOK}
RESPONSE_TOOL = {"type": "function", "strict": False, **LOOK}
CALL = ForcedReply(text="I look.\n\n" + Call("look", {"mood": "glad"}).text, reasoning="Well.")
NO_THOUGHTS = {"reasoning_effort": "none"}


@pytest.fixture(scope="module")
def package() -> Any:
    return import_module("openai")


@pytest.fixture(scope="module")
def client(package: Any, module_calling: ServedModel) -> Iterator[Any]:
    """Return a client that refuses answers which do not have the types of the package."""
    with package.OpenAI(**address(module_calling), _strict_response_validation=True) as client:
        yield client


@pytest.fixture(scope="module")
def mood() -> Any:
    """Return a model of pydantic for answers."""
    return import_module("pydantic").create_model("Mood", mood=(Literal["glad", "sad"], ...))


def address(served: ServedModel) -> dict[str, Any]:
    return {"api_key": KEY, "base_url": f"{served.server.url}/v1", "max_retries": 0}


def ask(client: Any, **more: Any) -> Any:
    return checked(client.chat.completions.create(**{"model": MODEL, "messages": ASKED, **more}))


def ask_stream(client: Any, **more: Any) -> list[Any]:
    return [checked(chunk) for chunk in ask(client, stream=True, **more)]


def respond(client: Any, **more: Any) -> Any:
    return checked(client.responses.create(**{"model": MODEL, "input": "Hi.", **more}))


def test_models_are_listed_and_found(client: Any) -> None:
    (model,) = client.models.list()

    assert checked(client.models.retrieve(model.id)) == checked(model)


def test_chat_is_answered_whole_and_streamed(calling: ServedModel, client: Any) -> None:
    calling.replies.extend([BOAT] * 2)
    whole = ask(client, seed=3)
    *chunks, last = ask_stream(client, stream_options={"include_usage": True})

    choice = whole.choices[0]
    assert (choice.message.content, choice.finish_reason) == ("A boat.", "stop")
    assert calling.requests[0].sampling.seed == 3
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "A boat."
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert last.usage.completion_tokens == whole.usage.completion_tokens
    assert last.usage.prompt_tokens_details.cached_tokens > 0
    assert whole._request_id.startswith("req_")


def ends_before_a_stop_text(calling: ServedModel, client: Any) -> None:
    calling.replies.append(ForcedReply(text="one, two, three"))
    answer = ask(client, stop="three")

    assert answer.choices[0].message.content == "one, two, "


def has_several_answers(_calling: ServedModel, client: Any) -> None:
    answer = ask(client, n=2, max_tokens=3)
    chunks = ask_stream(client, n=2, max_tokens=3)

    assert [choice.index for choice in answer.choices] == [0, 1]
    assert {choice.finish_reason for choice in answer.choices} == {"length"}
    assert {choice.index for chunk in chunks for choice in chunk.choices} == {0, 1}


def has_log_probabilities(_calling: ServedModel, client: Any) -> None:
    more = {"logprobs": True, "top_logprobs": 2, "max_tokens": 3, **NO_THOUGHTS}
    tokens = ask(client, **more).choices[0].logprobs.content
    chunks = ask_stream(client, **more)

    assert tokens
    assert all(len(token.top_logprobs) == 2 for token in tokens)
    assert any(choice.logprobs for chunk in chunks for choice in chunk.choices)


CHATS: list[Callable[[ServedModel, Any], None]] = [
    ends_before_a_stop_text,
    has_several_answers,
    has_log_probabilities,
]


@pytest.mark.parametrize("answers", rest_in_soak(CHATS))
def test_fields_of_chats_have_an_effect(
    calling: ServedModel, client: Any, answers: Callable[[ServedModel, Any], None]
) -> None:
    answers(calling, client)


def test_streamed_call_and_its_result_are_read_only_once(calling: ServedModel, client: Any) -> None:
    calling.replies.extend([CALL, BOAT])
    asked = {"model": MODEL, "tools": [TOOL], "stream_options": {"include_usage": True}}
    with client.chat.completions.stream(messages=ASKED, **asked) as stream:
        kinds = {event.type for event in stream}
        first = stream.get_final_completion()
    message = first.choices[0].message
    (call,) = message.tool_calls
    calling.await_idle()
    result = {"role": "tool", "tool_call_id": call.id, "content": "It is glad."}
    second = ask(client, messages=[*ASKED, message, result], tools=[TOOL])

    assert {"tool_calls.function.arguments.done", "content.done", "chunk"} <= kinds
    assert first.choices[0].finish_reason == "tool_calls"
    assert (call.function.name, json.loads(call.function.arguments)) == ("look", {"mood": "glad"})
    assert second.choices[0].message.content == "A boat."
    assert second.usage.prompt_tokens_details.cached_tokens >= first.usage.total_tokens - 1
    assert second.usage.rejoinder["replayed"] == 0


NAMED = {"type": "function", "function": {"name": "look"}}


@pytest.mark.parametrize("choice", rest_in_soak(["required", NAMED]))
def test_forced_call_is_written(calling: ServedModel, client: Any, choice: object) -> None:
    more = {"tools": [TOOL], "tool_choice": choice, "parallel_tool_calls": False}
    answer = ask(client, **more, **NO_THOUGHTS)

    (call,) = answer.choices[0].message.tool_calls
    assert json.loads(call.function.arguments)["mood"] in {"glad", "sad"}


def test_answers_are_parsed_by_their_schema(calling: ServedModel, client: Any, mood: Any) -> None:
    asked = {"model": MODEL, "messages": ASKED, "response_format": mood, **NO_THOUGHTS}
    whole = checked(client.chat.completions.parse(**asked))
    with client.chat.completions.stream(**asked) as stream:
        streamed = stream.get_final_completion()
    response = checked(
        client.responses.parse(
            model=MODEL, input="Hi.", text_format=mood, reasoning={"effort": "none"}
        )
    )

    assert whole.choices[0].message.parsed.mood in {"glad", "sad"}
    assert streamed.choices[0].message.parsed.mood in {"glad", "sad"}
    assert response.output_parsed.mood in {"glad", "sad"}


def test_older_completions_are_answered(calling: ServedModel, client: Any, package: Any) -> None:
    calling.replies.extend([BOAT] * 2)
    asked = {"model": MODEL, "prompt": "Hi.", "stream_options": {"include_usage": True}}
    whole = checked(client.completions.create(model=MODEL, prompt="Hi."))
    # Before the end the reason is null, as in OpenAI's reference. The type in the package lacks it.
    with package.OpenAI(**address(calling)) as lenient:
        *chunks, last = map(checked, lenient.completions.create(**asked, stream=True))

    assert whole.choices[0].text == "A boat."
    assert "".join(chunk.choices[0].text for chunk in chunks) == "A boat."
    assert last.usage.completion_tokens == whole.usage.completion_tokens
    assert all("usage" in chunk.model_fields_set and not chunk.usage for chunk in chunks)


def test_response_is_answered_whole(calling: ServedModel, client: Any) -> None:
    calling.replies.append(BOAT)
    response = respond(client, instructions="Be kind.", reasoning={"effort": "high"})

    assert (response.status, response.output_text) == ("completed", "A boat.")
    assert [item.type for item in response.output] == ["reasoning", "message"]
    assert calling.requests[-1].messages[0].content == "Be kind."


def test_streamed_response_and_its_result_are_read_only_once(
    calling: ServedModel, client: Any
) -> None:
    calling.replies.extend([CALL, BOAT])
    with client.responses.stream(model=MODEL, input=ASKED, tools=[RESPONSE_TOOL]) as stream:
        events = [checked(event) for event in stream]
        first = checked(stream.get_final_response())
    calling.await_idle()
    result = {"call_id": first.output[-1].call_id, "output": "It is glad."}
    items = [*ASKED, *first.output, {"type": "function_call_output", **result}]
    second = respond(client, input=items, tools=[RESPONSE_TOOL])

    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [item.type for item in first.output] == ["reasoning", "message", "function_call"]
    assert json.loads(first.output[-1].arguments) == {"mood": "glad"}
    assert second.output_text == "A boat."
    assert second.usage.input_tokens_details.cached_tokens >= first.usage.total_tokens - 1
    assert second.usage.rejoinder["replayed"] == 0


@pytest.mark.soak
def test_response_at_its_limit_is_incomplete(client: Any) -> None:
    more = {"max_output_tokens": 3, "reasoning": {"effort": "none"}, "top_logprobs": 2}
    *_, last = map(checked, respond(client, stream=True, **more))

    assert (last.type, last.response.status) == ("response.incomplete", "incomplete")
    assert last.response.output[0].content[0].logprobs


ERRORS: list[tuple[str, Callable[[Any], Any], str, str | None]] = [
    ("key", lambda c: ask(c.with_options(api_key="no")), "AuthenticationError", None),
    ("model", lambda c: c.models.retrieve("none"), "NotFoundError", None),
    (
        "address",
        lambda c: c.embeddings.create(model=MODEL, input="Hi."),
        "NotFoundError",
        None,
    ),
    ("range", lambda c: ask(c, temperature=9), "BadRequestError", "temperature"),
    ("bias", lambda c: ask(c, logit_bias={"1": 3}), "BadRequestError", "logit_bias"),
    ("stream", lambda c: ask(c, n=99, stream=True), "BadRequestError", "n"),
    (
        "stored",
        lambda c: respond(c, previous_response_id="resp_1"),
        "BadRequestError",
        "previous_response_id",
    ),
]


@pytest.mark.parametrize(
    ("call", "kind", "param"), [row for _, *row in ERRORS], ids=[name for name, *_ in ERRORS]
)
def test_error_has_its_kind_its_field_and_its_request(
    client: Any, package: Any, call: Callable[[Any], Any], kind: str, param: str | None
) -> None:
    with pytest.raises(getattr(package, kind)) as caught:
        call(client)

    assert caught.value.param == param
    assert caught.value.request_id.startswith("req_")
    assert caught.value.body["message"]


def test_client_waits_as_long_as_a_busy_server_says(
    calling: ServedModel, client: Any, package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling.replies.append(BOAT)
    answer, waits = answered_when_free(package, client, ask, monkeypatch)

    assert waits == [5]
    assert answer.choices[0].message.content == "A boat."


def test_closed_stream_ends_the_answer(calling: ServedModel, client: Any) -> None:
    num_finished = len(calling.finished)
    calling.replies.append(ForcedReply(text="word " * 2000))
    with ask(client, stream=True, max_tokens=4000) as stream:
        next(chunk for chunk in stream if chunk.choices[0].delta.content)
    while len(calling.finished) == num_finished:
        calling.await_idle()

    assert calling.finished[-1].reason is FinishReason.CANCELLED


@pytest.mark.soak
def test_async_client_is_answered(calling: ServedModel, package: Any) -> None:
    async def ask_all() -> tuple[str, str]:
        more = {**address(calling), "_strict_response_validation": True}
        async with package.AsyncOpenAI(**more) as client:
            chat = {"model": MODEL, "messages": ASKED, "stream": True}
            stream = await client.chat.completions.create(**chat)
            parts = [chunk.choices[0].delta.content or "" async for chunk in stream]
            response = await client.responses.create(model=MODEL, input="Hi.")
            return "".join(parts), response.output_text

    calling.replies.extend([BOAT] * 2)
    assert asyncio.run(ask_all()) == ("A boat.", "A boat.")
