"""A function that runs a call on the store's thread and waits for its result."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from app.bridge.store_lane import StoreLane
from app.store.conversations import ConversationStore

T = TypeVar("T")

PATIENCE_S = 60.0  # time limit of a wait, after which the test fails


def ask_store(lane: StoreLane, call: Callable[[ConversationStore], T]) -> T:
    """Return the result of `call`, which runs after all calls that are already queued."""
    answer: Future[T] = Future()
    lane.run(lambda store: answer.set_result(call(store)))
    return answer.result(timeout=PATIENCE_S)
