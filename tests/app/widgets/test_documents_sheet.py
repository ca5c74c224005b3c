"""The documents of a folder in the window: sheet, drops, marks, empty chat, first message."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragMoveEvent, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.conversation.attachments import make_attachment
from app.conversation.folder import Folder, FolderDocument
from app.conversation.placement import FolderId
from app.extraction.extractor import Extracted, Extractor
from app.viewmodels.document_lines import FileState, key_of
from app.viewmodels.folder_documents import DocumentState, DocumentStatus, FolderDocumentsStatus
from app.widgets.commands import CommandId
from app.widgets.documents_sheet import DocumentsSheet
from app.widgets.folder_sheet import FolderSheet
from app.widgets.text_window import TextWindow
from app.widgets.transcript.rows.row import RowAction
from app.words import folder_documents as words
from tests.fakes.stage import Key, Stage

pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)


def file_at(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    return file_at(tmp_path / "notes.txt", "The meeting is on Monday.")


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    return file_at(tmp_path / "rules.txt", "Nobody may be late.")


def make_folder(stage: Stage, *paths: Path) -> FolderId:
    made = stage.core.folders.create(Folder(folder_id=FolderId(""), name="Work"))
    if paths:
        add(stage, made.folder_id, *paths)
    stage.settle()
    return made.folder_id


def add(stage: Stage, folder_id: FolderId, *paths: Path) -> None:
    stage.core.document_files.add(folder_id, paths)
    stage.wait_until(lambda: not stage.core.document_files.opening(folder_id))
    stage.settle()


def folder_of(stage: Stage, folder_id: FolderId) -> Folder:
    folder = stage.core.folders.get(folder_id)
    assert folder is not None
    return folder


def names(stage: Stage, folder_id: FolderId) -> list[str]:
    return [one.attachment.name for one in folder_of(stage, folder_id).documents]


def open_sheet(stage: Stage, folder_id: FolderId) -> DocumentsSheet:
    stage.window.documents.open(folder_of(stage, folder_id))
    stage.settle()
    return stage.window.findChildren(DocumentsSheet)[-1]


def rows(sheet: DocumentsSheet) -> list[tuple[str, str]]:
    found = [sheet.list.row_at(place) for place in range(sheet.list.count())]
    return [(row.name, row.details) for row in found]


def set_status(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, folder_id: FolderId, **values: object
) -> None:
    """Let the documents have a state, as the controller would report it."""
    folder = folder_of(stage, folder_id)
    state = values.get("state", DocumentState.WAITING)
    assert isinstance(state, DocumentState)
    status = FolderDocumentsStatus(
        folder_id=folder_id,
        name=folder.name,
        documents=tuple(
            DocumentStatus(name=one.attachment.name, num_tokens=1200, state=state)
            for one in folder.documents
        ),
        state=state,
        num_tokens=60_000,
        context_len=132_000,
    )
    status = replace(status, **values)

    def status_of(_folder_id: FolderId) -> FolderDocumentsStatus:
        return status

    monkeypatch.setattr(stage.core.documents, "status", status_of)
    stage.core.documents.changed.emit(folder_id)
    stage.settle()


def drop(widget: QWidget, at: QPoint, *paths: Path) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    copy, left = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton
    none = Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(widget, QDragEnterEvent(at, copy, mime, left, none))
    QApplication.sendEvent(widget, QDragMoveEvent(at, copy, mime, left, none))
    QApplication.sendEvent(widget, QDropEvent(QPointF(at), copy, mime, left, none))


def test_added_files_are_documents_in_order_and_one_undo_removes_them(
    stage: Stage, notes: Path, rules: Path
) -> None:
    folder_id = make_folder(stage)
    sheet = open_sheet(stage, folder_id)
    drop(sheet, QPoint(10, 10), notes, rules)
    stage.wait_until(lambda: len(folder_of(stage, folder_id).documents) == 2)
    stage.settle()
    assert names(stage, folder_id) == ["notes.txt", "rules.txt"]
    assert [name for name, _ in rows(sheet)] == ["notes.txt", "rules.txt"]
    (stored,) = stage.rig.stored(lambda store: store.folders.load())
    assert [one.attachment.text for one in stored.documents] == [
        "The meeting is on Monday.",
        "Nobody may be late.",
    ]
    sheet.done_button.click()
    assert stage.core.undoing.name == "Add 2 documents"
    stage.run(CommandId.UNDO)
    assert names(stage, folder_id) == []
    stage.run(CommandId.REDO)
    assert names(stage, folder_id) == ["notes.txt", "rules.txt"]


def test_key_removes_the_selected_documents(stage: Stage, notes: Path, rules: Path) -> None:
    folder_id = make_folder(stage, notes, rules)
    sheet = open_sheet(stage, folder_id)
    QTest.keyClick(sheet.list, Key.Key_Delete)
    stage.settle()
    assert names(stage, folder_id) == ["rules.txt"]
    assert [name for name, _ in rows(sheet)] == ["rules.txt"]
    sheet.done_button.click()
    stage.run(CommandId.UNDO)
    assert names(stage, folder_id) == ["notes.txt", "rules.txt"]


def test_files_that_are_being_opened_can_be_removed(
    stage: Stage, notes: Path, rules: Path, tmp_path: Path
) -> None:
    folder_id = make_folder(stage)
    sheet = open_sheet(stage, folder_id)
    (last := tmp_path / "last.txt").write_text("The last one.")
    stage.core.document_files.add(folder_id, [notes, rules, last])
    assert [name for name, _ in rows(sheet)] == ["notes.txt", "rules.txt", "last.txt"]
    sheet.list.setCurrentRow(0)  # its text is being extracted
    sheet.remove_button.click()
    sheet.list.clearSelection()
    sheet.list.setCurrentRow(1)
    QTest.keyClick(sheet.list, Key.Key_Delete)
    stage.wait_until(lambda: not stage.core.document_files.opening(folder_id))
    assert names(stage, folder_id) == ["rules.txt"]
    assert sheet.refusal.isHidden()


def test_refused_and_repeated_files_are_named_and_the_others_are_added(
    stage: Stage, notes: Path, tmp_path: Path
) -> None:
    folder_id = make_folder(stage, notes)
    sheet = open_sheet(stage, folder_id)
    other = file_at(tmp_path / "other.txt", "More.")
    add(stage, folder_id, tmp_path / "lost.txt", notes, other)
    assert names(stage, folder_id) == ["notes.txt", "other.txt"]
    assert sheet.refusal.text() == (
        "“lost.txt” can’t be found.\n“notes.txt” is already a document of this folder."
    )
    assert sheet.refusal.isVisible()


def test_files_dropped_on_a_folder_are_its_documents_and_elsewhere_go_to_the_chat(
    stage: Stage, notes: Path, rules: Path
) -> None:
    folder_id = make_folder(stage)
    view = stage.list
    at = view.visualRect(view.model().index(stage.rows.index("Work"), 0)).center()
    drop(view.viewport(), at, notes)
    stage.wait_until(lambda: len(folder_of(stage, folder_id).documents) == 1)
    drop(view.viewport(), QPoint(at.x(), view.viewport().height() - 4), rules)
    stage.wait_until(lambda: not stage.core.attachments.is_opening(stage.core.library.current))
    stage.settle()
    assert names(stage, folder_id) == ["notes.txt"]
    assert stage.window.toast.text == "Added 1 document to “Work”"
    assert [chip.chip.name for chip in stage.composer.files.chips] == ["rules.txt"]


def test_line_below_the_documents_follows_their_state(
    stage: Stage, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sheet = open_sheet(stage, folder_id := make_folder(stage))
    assert sheet.summary.text() == words.NONE
    add(stage, folder_id, notes)
    set_status(stage, monkeypatch, folder_id, state=DocumentState.TOO_LONG)
    name = stage.core.models.status.name
    assert sheet.summary.text() == f"60,000 tokens · {words.too_long(name)}"


def test_pause_button_pauses_and_resumes_only_while_there_is_something_to_read(
    stage: Stage, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_id = make_folder(stage, notes)
    sheet = open_sheet(stage, folder_id)
    paused: list[bool] = []

    def pause(_folder_id: FolderId, value: bool) -> None:
        paused.append(value)

    monkeypatch.setattr(stage.core.documents, "pause", pause)
    set_status(stage, monkeypatch, folder_id, state=DocumentState.READING)
    sheet.pause_button.click()
    set_status(stage, monkeypatch, folder_id, is_paused=True)
    assert sheet.pause_button.text() == "Resume"
    sheet.pause_button.click()
    assert paused == [True, False]
    set_status(stage, monkeypatch, folder_id, state=DocumentState.IN_MEMORY)
    assert sheet.pause_button.isHidden()


def test_row_of_the_folder_says_the_state_to_pointer_and_screen_reader(
    stage: Stage, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_id = make_folder(stage, notes)
    index = stage.list.model().index(stage.rows.index("Work"), 0)
    set_status(stage, monkeypatch, folder_id, state=DocumentState.IN_MEMORY)
    tip = "Work\n1 document · 60,000 tokens, ready"
    assert index.data(Qt.ItemDataRole.ToolTipRole) == tip
    spoken = index.data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken.endswith("1 document · 60,000 tokens, ready")
    stage.core.document_files.remove(folder_id, [0])
    assert index.data(Qt.ItemDataRole.ToolTipRole) == "Work"


def test_empty_chat_of_the_folder_says_what_is_read_first_and_can_do_without(
    stage: Stage, notes: Path, rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_id = make_folder(stage, notes, rules)
    stage.core.library.new_chat(folder_id)
    set_status(stage, monkeypatch, folder_id, state=DocumentState.IN_MEMORY)
    note = stage.pane.empty.documents
    assert note.isVisible()
    assert note.sentence.text() == "Begins with 2 documents of Work: 60,000 tokens, ready"
    note.toggle_button.click()
    stage.settle()
    assert note.sentence.text() == "Begins without the 2 documents of Work"
    assert note.toggle_button.text() == "With Documents"
    stage.send("Hello")
    assert "Monday" not in stage.engine.submitted[-1].messages[-1].content
    assert note.isHidden()
    stage.core.library.new_chat()
    stage.settle()
    assert note.isHidden()


def begin_chat(stage: Stage, folder_id: FolderId) -> None:
    stage.core.library.new_chat(folder_id)
    stage.settle()
    stage.chat("When is it?", "On Monday.")


def test_first_message_has_one_row_for_all_documents_which_opens(
    stage: Stage, notes: Path, rules: Path
) -> None:
    begin_chat(stage, make_folder(stage, notes, rules))
    item = stage.pane.transcript.items[0]
    assert ([chip.from_folder for chip in item.files], item.folder) == ([True, True], "Work")
    content = stage.engine.submitted[-1].messages[-1].content
    assert content.index("Monday") < content.index("late") < content.index("When is it?")
    stage.click(RowAction.TOGGLE_DOCUMENTS)
    stage.click(RowAction.OPEN_FILE)
    window = stage.pane.texts.window
    assert isinstance(window, TextWindow)
    assert window.edit.toPlainText() == "The meeting is on Monday."


def change(stage: Stage, folder_id: FolderId, act: Callable[[], object]) -> None:
    """Change files while another app is in front."""
    act()
    app = QGuiApplication.instance()
    assert isinstance(app, QGuiApplication)
    app.applicationStateChanged.emit(Qt.ApplicationState.ApplicationActive)
    stage.settle()


def states(stage: Stage, folder_id: FolderId) -> list[FileState | None]:
    found = stage.core.document_files.states(folder_id)
    return [found.get(key_of(one)) for one in folder_of(stage, folder_id).documents]


def test_changed_file_is_read_again_in_its_place_and_chats_keep_the_earlier_text(
    stage: Stage, notes: Path, rules: Path
) -> None:
    folder_id = make_folder(stage, notes, rules)
    begin_chat(stage, folder_id)
    change(stage, folder_id, lambda: file_at(notes, "The meeting is on Tuesday."))
    stage.wait_until(lambda: states(stage, folder_id) == [FileState.CHANGED, None])
    sheet = open_sheet(stage, folder_id)
    assert rows(sheet)[0][1].endswith("changed on disk")
    assert "The document behind it is then read again too." in sheet.note.text()
    sheet.again_button.click()
    stage.wait_until(lambda: states(stage, folder_id) == [None, None])
    stage.settle()
    texts = [one.attachment.text for one in folder_of(stage, folder_id).documents]
    assert texts == ["The meeting is on Tuesday.", "Nobody may be late."]
    assert sheet.again_button.isHidden()
    sheet.done_button.click()
    stage.chat("And again?", "Yes.")
    assert "Monday" in stage.engine.submitted[-1].messages[-3].content
    stage.run(CommandId.UNDO)
    stage.run(CommandId.UNDO)


def test_changed_file_is_extracted_once_to_compare_it(
    stage: Stage, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_id = make_folder(stage, notes)
    read: list[Path] = []
    original = Extractor.read

    def counted(self: Extractor, path: Path, *args: Any, **options: Any) -> Extracted:
        read.append(path)
        return original(self, path, *args, **options)

    monkeypatch.setattr(Extractor, "read", counted)
    change(stage, folder_id, lambda: file_at(notes, "The meeting is on Tuesday."))
    stage.wait_until(lambda: states(stage, folder_id) == [FileState.CHANGED])
    change(stage, folder_id, lambda: None)
    open_sheet(stage, folder_id)
    change(stage, folder_id, notes.unlink)
    stage.wait_until(lambda: states(stage, folder_id) == [FileState.GONE])
    assert read == [notes]


def test_touched_file_with_the_same_text_is_no_change(stage: Stage, notes: Path) -> None:
    folder_id = make_folder(stage, notes)
    change(stage, folder_id, lambda: os.utime(notes, (1.0, 1.0)))
    stage.wait_until(lambda: folder_of(stage, folder_id).documents[0].modified_at == 1.0)
    assert states(stage, folder_id) == [None]
    assert stage.core.undoing.name == "Add Document"


def test_file_that_is_gone_keeps_its_text(stage: Stage, notes: Path) -> None:
    folder_id = make_folder(stage, notes)
    change(stage, folder_id, notes.unlink)
    stage.wait_until(lambda: states(stage, folder_id) == [FileState.GONE])
    sheet = open_sheet(stage, folder_id)
    assert rows(sheet)[0][1].endswith("file is gone")
    assert sheet.note.text() == "The file is gone. Rejoinder keeps its text."
    sheet.open_button.click()
    (window,) = sheet.findChildren(TextWindow)
    assert window.edit.toPlainText() == "The meeting is on Monday."
    assert sheet.again_button.isHidden()


def test_file_that_cannot_be_looked_at_is_not_called_gone(
    stage: Stage, notes: Path, rules: Path
) -> None:
    folder_id = make_folder(stage, notes, rules)

    def hide() -> None:
        notes.unlink()
        notes.symlink_to(notes)
        rules.unlink()

    change(stage, folder_id, hide)
    stage.wait_until(lambda: states(stage, folder_id) == [None, FileState.GONE])


def test_saving_the_folder_keeps_documents_that_were_added_meanwhile(
    stage: Stage, notes: Path, rules: Path
) -> None:
    folder_id = make_folder(stage, notes)
    stage.window.sidebar.ask_for_folder(folder_of(stage, folder_id), [])
    (settings,) = stage.window.findChildren(FolderSheet)
    assert settings.documents_button.text() == "1 document…"
    settings.documents_button.click()
    stage.settle()
    (sheet,) = settings.findChildren(DocumentsSheet)
    add(stage, folder_id, rules)
    sheet.done_button.click()
    assert settings.documents_button.text() == "2 documents…"
    settings.name.setText("Home")
    settings.save_button.click()
    stage.settle()
    assert folder_of(stage, folder_id).name == "Home"
    assert names(stage, folder_id) == ["notes.txt", "rules.txt"]


def test_document_without_a_file_is_never_looked_for(stage: Stage) -> None:
    folder_id = make_folder(stage)
    document = FolderDocument(attachment=make_attachment("a.txt", "text", "A."))
    stage.core.folders.change(replace(folder_of(stage, folder_id), documents=(document,)))
    change(stage, folder_id, lambda: None)
    assert states(stage, folder_id) == [None]
