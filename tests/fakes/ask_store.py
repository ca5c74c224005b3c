"""Ask the store on its own thread and wait for the answer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from app.bridge.store_lane import StoreLane
from app.store.conversations import ConversationStore

T = TypeVar("T")

PATIENCE_S = 60.0


def ask_store(lane: StoreLane, call: Callable[[ConversationStore], T]) -> T:
    """What is on its way to the store comes before it."""
    answer: Future[T] = Future()
    lane.run(lambda store: answer.set_result(call(store)))
    return answer.result(timeout=PATIENCE_S)
