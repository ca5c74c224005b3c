from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.bridge.store_lane import StoreLane
from app.controllers.desk import KEPT, Desk
from app.conversation.tree import Conversation, new_conversation, set_title
from app.conversation.unsent import join_texts
from app.store.conversations import ConversationStore, OpenedStore, open_store
from app.store.errors import DatabaseFullError, DatabaseNewerError
from engine.problem import Problem
from engine.types import ConversationId


class FullDisk:
    """A store that counts its loads. While `is_full` is true, its writes fail."""

    def __init__(self, store: ConversationStore) -> None:
        self.store = store
        self.is_full = False
        self.num_loads = 0

    def create(self, conv: Conversation) -> None:
        self._check()
        self.store.create(conv)

    def save(self, conv: Conversation, *, since: Conversation) -> None:
        self._check()
        self.store.save(conv, since=since)

    def load(self, conversation_id: ConversationId) -> Conversation:
        self.num_loads += 1
        return self.store.load(conversation_id)

    def close(self) -> None:
        self.store.close()

    def _check(self) -> None:
        if self.is_full:
            raise DatabaseFullError("No space is left for conversations.db.")


@pytest.fixture
def disk(tmp_path: Path) -> FullDisk:
    opened = open_store(tmp_path / "conversations.db", now=0)
    opened.store.close()
    return FullDisk(opened.store)


@pytest.fixture
def lane(tmp_path: Path, disk: FullDisk) -> Iterator[StoreLane]:
    def open_on_lane() -> OpenedStore:
        disk.store = open_store(tmp_path / "conversations.db", now=0).store
        return OpenedStore(store=disk)  # pyright: ignore[reportArgumentType] (as much of a store as is used)

    lane = StoreLane(open_on_lane)
    lane.open()
    yield lane
    lane.close()


@pytest.fixture
def desk(lane: StoreLane, qtbot: QtBot) -> Iterator[Desk]:
    desk = Desk(lane)
    yield desk
    desk.close()


def conversation(name: str) -> Conversation:
    return new_conversation(ConversationId(name), now=0)


def on_lane(lane: StoreLane, qtbot: QtBot, call: Callable[[ConversationStore], object]) -> object:
    results: list[object] = []
    lane.run(call, results.append)
    qtbot.waitUntil(lambda: bool(results))
    return results[0]


def deliver(lane: StoreLane, qtbot: QtBot) -> None:
    """Wait until the store has run its queued calls and the results have arrived."""
    on_lane(lane, qtbot, lambda _store: 1)


def test_save_after_a_failed_save_stores_the_latest_state(
    desk: Desk, lane: StoreLane, disk: FullDisk, qtbot: QtBot
) -> None:
    problems: list[Problem] = []
    desk.failed.connect(problems.append)
    first = conversation("a")
    desk.add(first)
    disk.is_full = True
    desk.save(set_title(first, "One"))
    qtbot.waitUntil(lambda: bool(problems))
    assert problems[0].title == "The disk is full, so the chat was not saved."
    disk.is_full = False
    desk.save(set_title(first, "Two"))
    loaded = on_lane(lane, qtbot, lambda store: store.load(ConversationId("a")))
    assert isinstance(loaded, Conversation)
    assert loaded.title == "Two"
    desk.save_again()


def test_save_again_repeats_a_failed_save(
    desk: Desk, lane: StoreLane, disk: FullDisk, qtbot: QtBot
) -> None:
    first = conversation("a")
    desk.add(first)
    disk.is_full = True
    with qtbot.waitSignal(desk.failed):
        desk.save(set_title(first, "One"))
    disk.is_full = False
    desk.save_again()
    loaded = on_lane(lane, qtbot, lambda store: store.load(ConversationId("a")))
    assert isinstance(loaded, Conversation)
    assert loaded.title == "One"


def test_full_disk_is_reported_once_until_the_chat_is_saved(
    desk: Desk, lane: StoreLane, disk: FullDisk, qtbot: QtBot
) -> None:
    problems: list[Problem] = []
    desk.failed.connect(problems.append)
    first = conversation("a")
    desk.add(first)
    disk.is_full = True
    desk.save(set_title(first, "One"))
    for _attempt in range(2):
        desk.save_again()
        deliver(lane, qtbot)
    assert len(problems) == 1
    disk.is_full = False
    desk.save_again()
    deliver(lane, qtbot)
    disk.is_full = True
    desk.save(set_title(first, "Two"))
    deliver(lane, qtbot)
    assert len(problems) == 2


def test_chat_dropped_before_its_save_failed_does_not_end_the_other_retries(
    desk: Desk, lane: StoreLane, disk: FullDisk, qtbot: QtBot
) -> None:
    kept, dropped = conversation("a"), conversation("b")
    disk.is_full = True
    for chat in (kept, dropped):
        desk.add(chat)
        desk.save(set_title(chat, "One"))
    desk.drop(dropped.conversation_id)
    deliver(lane, qtbot)
    disk.is_full = False
    desk.save_again()
    loaded = on_lane(lane, qtbot, lambda store: store.load(kept.conversation_id))
    assert isinstance(loaded, Conversation)
    assert loaded.title == "One"


def test_only_pinned_and_recent_conversations_stay_in_memory(desk: Desk) -> None:
    pinned = conversation("pinned")
    desk.add(pinned)
    desk.pin(pinned.conversation_id)
    for number in range(KEPT + 2):
        desk.add(conversation(f"c{number}"))
    assert pinned.conversation_id in desk
    assert ConversationId("c0") not in desk
    assert ConversationId(f"c{KEPT + 1}") in desk
    desk.unpin(pinned.conversation_id)
    assert pinned.conversation_id not in desk


def test_conversation_whose_save_failed_stays_in_memory(
    desk: Desk, disk: FullDisk, qtbot: QtBot
) -> None:
    unsaved = conversation("a")
    desk.add(unsaved)
    disk.is_full = True
    with qtbot.waitSignal(desk.failed):
        desk.save(set_title(unsaved, "One"))
    for number in range(KEPT + 1):
        desk.add(conversation(f"c{number}"))

    assert desk.get(unsaved.conversation_id).title == "One"
    disk.is_full = False


def unexpected(what: object) -> None:
    raise AssertionError(f"unexpected call with {what}")


def stored(lane: StoreLane, *names: str) -> None:
    for name in names:
        lane.run(lambda store, name=name: store.create(conversation(name)))


def test_open_returns_an_expected_conversation_at_once(
    desk: Desk, lane: StoreLane, qtbot: QtBot
) -> None:
    stored(lane, "a")
    name, ready = ConversationId("a"), list[Conversation]()
    desk.expect(name)
    qtbot.waitUntil(lambda: name in desk)
    desk.open(name, ready.append, unexpected)
    assert ready == [conversation("a")]


def test_conversation_opened_twice_while_it_loads_is_loaded_once(
    desk: Desk, lane: StoreLane, disk: FullDisk, qtbot: QtBot
) -> None:
    stored(lane, "a")
    name, ready = ConversationId("a"), list[Conversation]()
    desk.expect(name)
    desk.open(name, ready.append, unexpected)
    desk.open(name, ready.append, unexpected)
    qtbot.waitUntil(lambda: len(ready) == 2)
    assert ready[0] is ready[1]
    assert disk.num_loads == 1


def test_expecting_a_conversation_drops_only_the_one_expected_before(
    desk: Desk, lane: StoreLane, qtbot: QtBot
) -> None:
    names = [ConversationId(f"e{number}") for number in range(3)]
    stored(lane, *names)
    for number in range(KEPT):
        desk.add(conversation(f"c{number}"))
    for name in names:
        desk.expect(name)
        qtbot.waitUntil(lambda name=name: name in desk)
    assert all(ConversationId(f"c{number}") in desk for number in range(KEPT))
    assert [name in desk for name in names] == [False, False, True]


def test_failed_expect_emits_no_problem(desk: Desk, lane: StoreLane, qtbot: QtBot) -> None:
    """A failed `expect` is silent. Its problem is reported to the next caller of `open`."""
    errors, problems = list[Problem](), list[Problem]()
    desk.failed.connect(problems.append)
    desk.expect(ConversationId("gone"))
    on_lane(lane, qtbot, lambda _store: 1)
    desk.open(ConversationId("gone"), unexpected, errors.append)
    qtbot.waitUntil(lambda: len(errors) == 1)
    assert problems == []


def test_store_that_cannot_be_opened_reports_its_problem_once(qtbot: QtBot) -> None:
    def refuse() -> OpenedStore:
        raise DatabaseNewerError("It has version 9, this one knows 1.")

    lane = StoreLane(refuse)
    problems: list[Problem] = []
    lane.unavailable.connect(problems.append)
    lane.open()
    qtbot.waitUntil(lambda: bool(problems))
    assert problems[0].title == "These chats were saved by a newer Rejoinder."
    errors: list[Problem] = []
    lane.run(lambda store: store.summaries(), None, errors.append)
    lane.close()
    qtbot.wait(5)
    assert errors == [], "the problem must be reported only once"


def test_texts_are_joined_with_a_blank_line() -> None:
    assert join_texts("a", "b") == "a\n\nb"
    assert join_texts("a", " ") == "a"
    assert join_texts("", "b") == "b"
