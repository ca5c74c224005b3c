"""State is freed as soon as it is evicted, because no reference cycle contains its arrays."""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator
from functools import wraps

import mlx.core as mx
import pytest

from engine.cache.lending import Lending
from engine.cache.restoring import Restorer
from engine.checking.audit import AuditJob
from engine.events import Submit, UnloadModel
from engine.models.adapter import ModelAdapter
from engine.models.rows import RowByRow
from engine.runner.closing import Closing
from engine.types import ConversationId, Request, RequestId
from tests.fakes.asking import ask, user
from tests.fakes.engine_fixtures import OpenTiny

SMALL = 4096  # bytes that may stay allocated


@pytest.fixture(autouse=True)
def no_older_garbage() -> Iterator[None]:
    gc.collect()
    logging.disable()  # pytest keeps log records, whose tracebacks hold arrays
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("name", ["llama", "qwen3_5", "falcon_h1"])
def test_unload_frees_the_model_and_all_cached_state(open_tiny: OpenTiny, name: str) -> None:
    before = mx.get_active_memory()
    client = open_tiny(name)
    for chat in ("A", "B"):
        ask(client, user("Hello there"), chat=chat)
    assert mx.get_active_memory() - before > 10 * SMALL
    client.send(UnloadModel())
    client.run_until_idle()
    assert mx.get_active_memory() - before < SMALL


# The calls to fail: class, method, and number of successful calls before the failing one.
FAILING_CALLS: dict[str, tuple[type, str, int]] = {
    "start": (Restorer, "restore", 0),
    "prefill": (ModelAdapter, "forward", 0),
    "decode": (RowByRow, "forward", 1),
    "feeding the reply's end": (Closing, "_feed", 0),
    "publishing": (Lending, "add_nodes", 0),
    "audit": (AuditJob, "step", 0),
}


@pytest.mark.parametrize("place", FAILING_CALLS)
def test_failed_work_frees_its_arrays(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    owner, name, num_successes = FAILING_CALLS[place]
    before = mx.get_active_memory()
    client = open_tiny("qwen3_5", audit_every_s=0.0)
    ask(client, user("Hello there"), chat="A")
    failures: list[str] = []
    failing = fail_once(getattr(owner, name), num_successes, failures)
    monkeypatch.setattr(owner, name, failing)
    request = Request(
        request_id=RequestId("r"),
        conversation_id=ConversationId("B"),
        messages=(user("Hello again"),),
        new_messages=frozenset({0}),
        max_tokens=6,
    )
    client.send(Submit(request, time.perf_counter()))
    client.set_idle_work(enabled=True)
    client.run_until_idle()

    assert failures == [name]
    client.send(UnloadModel())
    client.run_until_idle()
    assert mx.get_active_memory() - before < SMALL


def fail_once(
    function: Callable[..., object], num_successes: int, failures: list[str]
) -> Callable[..., object]:
    """Return a wrapper that raises once, while a local variable in it holds a large array."""
    num_calls = 0

    @wraps(function)
    def call(*args: object, **options: object) -> object:
        nonlocal num_calls
        num_calls += 1
        if num_calls == num_successes + 1:
            held = mx.ones((1 << 20,))
            mx.eval(held)  # pyright: ignore[reportUnknownMemberType] — untyped varargs
            failures.append(function.__name__)
            raise RuntimeError("it broke")
        return function(*args, **options)

    return call
