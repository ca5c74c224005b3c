"""Tests of actions on conversations that are not shown or are still being loaded."""

from __future__ import annotations

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


def store_two_chats(data_dir: Path, qtbot: QtBot) -> ConversationId:
    """Store the chats One and Two. Return the id of the newer one."""
    before = started(data_dir, qtbot)
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
    return last


@pytest.fixture
def rig(tmp_path: Path, qtbot: QtBot) -> Iterator[Rig]:
    """Return a rig with two stored chats, of which only the newer one is open."""
    last = store_two_chats(tmp_path, qtbot)
    rig = started(tmp_path, qtbot, Settings(selected_conversation=last))
    qtbot.waitUntil(lambda: rig.library.current == last)
    yield rig
    rig.close()


def titles(rig: Rig) -> list[str]:
    return [summary.title for summary in rig.library.listed.unarchived]


def closed_chat(rig: Rig) -> ConversationId:
    return rig.library.listed.unarchived[1].conversation_id


def deliver(rig: Rig, qtbot: QtBot) -> None:
    """Wait until the store has run its queued calls and the results have arrived."""
    rig.stored(lambda _: None)
    qtbot.wait(1)


def test_a_closed_chat_can_be_renamed(rig: Rig, qtbot: QtBot) -> None:
    closed = closed_chat(rig)
    rig.core.organiser.rename(closed, "By hand")
    deliver(rig, qtbot)
    assert titles(rig) == ["Two", "By hand"]
    assert rig.stored(lambda store: store.load(closed)).title == "By hand"


def test_rename_while_the_chat_is_loaded_from_the_store_is_kept(rig: Rig, qtbot: QtBot) -> None:
    closed = closed_chat(rig)
    rig.library.expect(closed)
    rig.library.select(closed)
    rig.core.organiser.rename(closed, "By hand")
    deliver(rig, qtbot)
    assert rig.library.current == closed
    assert rig.desk.get(closed).title == "By hand"
    assert len(rig.desk.get(closed).nodes) == 2


def test_chat_deleted_during_its_renaming_stays_deleted(rig: Rig, qtbot: QtBot) -> None:
    rig.core.organiser.rename(closed_chat(rig), "By hand")
    rig.core.deletions.delete_all((closed_chat(rig),))
    deliver(rig, qtbot)
    assert titles(rig) == ["Two"]


@pytest.mark.parametrize("is_removed", [False, True])
def test_chat_deleted_while_it_loads_is_not_shown(rig: Rig, qtbot: QtBot, is_removed: bool) -> None:
    closed, shown = closed_chat(rig), rig.library.current
    rig.library.select(closed)
    rig.core.deletions.delete_all((closed,))
    if is_removed:
        rig.library.deleted.remove_all((closed,))
    deliver(rig, qtbot)
    assert rig.library.current == shown
    assert titles(rig) == ["Two"]


@pytest.mark.parametrize("is_deleted", [False, True])
def test_keep_ready_can_be_set_for_a_closed_chat(rig: Rig, qtbot: QtBot, is_deleted: bool) -> None:
    closed = closed_chat(rig)
    rig.core.organiser.keep_ready(closed, True)
    if is_deleted:
        rig.core.deletions.delete_all((closed,))
    deliver(rig, qtbot)
    assert rig.library.listed.kept_ready == (frozenset() if is_deleted else {closed})
    assert rig.stored(lambda store: store.load(closed)).keep_ready


def test_file_opened_at_the_start_keeps_its_new_chat_on_show(tmp_path: Path, qtbot: QtBot) -> None:
    last = store_two_chats(tmp_path, qtbot)
    notes = tmp_path / "notes.txt"
    notes.write_text("The meeting is on Monday.")
    rig = Rig(tmp_path, settings=Settings(selected_conversation=last))
    rig.start()
    opened = rig.library.current
    rig.core.open_files([notes])
    qtbot.waitUntil(lambda: bool(rig.desk.get(opened).draft_attachments))
    deliver(rig, qtbot)
    assert {"One", "Two"} < set(titles(rig))
    assert rig.library.current == opened
    rig.close()


def test_emptied_new_chat_leaves_the_list_and_the_store(rig: Rig, qtbot: QtBot) -> None:
    rig.library.new_chat()
    current = rig.library.current
    rig.chat.save_draft(current, "Hello")
    assert set(titles(rig)) == {"Hello", "Two", "One"}
    rig.chat.save_draft(current, "")
    deliver(rig, qtbot)
    assert set(titles(rig)) == {"Two", "One"}
    assert rig.stored(lambda store: len(store.summaries())) == 2
    rig.library.new_chat()
    assert rig.library.current == current, "the emptied chat is a new chat again"
    rig.chat.save_draft(current, "Again")
    deliver(rig, qtbot)
    assert set(titles(rig)) == {"Again", "Two", "One"}
    assert rig.stored(lambda store: store.load(current)).draft == "Again"


def test_emptied_chat_that_the_user_changed_stays_listed(rig: Rig) -> None:
    rig.library.new_chat()
    current = rig.library.current
    rig.chat.save_draft(current, "Hello")
    rig.core.organiser.rename(current, "By hand")
    rig.chat.save_draft(current, "")
    assert set(titles(rig)) == {"By hand", "Two", "One"}
