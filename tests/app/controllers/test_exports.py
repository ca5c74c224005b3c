from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from pytestqt.qtbot import QtBot

from app.bridge.store_lane import StoreLane
from app.bridge.tasks import TaskLane
from app.controllers.exports import Exports
from app.conversation.filed import FiledConversation
from app.conversation.tree import Conversation
from app.exchange.importing import Import
from app.store.conversations import ConversationStore, open_store
from app.store.pictures import PictureFiles
from engine.problem import Problem
from engine.types import ConversationId
from tests.fakes.conversations import ConversationWriter


@pytest.fixture
def store(tmp_path: Path) -> Iterator[StoreLane]:
    file = tmp_path / "data" / "conversations.db"
    file.parent.mkdir()
    lane = StoreLane(lambda: open_store(file, now=0.0))
    lane.open()
    yield lane
    lane.close()


@pytest.fixture
def exports(store: StoreLane, tmp_path: Path) -> Iterator[Exports]:
    lane = TaskLane("files")
    exports = Exports(lane, store, PictureFiles(tmp_path / "pictures"))
    yield exports
    exports.close()
    lane.stop()


def test_save_replaces_an_existing_file(exports: Exports, qtbot: QtBot, tmp_path: Path) -> None:
    path = tmp_path / "code.py"
    path.write_text("before")
    saved: list[str] = []
    exports.saved.connect(saved.append)
    exports.save(path, "caf\u00e9\n")
    qtbot.waitUntil(lambda: saved == ["code.py"])
    assert path.read_bytes() == "caf\u00e9\n".encode()
    assert {one.name for one in tmp_path.iterdir()} == {"data", path.name}


def test_save_in_missing_folder_emits_the_problem(
    exports: Exports, qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "gone" / "code.py"
    failed: list[Problem] = []
    exports.failed.connect(failed.append)
    exports.save(path, "text")
    qtbot.waitUntil(lambda: bool(failed))
    assert str(path) in failed[0].cause


def stored(store: StoreLane, count: int) -> list[Conversation]:
    written: list[Conversation] = []
    for number in range(count):
        writer = ConversationWriter(f"chat-{number}")
        writer.send(f"Question {number}", "Noted.")
        written.append(writer.conv)
        store.save(writer.conv, lambda _none: None, print)
    return written


def test_several_conversations_are_exported_in_order(
    exports: Exports, store: StoreLane, qtbot: QtBot, tmp_path: Path
) -> None:
    chats = stored(store, 45)
    path = tmp_path / "all.json"
    exported: list[tuple[int, str]] = []

    def on_exported(number: int, name: str) -> None:
        exported.append((number, name))

    exports.exported.connect(on_exported)
    exports.export_several(path, [one.conversation_id for one in chats])
    exports.export_several(tmp_path / "two.md", [one.conversation_id for one in chats[:2]])
    qtbot.waitUntil(lambda: exported == [(45, "all.json"), (2, "two.md")])
    found = list(Import([path], now=0.0).found())
    assert found == [FiledConversation(conversation=one) for one in chats]
    assert "## You\n\nQuestion 1" in (tmp_path / "two.md").read_text(encoding="utf-8")


def test_conversation_that_cannot_be_loaded_leaves_no_file(
    exports: Exports, store: StoreLane, qtbot: QtBot, tmp_path: Path
) -> None:
    chats = [one.conversation_id for one in stored(store, 3)]
    failed: list[Problem] = []
    exports.failed.connect(failed.append)
    exports.export_several(tmp_path / "all.json", [*chats, ConversationId("gone")])
    qtbot.waitUntil(lambda: bool(failed))
    assert [one.name for one in tmp_path.iterdir()] == ["data"]


def hold_second_load(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Let an export wait before its second conversation, until the event is set."""
    may_go_on, load, loaded = Event(), ConversationStore.load_filed, list[object]()

    def held(store: ConversationStore, conversation_id: ConversationId) -> FiledConversation:
        loaded.append(conversation_id)
        assert len(loaded) != 2 or may_go_on.wait(60)
        return load(store, conversation_id)

    monkeypatch.setattr(ConversationStore, "load_filed", held)
    return may_go_on


def test_cancelled_exports_leave_their_files_as_they_were(
    exports: Exports,
    store: StoreLane,
    qtbot: QtBot,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("app.controllers.exports._QUIET_S", 0.0)
    is_cancelled = hold_second_load(monkeypatch)
    chats = [one.conversation_id for one in stored(store, 3)]
    path = tmp_path / "all.json"
    path.write_text("before")
    shares: list[float] = []
    others: list[object] = []
    exports.progressed.connect(shares.append)
    exports.progressed.connect(exports.cancel)
    exports.progressed.connect(is_cancelled.set)
    exports.failed.connect(others.append)
    exports.exported.connect(others.append)

    with qtbot.waitSignal(exports.ended):
        exports.export_several(path, chats)
        exports.export_several(tmp_path / "waits.md", chats)

    assert path.read_text() == "before"
    assert {one.name for one in tmp_path.iterdir()} == {"data", path.name}
    assert shares[0] < 1
    assert others == []


def test_end_of_the_app_stops_an_export(exports: Exports, store: StoreLane, tmp_path: Path) -> None:
    chats = [one.conversation_id for one in stored(store, 3)]
    exports.export_several(tmp_path / "all.json", chats)
    exports.close()
    assert [one.name for one in tmp_path.iterdir()] == ["data"]
