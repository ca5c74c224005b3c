"""The state of a chat in the list, from the engine's ledger."""

from __future__ import annotations

import pytest

from app.viewmodels.chat_state import ChatState, chat_state, counted_state
from engine.cache_figures import HeldChat
from engine.questions import TokensCounted
from engine.types import ConversationId


@pytest.mark.parametrize(
    ("memory", "disk", "last", "state"),
    [
        (8_000, 0, 8_000, ChatState.MEMORY),
        (7_990, 0, 8_000, ChatState.MEMORY),  # the end of an answer is left
        (8_000, 8_000, 8_000, ChatState.MEMORY),
        (30, 8_000, 8_000, ChatState.DISK),  # the system prompt is in memory, because others use it
        (0, 8_000, 0, ChatState.DISK),  # after a restart
        (30, 8_000, 0, ChatState.DISK),
        (8_000, 8_000, 0, ChatState.MEMORY),
        (500, 8_000, 500, ChatState.MEMORY),  # edited at its start
        (30, 0, 8_000, ChatState.UNREAD),  # the rest was evicted
        (30, 40, 8_000, ChatState.UNREAD),
        (0, 0, 8_000, ChatState.UNREAD),
    ],
)
def test_state_tells_where_most_of_the_chat_is(
    memory: int, disk: int, last: int, state: ChatState
) -> None:
    held = HeldChat(
        conversation_id=ConversationId("a"),
        memory_bytes=1,
        memory_tokens=memory,
        disk_bytes=1,
        disk_tokens=disk,
        last_tokens=last,
        is_pinned=False,
        is_in_use=False,
    )
    assert chat_state(held) is state


def test_chat_without_cached_state_is_to_be_read() -> None:
    assert chat_state(None) is ChatState.UNREAD


@pytest.mark.parametrize(
    ("cached", "on_disk", "state"),
    [
        (990, 0, ChatState.MEMORY),
        (990, 50, ChatState.MEMORY),
        (990, 900, ChatState.DISK),
        (300, 300, ChatState.UNREAD),
        (0, 0, ChatState.UNREAD),
    ],
)
def test_state_of_a_counted_prompt_tells_where_most_of_it_is(
    cached: int, on_disk: int, state: ChatState
) -> None:
    counted = TokensCounted(num_tokens=1_000, num_cached=cached, num_on_disk=on_disk)
    assert counted_state(counted) is state
