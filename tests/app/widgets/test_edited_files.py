"""The files of a sent message, removed and added in its editor. On the real window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog

from app.conversation.attachments import Attachment
from app.conversation.tree import set_draft_attachments, shown_path
from app.settings import PictureSize
from app.widgets.commands import CommandId
from app.widgets.icon_button import IconButton
from app.widgets.transcript.editor.editor import EditorText, MessageEditor
from app.words import attachments as words
from engine.errors import ContextFullError
from tests.fakes.stage import Stage
from tests.fakes.stored_pictures import png, scene, stored_picture

LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "data", sees=True)
    yield stage
    stage.close()
    # Data that a test leaves in the clipboard crash Qt at the end of the process.
    QGuiApplication.clipboard().clear()


@pytest.fixture
def sent(stage: Stage) -> tuple[Attachment, Attachment]:
    """Two pictures of a sent message, which is open in its editor."""
    files = stage.core.pictures
    pair = (
        stored_picture(files),
        stored_picture(files, "sea.png", width=1400, height=1000, hue=200),
    )
    stage.core.chat.apply(set_draft_attachments(stage.core.desk.get(stage.current), pair))
    stage.settle()
    stage.send("What is this?")
    stage.answer("Hills.")
    edit(stage)
    return pair


def edit(stage: Stage) -> None:
    stage.run(CommandId.EDIT_LAST)
    stage.wait_until(lambda: len(editors(stage)) == 1)
    stage.settle()


def editors(stage: Stage) -> list[MessageEditor]:
    found = stage.pane.view.viewport().findChildren(MessageEditor)
    return [one for one in found if one.isVisible()]


def field(stage: Stage) -> EditorText:
    return editors(stage)[0].findChildren(EditorText)[0]


def names(stage: Stage) -> list[str]:
    return [one.chip.name for one in editors(stage)[0].files.chips]


def remove(stage: Stage, place: int) -> None:
    QTest.mouseClick(editors(stage)[0].files.chips[place].close_button, LEFT)
    stage.settle()


def save(stage: Stage) -> None:
    QTest.keyClick(field(stage), Qt.Key.Key_Return)
    stage.settle()


def files_of_last(stage: Stage) -> tuple[str, ...]:
    user = shown_path(stage.core.desk.get(stage.current))[-2]
    return tuple(file.name for file in user.attachments)


def paste(stage: Stage, path: Path) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    QGuiApplication.clipboard().setMimeData(mime)
    field(stage).paste()


def test_removed_picture_is_not_in_the_new_version(
    stage: Stage, sent: tuple[Attachment, Attachment]
) -> None:
    assert names(stage) == ["hills.png", "sea.png"]
    remove(stage, 0)
    assert names(stage) == ["sea.png"]
    save(stage)
    assert sent[1].picture is not None
    assert stage.engine.submitted[-1].messages[-1].pictures == (sent[1].picture.view,)
    stage.answer("A sea.")
    assert files_of_last(stage) == ("sea.png",)
    first = next(iter(stage.core.desk.get(stage.current).nodes.values()))
    assert [file.name for file in first.attachments] == ["hills.png", "sea.png"]
    edit(stage)
    assert names(stage) == ["sea.png"], "the edit of the next version begins with its own files"


@pytest.mark.usefixtures("sent")
def test_added_file_and_picture_are_in_the_new_version_only(stage: Stage, tmp_path: Path) -> None:
    for name, content in (("notes.md", b"# Notes"), ("dog.png", png(scene(90, 60, 99)))):
        (tmp_path / name).write_bytes(content)
        paste(stage, tmp_path / name)
        stage.wait_until(lambda name=name: names(stage)[-1:] == [name] and _is_opened(stage))
    assert not stage.core.desk.get(stage.current).draft_attachments
    save(stage)
    stage.answer("Notes.")
    assert files_of_last(stage) == ("hills.png", "sea.png", "notes.md", "dog.png")
    message = stage.engine.submitted[-1].messages[-1]
    assert len(message.pictures) == 3
    assert "# Notes" in message.content


def _is_opened(stage: Stage) -> bool:
    return not any(one.chip.is_opening for one in editors(stage)[0].files.chips)


@pytest.mark.usefixtures("sent")
def test_button_of_the_editor_asks_for_files(stage: Stage, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Notes")
    (button,) = (
        one
        for one in editors(stage)[0].findChildren(IconButton)
        if one.accessibleName() == words.ATTACH_TO_EDIT
    )
    QTest.mouseClick(button, LEFT)
    dialog = stage.window.findChildren(QFileDialog)[-1]
    dialog.filesSelected.emit([str(path)])
    dialog.close()
    stage.wait_until(lambda: names(stage)[-1:] == ["notes.md"] and _is_opened(stage))


@pytest.mark.usefixtures("sent")
def test_message_is_not_sent_while_a_file_is_opened(stage: Stage, tmp_path: Path) -> None:
    before = len(stage.engine.submitted)
    path = tmp_path / "notes.md"
    path.write_text("# Notes")
    paste(stage, path)
    assert names(stage)[-1] == "notes.md"
    assert not _is_opened(stage)
    QTest.keyClick(field(stage), Qt.Key.Key_Return)
    assert len(stage.engine.submitted) == before
    stage.wait_until(lambda: _is_opened(stage))
    save(stage)
    assert len(stage.engine.submitted) == before + 1


@pytest.mark.usefixtures("sent")
def test_buttons_of_a_chip_stay_inside_a_narrow_editor(stage: Stage) -> None:
    stage.window.resize(640, 480)
    stage.settle()
    chips = editors(stage)[0].files
    for chip in chips.chips:
        assert chip.width() <= chips.viewport().width()
        assert chip.rect().contains(chip.close_button.geometry())


@pytest.mark.usefixtures("sent")
def test_price_of_the_edit_follows_its_files(stage: Stage) -> None:
    def counted() -> int:
        return len(stage.engine.counts[-1].messages[-1].pictures)

    stage.wait_until(lambda: bool(stage.engine.counts) and counted() == 2)
    assert editors(stage)[0].files.chips[1].chip.details == "1,198 tokens"
    remove(stage, 0)
    stage.wait_until(lambda: counted() == 1)


@pytest.mark.usefixtures("sent")
def test_picture_of_the_edit_gets_another_size(stage: Stage) -> None:
    chips = editors(stage)[0].files
    assert [one.size for one in chips.chips[1].chip.sizes] == list(PictureSize)
    chips.resized.emit(1, PictureSize.SMALL)
    stage.wait_until(
        lambda: any(
            one.is_chosen and one.size is PictureSize.SMALL for one in chips.chips[1].chip.sizes
        )
    )
    save(stage)
    assert len({one.height for one in stage.engine.submitted[-1].messages[-1].pictures}) == 2
    stage.answer("Hills.")
    sizes = [
        one.picture.size
        for one in shown_path(stage.core.desk.get(stage.current))[-2].attachments
        if one.picture is not None
    ]
    assert sizes == [PictureSize.MEDIUM, PictureSize.SMALL]


@pytest.mark.usefixtures("sent")
def test_cancelled_edit_has_the_files_of_the_message_and_its_undo_the_changed_ones(
    stage: Stage,
) -> None:
    remove(stage, 0)
    QTest.keyClick(field(stage), Qt.Key.Key_Escape)
    stage.wait_until(lambda: not editors(stage))
    edit(stage)
    assert names(stage) == ["hills.png", "sea.png"]
    QTest.keyClick(field(stage), Qt.Key.Key_Escape)
    stage.wait_until(lambda: not editors(stage))
    stage.run(CommandId.UNDO)
    stage.wait_until(lambda: len(editors(stage)) == 1)
    stage.settle()
    assert names(stage) == ["sea.png"]


@pytest.mark.usefixtures("sent")
def test_refused_edit_returns_with_its_files(stage: Stage) -> None:
    stage.engine.hold_start = True
    remove(stage, 0)
    save(stage)
    stage.engine.fail(ContextFullError("Too many tokens.", 40_000).problem)
    stage.wait_until(lambda: len(editors(stage)) == 1)
    stage.settle()
    assert names(stage) == ["sea.png"]


@pytest.mark.usefixtures("sent")
def test_changed_files_are_kept_while_another_chat_is_on_show(stage: Stage) -> None:
    chat = stage.current
    remove(stage, 0)
    stage.run(CommandId.NEW_CHAT)
    stage.settle()
    stage.core.library.select(chat)
    stage.wait_until(lambda: len(editors(stage)) == 1)
    stage.settle()
    assert names(stage) == ["sea.png"]
