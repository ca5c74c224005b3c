"""An unused model is unloaded, and the next request loads it again."""

from __future__ import annotations

import mlx.core as mx
import pytest

from engine.events import ModelUnloaded, RequestFailed, Submit, UnloadModel
from engine.types import ConversationId, Request, RequestId, SamplingParams
from tests.fakes.asking import ask, user
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.tiny_model import Template

SMALL = 4096  # bytes that may stay allocated


@pytest.mark.parametrize("name", ["llama", "qwen3_5"])
def test_idle_model_is_unloaded_and_the_next_request_loads_it(open_tiny: OpenTiny, name: str):
    before = mx.get_active_memory()
    client = open_tiny(name)
    first = ask(client, user("Hello there"), chat="A")
    client.set_unload_after(0.0)
    events = client.run_until_idle()

    assert [event for event in events if isinstance(event, ModelUnloaded)] == [ModelUnloaded(True)]
    assert client.core.model is None
    assert mx.get_active_memory() - before < SMALL
    client.set_unload_after(None)
    again = ask(client, user("Hello there"), chat="A")
    assert again.content == first.content
    assert client.core.model is not None


def test_model_that_was_unloaded_until_it_is_needed_is_loaded_by_the_next_request(
    open_tiny: OpenTiny,
):
    client = open_tiny("llama")
    first = ask(client, user("Hello there"), chat="A")
    client.unload_model()
    events = client.run_until_idle()

    assert [event for event in events if isinstance(event, ModelUnloaded)] == [ModelUnloaded(True)]
    assert client.core.model is None
    assert ask(client, user("Hello there"), chat="A").content == first.content


def test_model_stays_while_the_time_is_not_over(open_tiny: OpenTiny):
    client = open_tiny("llama")
    client.set_unload_after(3600.0)
    client.run_until_idle()

    assert client.core.model is not None


def test_model_that_was_unloaded_by_a_command_is_not_loaded_again(open_tiny: OpenTiny):
    client = open_tiny("llama")
    client.set_unload_after(0.0)
    client.run_until_idle()
    client.send(UnloadModel())
    client.run_until_idle()
    request = Request(
        request_id=RequestId("r"),
        conversation_id=ConversationId("A"),
        messages=(user("Hello"),),
        new_messages=frozenset({0}),
        sampling=SamplingParams(),
    )
    client.send(Submit(request, 0.0))

    assert [type(event) for event in client.run_until_idle()][-1] is RequestFailed
    assert client.core.model is None


def test_model_is_loaded_again_with_the_limit_and_the_bits_of_its_command(
    open_tiny: OpenTiny, tiny_model: TinyModel
):
    client = open_tiny("qwen3_5")
    whole = client.core.model
    assert whole is not None
    folder = tiny_model("qwen3_5", Template.KEEPING)
    client.load_model(str(folder), kv_bits=8, context_len=200)
    client.set_unload_after(0.0)
    client.run_until_idle()
    assert client.core.model is None
    client.set_unload_after(None)
    ask(client, user("Hello there"), chat="A")
    model = client.core.model

    assert model is not None
    assert model.facts.context_len == 200
    assert model.facts.kv_bytes_per_token < whole.facts.kv_bytes_per_token
    client.load_model(str(folder), context_len=1 << 40)
    client.run_until_idle()
    assert client.core.model is not None
    assert client.core.model.facts.context_len == whole.facts.context_len
    assert client.core.model.facts.kv_bytes_per_token == whole.facts.kv_bytes_per_token
