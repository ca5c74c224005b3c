"""Import of chats from the menu: into the list, into open chats, cancelled, unreadable."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QPushButton

from app.controllers import imports
from app.conversation.filed import FiledConversation
from app.conversation.folder import Folder
from app.conversation.placement import FolderId
from app.conversation.tree import Conversation
from app.exchange.data_urls import make_data_url
from app.exchange.own_json import to_json
from app.store.conversations import ConversationStore
from app.store.merging import PART_MESSAGES, Merged, Merging
from app.widgets.commands import CommandId
from app.widgets.message_sheet import MessageSheet
from tests.app.conftest import MakeStage
from tests.fakes.ask_store import PATIENCE_S
from tests.fakes.conversations import ConversationWriter, filed
from tests.fakes.foreign_exports import open_webui
from tests.fakes.picture_files import saved, scene
from tests.fakes.stage import Stage

pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)


def written(name: str, *questions: str) -> Conversation:
    writer = ConversationWriter(name)
    for question in questions:
        writer.send(question, f"About {question}.")
    return writer.conv


def import_files(stage: Stage, *paths: Path) -> None:
    stage.run(CommandId.IMPORT)
    dialog = stage.window.findChildren(QFileDialog)[-1]
    dialog.filesSelected.emit([str(path) for path in paths])
    stage.wait_until(lambda: not stage.core.imports.is_running)
    stage.settle()


def wait_until_in_view(stage: Stage, title: str) -> None:
    """Wait until a chat is on show, and assert that its row is visible."""
    stage.wait_until(lambda: title in stage.texts)
    stage.settle()
    index = stage.list.currentIndex()
    assert stage.rows[index.row()] == title
    assert stage.list.viewport().rect().contains(stage.list.visualRect(index))


def file_of(folder: Path, *chats: Conversation) -> Path:
    path = folder / "chats.json"
    path.write_text(f"[{','.join(map(to_json, map(filed, chats)))}]", encoding="utf-8")
    return path


@pytest.mark.slow
def test_imported_chats_are_in_the_list(stage: Stage, tmp_path: Path) -> None:
    stage.chat("Here already", "Yes")
    chats = [written(f"chat-{number}", f"Question {number}") for number in range(45)]
    import_files(stage, file_of(tmp_path, *chats))
    assert stage.window.toast.text == "45 chats imported."
    assert len(stage.rig.core.library.listed.unarchived) == 46
    stage.window.toast.button.click()
    wait_until_in_view(stage, "Question 0")
    stage.click_row("Here already")
    sidebar = stage.window.sidebar
    QTest.keyClicks(sidebar.search.edit, "Question 44")
    stage.wait_until(sidebar.results.isVisible)
    QTest.keyClick(sidebar.search.edit, Qt.Key.Key_Return)
    stage.wait_until(lambda: "Question 44" in stage.texts)
    QTest.keyClick(sidebar.search.edit, Qt.Key.Key_Escape)
    wait_until_in_view(stage, "Question 44")
    stage.click_row("Here already")
    stage.run(CommandId.SWITCHER)
    QTest.keyClicks(stage.window.switching.popup.field, "Question 43")
    QTest.keyClick(stage.window.switching.popup.field, Qt.Key.Key_Return)
    wait_until_in_view(stage, "Question 43")
    stage.click_row("Question 7")
    assert stage.texts == ["Question 7", "About Question 7."]
    import_files(stage, file_of(tmp_path, *chats))
    assert stage.window.toast.text == "45 chats already here."


@pytest.mark.slow
def test_new_messages_are_shown_in_the_open_chat(stage: Stage, tmp_path: Path) -> None:
    import_files(stage, file_of(tmp_path, written("A", "One")))
    stage.click_row("One")
    import_files(stage, file_of(tmp_path, written("A", "One", "Two")))
    assert stage.window.toast.text == "1 chat continued."
    assert stage.texts == ["One", "About One.", "Two", "About Two."]
    stage.chat("Three", "Noted.")
    assert stage.texts[-2:] == ["Three", "Noted."]


@pytest.mark.slow
def test_import_restores_a_deleted_chat(stage: Stage, tmp_path: Path) -> None:
    file = file_of(tmp_path, written("A", "One"))
    import_files(stage, file)
    stage.click_row("One")
    stage.run(CommandId.DELETE)
    assert stage.rig.core.library.deleted.all
    import_files(stage, file)
    assert not stage.rig.core.library.deleted.all
    stage.click_row("One")
    assert stage.texts == ["One", "About One."]


@pytest.mark.parametrize("command", [CommandId.EXPORT, CommandId.EXPORT_ALL])
def test_exported_chat_is_imported_into_its_deleted_folder(
    stage: Stage, tmp_path: Path, command: CommandId
) -> None:
    core, path = stage.rig.core, tmp_path / "chats.json"
    folder = core.folders.create(Folder(folder_id=FolderId(""), name="Work"))
    stage.chat("One", "Noted.")
    core.organiser.move([core.library.current], folder.folder_id)
    stage.run(command)
    stage.window.findChildren(QFileDialog)[-1].fileSelected.emit(str(path))
    stage.wait_until(lambda: stage.window.toast.text.startswith("Exported"))
    core.organiser.delete([core.library.current])
    core.library.deleted.remove_all([core.library.deleted.all[0].summary.conversation_id])
    core.folders.delete(folder.folder_id)
    stage.settle()
    assert stage.rows == []

    import_files(stage, path)

    assert stage.rows == ["FOLDERS", "Work", "One"]
    assert core.folders.folders == [folder]


def test_sheet_lists_what_could_not_be_read(stage: Stage, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps({"some": "thing"}), encoding="utf-8")
    reason = "1 item could not be read:\nbroken.json: It has no chats in a known format."
    import_files(stage, broken)
    (sheet,) = stage.window.findChildren(MessageSheet)
    assert sheet.text == reason
    assert not stage.window.toast.isVisible()
    sheet.accept()
    import_files(stage, file_of(tmp_path, written("A", "One")), broken)
    sheet = next(one for one in stage.window.findChildren(MessageSheet) if one.isVisible())
    assert sheet.text == f"1 chat imported. {reason}"
    assert not stage.window.toast.isVisible()
    show = next(one for one in sheet.findChildren(QPushButton) if one.text() == "Show")
    QTest.mouseClick(show, Qt.MouseButton.LeftButton)
    stage.wait_until(lambda: stage.texts == ["One", "About One."])


class Hold:
    """Holds the import after the first step of the chat with a title, until `go` is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, title: str) -> None:
        self.reached, self.go = Event(), Event()

        def merging(filed: FiledConversation) -> Merging:
            made = Merging(filed)
            if filed.conversation.title == title:
                monkeypatch.setattr(made, "step", partial(self._step, made.step))
            return made

        monkeypatch.setattr(imports, "Merging", merging)

    def _step(
        self, step: Callable[[ConversationStore], Merged | None], store: ConversationStore
    ) -> Merged | None:
        merged = step(store)
        self.reached.set()
        assert self.go.wait(PATIENCE_S)
        return merged


def cancel_import(stage: Stage, file: Path, hold: Hold) -> None:
    """Start to import a file, click Cancel while the import is held, and release it."""
    stage.run(CommandId.IMPORT)
    stage.window.findChildren(QFileDialog)[-1].filesSelected.emit([str(file)])
    assert stage.window.toast.text == "Importing chats… 0%"
    (cancel,) = stage.window.toast.findChildren(QPushButton)
    stage.wait_until(hold.reached.is_set)
    QTest.mouseClick(cancel, Qt.MouseButton.LeftButton)
    hold.go.set()
    stage.wait_until(lambda: not stage.core.imports.is_running)
    stage.settle()


@pytest.mark.slow
def test_cancelled_import_keeps_what_was_written(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chats = [written(f"chat-{number}", f"Question {number}") for number in range(100)]
    file = file_of(tmp_path, *chats)
    cancel_import(stage, file, Hold(monkeypatch, "Question 19"))
    assert stage.window.toast.text == "20 chats imported."
    assert len(stage.rig.core.library.listed.unarchived) == 20
    import_files(stage, file)
    assert stage.window.toast.text == "80 chats imported, 20 already here."


def test_chat_that_was_partly_written_at_the_cancel_is_imported_whole_later(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    questions = [f"Question {number}" for number in range(PART_MESSAGES)]
    file = file_of(tmp_path, written("A", *questions))
    cancel_import(stage, file, Hold(monkeypatch, questions[0]))
    assert stage.rows == []
    assert not stage.window.toast.isVisible()
    import_files(stage, file)
    stage.click_row(questions[0])
    assert len(stage.texts) == 2 * PART_MESSAGES


def test_import_is_refused_each_time_if_the_chats_cannot_be_opened(
    make_stage: MakeStage, tmp_path: Path
) -> None:
    (tmp_path / "conversations.db").mkdir()
    stage = make_stage()
    stage.wait_until(lambda: stage.core.store.is_lost)
    chats = file_of(tmp_path, written("A", "One"))
    for _attempt in range(2):
        stage.window.toast.dismiss()
        stage.window.commands[CommandId.IMPORT].trigger()
        dialog = stage.window.findChildren(QFileDialog)[-1]
        dialog.filesSelected.emit([str(chats)])
        dialog.close()
        assert stage.window.toast.isVisible()
        assert stage.window.toast.text == "Your chats could not be used."


def test_imported_picture_is_shown_and_a_damaged_one_is_listed(
    stage: Stage, tmp_path: Path
) -> None:
    urls = [make_data_url(saved(scene(), "PNG"), "png"), make_data_url(b"\x89PNG\0", "png")]
    value = cast("list[Any]", open_webui())
    value[0]["chat"]["history"]["messages"]["q2"]["files"] = [
        {"type": "image", "url": url, "name": name}
        for url, name in zip(urls, ("cat.png", "dog.png"), strict=True)
    ]
    path = tmp_path / "export.json"
    path.write_text(json.dumps(value))

    import_files(stage, path)

    text = stage.window.findChildren(MessageSheet)[-1].text
    assert "Numbers: “dog.png” is damaged." in text
    stage.click_row("Numbers")
    stage.wait_until(lambda: "Two?" in stage.texts)
    cat, dog = next(item.files for item in stage.items if item.text == "Two?")
    assert cat.picture is not None
    assert stage.core.pictures.thumbnail(cat.picture).is_file()
    assert (dog.name, dog.picture, dog.details) == ("dog.png", None, "can’t be read")
