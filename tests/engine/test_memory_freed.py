"""Evicted state is freed at once: nothing that names arrays waits for a garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import mlx.core as mx
import pytest

from engine.events import UnloadModel
from tests.fakes.asking import ask, user
from tests.fakes.engine_fixtures import OpenTiny

SMALL = 4096  # bytes


@pytest.fixture(autouse=True)
def no_search() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("name", ["llama", "qwen3_5", "falcon_h1"])
def test_a_model_and_all_that_it_read(open_tiny: OpenTiny, name: str) -> None:
    before = mx.get_active_memory()
    client = open_tiny(name)
    for chat in ("A", "B"):
        ask(client, user("Hello there"), chat=chat)
    assert mx.get_active_memory() - before > 10 * SMALL
    client.send(UnloadModel())
    client.run_until_idle()
    assert mx.get_active_memory() - before < SMALL
