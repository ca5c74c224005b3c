"""The map of memory and storage as values: its bytes, its areas and its texts."""

from __future__ import annotations

import random

import pytest

from app.conversation.placement import FolderId
from app.viewmodels.chat_state import ChatState
from app.viewmodels.memory_map import Area, areas, budget_text, map_rows, selection_line, summary
from app.words import memory_map as words
from engine.cache_figures import HeldChat, HeldChats
from engine.types import ConversationId


def random_report(rng: random.Random) -> HeldChats:
    def size() -> int:
        return rng.choice([0, rng.randrange(1, 10), rng.randrange(10**12)])

    chats = [
        HeldChat(
            conversation_id=ConversationId(
                rng.choice(["", "server:", "documents:w:", "documents:x:"]) + str(number)
            ),
            memory_bytes=size(),
            memory_tokens=rng.choice([0, 8_000]),
            disk_bytes=size(),
            disk_tokens=rng.choice([0, 8_000]),
            is_pinned=rng.random() < 0.2,
            is_in_use=rng.random() < 0.2,
        )
        for number in range(rng.randrange(30))
    ]
    return HeldChats(
        chats=tuple(chats),
        shared_bytes=size(),
        unused_bytes=size(),
        shared_disk_bytes=size(),
        unused_disk_bytes=size(),
        other_disk_bytes=size(),
    )


@pytest.mark.parametrize("seed", range(50))
def test_rows_have_all_bytes_of_the_report(seed: int) -> None:
    report = random_report(random.Random(seed))
    rows = map_rows(
        report,
        lambda chat: None if chat.startswith(("server:", "documents:")) else f"Chat {chat}",
        {FolderId("w"): "Work"}.get,
    )

    assert sum(row.memory_bytes for row in rows) == report.total_bytes
    assert sum(row.disk_bytes for row in rows) == report.disk_bytes
    assert len({row.key for row in rows}) == len(rows)
    assert [row.nbytes for row in rows] == sorted((row.nbytes for row in rows), reverse=True)
    assert {row.title for row in rows if row.key.startswith("server:")} <= {words.PROGRAM}
    titles = {row.title for row in rows if row.key.startswith("documents:")}
    assert titles <= {"Documents of Work", "Documents of a deleted folder"}


@pytest.mark.parametrize("seed", range(50))
def test_areas_fill_the_map_in_proportion_to_the_sizes(seed: int) -> None:
    rng = random.Random(seed)
    sizes = sorted(
        (rng.randrange(1_000, 100_000) for _ in range(rng.randrange(1, 500))), reverse=True
    )
    whole = Area(0, 0, rng.randrange(50, 1_000), rng.randrange(50, 1_000))
    found = areas(sizes, whole)

    assert len(found) == len(sizes)
    assert sum(one.width * one.height for one in found) == pytest.approx(whole.width * whole.height)
    per_byte = found[0].width * found[0].height / max(sizes[0], sum(sizes) / 1_000)
    for size, one in zip(sizes, found, strict=True):
        shown = max(size, sum(sizes) / 1_000)
        assert one.width * one.height == pytest.approx(shown * per_byte)
        assert -1e-6 <= one.x <= one.x + one.width <= whole.width + 1e-6
        assert -1e-6 <= one.y <= one.y + one.height <= whole.height + 1e-6


def test_areas_of_nothing_are_none() -> None:
    assert areas([], Area(0, 0, 10, 10)) == []
    assert areas([0, 0], Area(0, 0, 10, 10)) == []
    assert areas([1], Area(0, 0, 0, 10)) == []


def test_budget_is_in_chats_only_if_the_model_is_known() -> None:
    assert budget_text(0, 0, 0, 0) == "Automatic"
    assert budget_text(0, 10**9, 0, 0) == "Automatic, 1 GB"
    assert budget_text(4, 4 * 10**9, 100_000, 0) == "4 GB: about 5 chats of 8,000 tokens"
    assert budget_text(4, 8 * 10**8, 100_000, 0) == "4 GB: about 1 chat of 8,000 tokens"
    assert budget_text(4, 10**8, 100_000, 0) == "4 GB: less than a chat of 8,000 tokens"


def test_line_tells_what_the_bytes_do_not() -> None:
    def line(memory: int, tokens: int, *, pinned: bool = False, used: bool = False) -> str:
        chat = HeldChat(
            conversation_id=ConversationId("A"),
            memory_bytes=memory,
            memory_tokens=tokens,
            disk_bytes=0,
            disk_tokens=0,
            is_pinned=pinned,
            is_in_use=used,
        )
        return selection_line(map_rows(HeldChats(chats=(chat,)), lambda _: "Boats", lambda _: None))

    assert line(10**9, 8_000) == "Boats: 8,000 tokens, 1 GB in memory"
    assert (
        line(10**9, 8_000, pinned=True)
        == f"Boats: 8,000 tokens, 1 GB in memory, {words.KEPT.lower()}"
    )
    assert line(10**9, 0, used=True) == f"Boats: 1 GB in memory, {words.ACTIVE.lower()}"


def test_nothing_is_not_said_to_take_a_kilobyte() -> None:
    report = HeldChats(model_bytes=10**9, budget_bytes=2 * 10**9, is_disk_open=True)
    sentence = "Chats take nothing of 2 GB in memory and nothing on disk."
    assert summary(report) == f"The model takes 1 GB. {sentence}"


def test_summary_says_nothing_about_sizes_that_are_not_known() -> None:
    assert summary(HeldChats()) == "", "no model is loaded, and the files on disk are not counted"
    report = HeldChats(budget_bytes=2 * 10**9)
    assert summary(report) == "Chats take nothing of 2 GB in memory."


def test_state_of_a_chat_is_that_in_the_list() -> None:
    def row(memory_tokens: int, disk_tokens: int, last_tokens: int = 0) -> tuple[str, int]:
        chat = HeldChat(
            conversation_id=ConversationId("A"),
            memory_bytes=10**6,
            memory_tokens=memory_tokens,
            disk_bytes=10**6,
            disk_tokens=disk_tokens,
            last_tokens=last_tokens,
            is_pinned=False,
            is_in_use=False,
        )
        (row,) = map_rows(HeldChats(chats=(chat,)), lambda _: "Boats", lambda _: None)
        return row.state_text, row.num_tokens

    assert row(0, 0) == (ChatState.UNREAD.text, 0), "K/V without a snapshot"
    assert row(500, 0, last_tokens=9_000) == (ChatState.UNREAD.text, 500)
    assert row(500, 9_000, last_tokens=9_000) == (ChatState.DISK.text, 9_000)
    assert row(9_000, 9_000, last_tokens=9_000) == (ChatState.MEMORY.text, 9_000)
