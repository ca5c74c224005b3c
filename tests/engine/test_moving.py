"""Conversations that a user moves from memory to disk."""

from __future__ import annotations

import gc
from pathlib import Path
from weakref import ref

import pytest

from engine.cache_figures import HeldChat, HeldChats
from engine.events import Answered, ReadAhead, Shutdown, UnloadModel
from engine.types import ConversationId, Message
from tests.fakes.asking import ask, reply_of, submit, user
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient

A, B = ConversationId("A"), ConversationId("B")
LONG = "a long question about nothing in particular " * 2


def talk(client: InlineClient, chat: ConversationId, count: int) -> list[Message]:
    messages: list[Message] = []
    for number in range(count):
        messages.append(user(f"{chat} {LONG} {number}"))
        messages.append(reply_of(ask(client, *messages, chat=chat)))
    return messages


def chat_of(report: HeldChats, chat: ConversationId) -> HeldChat | None:
    return next((one for one in report.chats if one.conversation_id == chat), None)


def close(client: InlineClient) -> None:
    client.send(Shutdown())
    client.core.run()


@pytest.mark.parametrize("kind", ["qwen3_5", "llama"])
def test_moved_chats_leave_the_memory_and_continue_from_disk(
    open_tiny: OpenTiny, tmp_path: Path, kind: str
) -> None:
    # At rest for an hour: the queue of the disk would write nothing yet.
    client = open_tiny(kind, disk_folder=tmp_path, disk_rest_s=3600.0)
    chats = {chat: talk(client, chat, 2) for chat in (A, B)}
    before = client.answer(client.report_chats())
    report = client.answer(client.move_to_disk((A, B)))

    assert report.total_bytes == 0
    for chat, messages in chats.items():
        moved, held = chat_of(report, chat), chat_of(before, chat)
        assert moved is not None
        assert held is not None
        assert moved.disk_tokens == held.memory_tokens
        # Also the beginning of an earlier turn is on disk.
        edited = ask(client, *messages[:2], user("else"), chat=chat).usage.plan
        assert edited.restored_disk > 0
        plan = ask(client, *messages, user("more"), chat=chat).usage.plan
        assert plan.restored >= held.memory_tokens
    close(client)


def test_only_the_moved_chat_leaves_the_memory(open_tiny: OpenTiny, tmp_path: Path) -> None:
    client = open_tiny(disk_folder=tmp_path, disk_rest_s=3600.0)
    talk(client, A, 2)
    talk(client, B, 2)
    before = client.answer(client.report_chats())
    report = client.answer(client.move_to_disk((A,)))
    moved, other, known = chat_of(report, A), chat_of(report, B), chat_of(before, B)

    assert moved is not None
    assert other is not None
    assert known is not None
    assert (moved.memory_bytes, moved.memory_tokens) == (0, 0)
    assert other.memory_tokens == known.memory_tokens
    assert other.disk_bytes == known.disk_bytes
    close(client)


def test_a_chat_stays_in_memory_without_a_disk(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    talk(client, A, 1)
    before = client.answer(client.report_chats())

    assert client.answer(client.move_to_disk((A,))).chats == before.chats


def test_a_chat_stays_in_memory_if_the_limit_of_the_disk_is_reached(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    client = open_tiny(disk_folder=tmp_path, disk_rest_s=3600.0, disk_daily_bytes=10_000)
    talk(client, A, 2)
    before = client.answer(client.report_chats())
    report = client.answer(client.move_to_disk((A,)))

    assert report.total_bytes == before.total_bytes
    close(client)


def test_a_move_waits_for_the_running_request_and_takes_its_state_too(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    client = open_tiny(disk_folder=tmp_path, disk_rest_s=3600.0)
    messages = talk(client, A, 1)
    client.move_to_disk((A,))
    client.core.step(wait=False)
    submit(client, *messages, user(LONG), chat=A)
    while not any(isinstance(event, Answered) for event in client.new_events()):
        assert client.core.step(wait=False)
    report = client.answer(client.report_chats())
    moved = chat_of(report, A)

    assert moved is not None
    assert moved.memory_bytes == 0
    assert moved.disk_tokens > 0
    close(client)


def test_a_moved_chat_is_not_read_ahead_again(open_tiny: OpenTiny, tmp_path: Path) -> None:
    client = open_tiny(disk_folder=tmp_path, disk_rest_s=3600.0, idle_work=True)
    messages = talk(client, A, 1)
    client.run_until_idle()
    client.send(ReadAhead(conversation_id=A, messages=(*messages, user(LONG)), is_draft=True))
    report = client.answer(client.move_to_disk((A,)))
    client.run_until_idle()

    assert report.total_bytes == client.answer(client.report_chats()).total_bytes == 0
    close(client)


def test_a_move_that_the_end_of_the_model_cuts_off_keeps_no_state(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    client = open_tiny(disk_folder=tmp_path, disk_rest_s=3600.0)
    talk(client, A, 3)
    cache = ref(client.core.cache)
    asked = client.move_to_disk((A,))
    client.core.step(wait=False)
    client.send(UnloadModel())
    client.answer(asked)
    gc.collect()

    assert cache() is None
