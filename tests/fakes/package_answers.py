"""Answers of the server as the Python packages of OpenAI and Anthropic read them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast
from unittest.mock import Mock

import pytest

from app.server import generations

Answer = TypeVar("Answer")
# Fields of this server that the packages do not know
OWN_FIELDS = {
    "rejoinder",  # in the usage: the figures of the promise
    "reasoning_content",  # of a chat completion, as in DeepSeek's API, vLLM and llama.cpp
    "context_length",  # of a model, as in OpenRouter's list
    "store",  # of a response: OpenAI sends it, the package has no field for it
    "bytes",  # of a token in output_text.done, as in the item that the event ends
    "name",  # in function_call_arguments.done: older packages require it
}


def checked(answer: Answer) -> Answer:
    """Return an answer or an event, after a check that the package knows all its fields.

    A strict client has checked before that no field is missing or of a wrong type.
    """
    unknown = set(_unknown_fields(answer)) - OWN_FIELDS
    assert not unknown, (type(answer).__name__, unknown)
    return answer


def answered_when_free(
    package: Any, client: Any, ask: Callable[[Any], Answer], monkeypatch: pytest.MonkeyPatch
) -> tuple[Answer, list[float]]:
    """Return an answer after a refusal by a busy server, and the waits of the client in seconds.

    The server is busy until the client waits. A client that does not try again gets an error.
    """
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        monkeypatch.undo()

    monkeypatch.setattr(generations, "_MAX_OPEN", 0)
    with pytest.raises(package.RateLimitError):
        ask(client)
    clock = Mock(wraps=time, sleep=wait)
    monkeypatch.setattr(f"{package.__name__}._base_client.time", clock)
    return ask(client.with_options(max_retries=1)), waits


def _unknown_fields(value: Any) -> Iterator[str]:
    """Yield the names of all fields that a package does not know, also those of parts."""
    if isinstance(value, dict):
        values = list(cast("dict[str, Any]", value).values())
    elif isinstance(value, list):
        values = cast("list[Any]", value)
    elif hasattr(value, "model_extra"):  # a model of pydantic
        yield from value.model_extra or ()
        names = cast("dict[str, Any]", type(value).model_fields)
        values = [getattr(value, name, None) for name in names]
    else:
        values = []
    for part in values:
        yield from _unknown_fields(part)
