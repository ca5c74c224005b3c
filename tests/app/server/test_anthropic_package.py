"""The `anthropic` package as a client of the server. It checks all answers against its types.

The package is imported in a fixture: its import takes two seconds of CPU time.
"""

from __future__ import annotations

import asyncio
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

ASKED = [{"role": "user", "content": "What is it like?"}]
BOAT = ForcedReply(text="A boat.", reasoning="Well.")
MOODS = {"type": "object", "properties": {"mood": {"enum": ["glad", "sad"]}}, "required": ["mood"]}
TOOL = {"name": "look", "description": "Look at a mood.", "input_schema": MOODS}
CALL = ForcedReply(text="I look.\n\n" + Call("look", {"mood": "glad"}).text, reasoning="Well.")
THINKING = {"type": "enabled", "budget_tokens": 1024}


@pytest.fixture(scope="module")
def package() -> Any:
    return import_module("anthropic")


@pytest.fixture(scope="module")
def client(package: Any, module_calling: ServedModel) -> Iterator[Any]:
    """Return a client that refuses answers which do not have the types of the package."""
    with package.Anthropic(**address(module_calling), _strict_response_validation=True) as client:
        yield client


def address(served: ServedModel) -> dict[str, Any]:
    return {"api_key": KEY, "base_url": served.server.url, "max_retries": 0}


def asked(**more: Any) -> dict[str, Any]:
    return {"model": "any", "max_tokens": 200, "messages": ASKED, **more}


def ask(client: Any, **more: Any) -> Any:
    return checked(client.messages.create(**asked(**more)))


def test_models_are_listed_and_found(client: Any) -> None:
    (model,) = client.models.list(limit=1)

    assert checked(client.models.retrieve(model.id)) == checked(model)
    assert model.display_name
    assert model.max_input_tokens > 0


def test_system_text_and_its_blocks_give_one_prompt(calling: ServedModel, client: Any) -> None:
    calling.replies.extend([BOAT] * 2)
    answer = ask(client, system="Be kind.", thinking=THINKING)
    again = ask(client, system=[{"type": "text", "text": "Be kind."}], thinking=THINKING)

    assert [block.type for block in answer.content] == ["thinking", "text"]
    assert (answer.content[1].text, answer.stop_reason) == ("A boat.", "end_turn")
    assert calling.requests[0].messages == calling.requests[1].messages
    assert again.usage.cache_read_input_tokens > 0
    assert answer._request_id.startswith("req_")


def test_streamed_call_and_its_result_are_read_only_once(calling: ServedModel, client: Any) -> None:
    calling.replies.extend([CALL, BOAT])
    more = {"tools": [TOOL], "thinking": THINKING}
    with client.messages.stream(**asked(**more)) as stream:
        kinds = {checked(event).type for event in stream}
        first = checked(stream.get_final_message())
    calling.await_idle()
    call = first.content[-1]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "It is glad."}
    answers = [
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [result]},
    ]
    second = ask(client, messages=[*ASKED, *answers], **more)

    assert {"thinking", "text", "input_json", "signature", "message_stop"} <= kinds
    assert [block.type for block in first.content] == ["thinking", "text", "tool_use"]
    assert (first.stop_reason, call.input) == ("tool_use", {"mood": "glad"})
    assert second.content[-1].text == "A boat."
    known = first.usage.cache_read_input_tokens + first.usage.input_tokens
    usage = second.usage
    assert usage.cache_read_input_tokens >= known + first.usage.output_tokens - 1
    assert usage.rejoinder["replayed"] == 0
    assert usage.input_tokens == usage.rejoinder["read"]


@pytest.mark.soak
def test_events_of_a_stream_have_their_types(calling: ServedModel, client: Any) -> None:
    calling.replies.append(CALL)
    kinds = [checked(event).type for event in ask(client, tools=[TOOL], stream=True)]

    assert (kinds[0], kinds[-2], kinds[-1]) == ("message_start", "message_delta", "message_stop")


@pytest.mark.soak
def test_counted_tokens_are_those_of_the_prompt(calling: ServedModel, client: Any) -> None:
    body = {"model": "any", "messages": ASKED, "system": "Be kind.", "tools": [TOOL]}
    counted = checked(client.messages.count_tokens(**body))
    calling.replies.append(BOAT)
    usage = ask(client, **body).usage

    read = usage.input_tokens + usage.cache_creation_input_tokens + usage.cache_read_input_tokens
    assert abs(counted.input_tokens - read) <= 1  # the last token may depend on the answer


CHOICES = [{"type": "any"}, {"type": "tool", "name": "look"}]


@pytest.mark.parametrize("choice", rest_in_soak(CHOICES))
def test_forced_call_is_written(calling: ServedModel, client: Any, choice: dict[str, Any]) -> None:
    once = {**choice, "disable_parallel_tool_use": True}
    answer = ask(client, tools=[TOOL], tool_choice=once)

    (call,) = answer.content
    assert call.input["mood"] in {"glad", "sad"}


@pytest.mark.soak
def test_answer_is_parsed_by_its_schema(calling: ServedModel, client: Any) -> None:
    fields: Any = {"mood": (Literal["glad", "sad"], ...)}
    mood = import_module("pydantic").create_model("Mood", **fields)
    answer = checked(client.messages.parse(**asked(output_format=mood)))

    assert answer.parsed_output.mood in {"glad", "sad"}


@pytest.mark.soak
def test_beta_address_is_answered(calling: ServedModel, client: Any) -> None:
    calling.replies.append(BOAT)
    answer = checked(client.beta.messages.create(**asked(betas=["any"])))

    assert answer.content[-1].text == "A boat."


ERRORS: list[tuple[str, Callable[[Any], Any], str, str, str]] = [
    (
        "key",
        lambda c: ask(c.with_options(api_key="no")),
        *("AuthenticationError", "authentication_error", "API key"),
    ),
    (
        "model",
        lambda c: c.models.retrieve("none"),
        *("NotFoundError", "not_found_error", "'none'"),
    ),
    (
        "messages",
        lambda c: ask(c, messages=[]),
        *("BadRequestError", "invalid_request_error", "messages"),
    ),
    (
        "image",
        lambda c: ask(c, messages=[{"role": "user", "content": [{"type": "image"}]}]),
        *("BadRequestError", "invalid_request_error", "The server can’t read images"),
    ),
    (
        "tool without a name",
        lambda c: ask(c, tools=[TOOL], tool_choice={"type": "tool"}),
        *("BadRequestError", "invalid_request_error", "tool_choice.name"),
    ),
]


@pytest.mark.parametrize(
    ("call", "kind", "error_type", "cause"),
    [row for _, *row in ERRORS],
    ids=[name for name, *_ in ERRORS],
)
def test_error_has_its_kind_its_cause_and_its_request(
    client: Any,
    package: Any,
    call: Callable[[Any], Any],
    kind: str,
    error_type: str,
    cause: str,
) -> None:
    with pytest.raises(getattr(package, kind)) as caught:
        call(client)

    error = caught.value
    assert (error.body["type"], error.body["error"]["type"]) == ("error", error_type)
    assert cause in error.body["error"]["message"]
    assert error.request_id.startswith("req_")


def test_client_waits_as_long_as_a_busy_server_says(
    calling: ServedModel, client: Any, package: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling.replies.append(BOAT)
    answer, waits = answered_when_free(package, client, ask, monkeypatch)

    assert waits == [5]
    assert answer.content[-1].text == "A boat."


def test_closed_stream_ends_the_answer(calling: ServedModel, client: Any) -> None:
    num_finished = len(calling.finished)
    calling.replies.append(ForcedReply(text="word " * 2000))
    with client.messages.stream(**asked(max_tokens=4000)) as stream:
        next(iter(stream.text_stream))
    while len(calling.finished) == num_finished:
        calling.await_idle()

    assert calling.finished[-1].reason is FinishReason.CANCELLED


def test_async_client_is_answered(calling: ServedModel, package: Any) -> None:
    async def ask_streamed() -> str:
        more = {**address(calling), "_strict_response_validation": True}
        async with (
            package.AsyncAnthropic(**more) as client,
            client.messages.stream(**asked()) as stream,
        ):
            return await stream.get_final_text()

    calling.replies.append(BOAT)
    assert asyncio.run(ask_streamed()) == "A boat."
