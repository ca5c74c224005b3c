"""The list of conversations while the store is slower than the person."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.settings import Settings
from app.viewmodels.models import ModelPhase
from engine.types import ConversationId
from tests.fakes.rig import Rig


def started(data_dir: Path, qtbot: QtBot, settings: Settings | None = None) -> Rig:
    rig = Rig(data_dir, settings=settings)
    rig.start()
    qtbot.waitUntil(lambda: rig.models.status.phase is ModelPhase.READY)
    return rig


@pytest.fixture
def rig(tmp_path: Path, qtbot: QtBot) -> Iterator[Rig]:
    """Two stored chats, of which only the newer one is open."""
    before = started(tmp_path, qtbot)
    for number in ("One", "Two"):
        before.origin.time_s += 1.0
        before.library.new_chat()
        assert before.chat.send(before.library.current, number)
        qtbot.waitUntil(lambda: before.engine.running is not None)
        before.engine.write("Yes.")
        before.engine.finish()
        qtbot.waitUntil(lambda: not before.turns.live)
    last = before.library.current
    before.close()
    rig = started(tmp_path, qtbot, Settings(selected_conversation=last))
    qtbot.waitUntil(lambda: rig.library.current == last)
    yield rig
    rig.close()


def titles(rig: Rig) -> list[str]:
    return [summary.title for summary in rig.library.summaries]


def closed_chat(rig: Rig) -> ConversationId:
    return rig.library.summaries[1].conversation_id


def store_works(rig: Rig) -> None:
    """The store does all that it was asked for; nothing of it is delivered yet."""
    rig.stored(lambda _: None)


def deliver(rig: Rig, qtbot: QtBot) -> None:
    store_works(rig)
    qtbot.wait(1)


def read_list_again(rig: Rig, qtbot: QtBot) -> None:
    """Rename a closed chat, for which the store reads its list; it is not delivered yet."""
    gate, renamed = threading.Event(), list[None]()
    rig.library.rename(closed_chat(rig), "Renamed")
    rig.core.store.run(lambda _: None, renamed.append)
    rig.core.store.run(lambda _: gate.wait(5))
    qtbot.waitUntil(lambda: renamed != [])
    gate.set()
    store_works(rig)


def test_a_deleted_chat_does_not_come_back_with_a_late_list(rig: Rig, qtbot: QtBot) -> None:
    read_list_again(rig, qtbot)
    rig.library.delete(closed_chat(rig))
    deliver(rig, qtbot)
    assert titles(rig) == ["Two"]


def test_a_late_list_does_not_undo_what_changed_meanwhile(rig: Rig, qtbot: QtBot) -> None:
    read_list_again(rig, qtbot)
    rig.library.rename(rig.library.current, "By hand")
    deliver(rig, qtbot)
    assert titles(rig) == ["By hand", "Renamed"]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_closed_chat_is_kept_ready_as_soon_as_it_is_stored(
    rig: Rig, qtbot: QtBot, is_deleted: bool
) -> None:
    closed = closed_chat(rig)
    rig.library.keep_ready(closed, True)
    store_works(rig)
    assert rig.library.kept_ready == frozenset()
    if is_deleted:
        rig.library.delete(closed)
    deliver(rig, qtbot)
    assert rig.library.kept_ready == (frozenset() if is_deleted else {closed})
    assert rig.stored(lambda store: store.load(closed)).keep_ready
