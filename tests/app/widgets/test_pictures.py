"""Tests of the pictures of messages: shown, opened, copied, saved. On the real window."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from pypdf import PdfReader
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog

from app.conversation.attachments import Attachment, lost_picture, make_attachment
from app.conversation.tree import set_draft_attachments, shown_path
from app.widgets.commands import CommandId
from app.widgets.paper.printing import Printing
from app.widgets.picture_window import PictureWindow
from app.widgets.transcript.rows.picture_row import PictureRow
from app.widgets.transcript.rows.row import RowAction
from app.words import attachments as words
from engine.errors import PictureError
from tests.fakes.stage import Stage
from tests.fakes.stored_pictures import stored_picture
from tests.fakes.transcript_stage import targets


@pytest.fixture
def stage(qapp: QApplication, tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path, sees=True)
    yield stage
    stage.close()


def put(stage: Stage, *pictures: Attachment) -> None:
    """Make pictures the files of the draft."""
    desk = stage.core.desk
    stage.core.chat.apply(set_draft_attachments(desk.get(stage.current), pictures))
    stage.settle()


def send_picture(
    stage: Stage, text: str = "What is this?", *, width: int = 800, height: int = 600
) -> Attachment:
    picture = stored_picture(stage.core.pictures, width=width, height=height)
    put(stage, picture)
    stage.send(text)
    stage.answer("Hills.")
    stage.wait_until(lambda: stage.pane.view.statistics().is_idle)
    return picture


def rows(stage: Stage) -> list[PictureRow]:
    layouts = stage.pane.view._stack.layouts  # pyright: ignore[reportPrivateUsage]
    return [row for one in layouts for row in one.rows if isinstance(row, PictureRow)]


def _note(said: list[str], _chat: object, text: str) -> None:
    said.append(text)


def windows() -> list[PictureWindow]:
    tops = QApplication.topLevelWidgets()
    return [one for one in tops if isinstance(one, PictureWindow) and one.isVisible()]


def test_picture_sent_stands_above_its_text_and_reaches_engine(stage: Stage) -> None:
    picture = send_picture(stage)
    assert picture.picture is not None
    assert stage.engine.submitted[-1].messages[-1].pictures == (picture.picture.view,)
    (row,) = rows(stage)
    (hit,) = row.hits()
    assert hit.rect.height() == 240
    assert hit.rect.width() == 320
    assert hit.name == "Picture hills.png"


def test_twelve_pictures_wrap_and_stay_inside_the_column(stage: Stage) -> None:
    many = [
        stored_picture(stage.core.pictures, f"{hue}.png", width=640, height=480, hue=hue)
        for hue in range(12)
    ]
    put(stage, *many)
    stage.send("Compare them.")
    stage.answer("Done.")
    (row,) = rows(stage)
    rects = [hit.rect for hit in row.hits()]
    assert len(rects) == 12
    assert row.num_lines > 1
    assert all(rect.right() <= row.width for rect in rects)
    assert not any(a.intersects(b) for a in rects for b in rects if a is not b)


def test_missing_thumbnail_is_said_and_the_row_keeps_its_height(stage: Stage) -> None:
    picture = stored_picture(stage.core.pictures)
    assert picture.picture is not None
    stage.core.pictures.thumbnail(picture.picture).unlink()
    put(stage, picture)
    stage.send("What is this?")
    stage.answer("Hills.")
    stage.wait_until(lambda: stage.pane.view.shelves.pictures.is_idle)
    assert rows(stage)[0].height == 240


def test_click_opens_picture_and_esc_closes_it(stage: Stage) -> None:
    send_picture(stage)
    stage.click(RowAction.OPEN_PICTURE)
    (window,) = windows()
    stage.wait_until(lambda: window.canvas.image is not None)
    assert window.windowTitle() == "hills.png"
    QTest.keyClick(window, Qt.Key.Key_Space)
    assert not window.canvas.fits
    assert window.zoom_button.text() == words.FIT
    QTest.keyClick(window, Qt.Key.Key_Escape)
    assert not windows()


def test_window_fits_large_picture_and_shows_its_own_size(stage: Stage) -> None:
    send_picture(stage, width=1600, height=1200)
    stage.click(RowAction.OPEN_PICTURE)
    (window,) = windows()
    stage.wait_until(lambda: window.canvas.image is not None)
    assert window.canvas.place().width() <= window.width()
    QTest.mouseClick(window.canvas, Qt.MouseButton.LeftButton)
    stage.wait(1)
    assert window.canvas.place().width() == 1600
    window.close()


def test_tab_and_return_open_picture(stage: Stage) -> None:
    send_picture(stage)
    view = stage.pane.view
    view.setFocus()
    QTest.keyClick(view, Qt.Key.Key_Tab)
    QTest.keyClick(view, Qt.Key.Key_Return)
    assert len(windows()) == 1
    windows()[0].close()


def choose(stage: Stage, text: str) -> None:
    """Choose an entry of the context menu of the first picture."""
    entry(stage, text).trigger()


def entry(stage: Stage, text: str) -> QAction:
    """Return an entry of the context menu of the first picture."""
    view = stage.pane.view
    point = next(targets(view, RowAction.OPEN_PICTURE))
    spot = view._placement.spot_at(point.toPointF())  # pyright: ignore[reportPrivateUsage]
    assert spot is not None
    hit = view._stack.layouts[spot.message].hit(spot.x, spot.y)  # pyright: ignore[reportPrivateUsage]
    menu = view._menu._make(spot.message, hit, view)  # pyright: ignore[reportPrivateUsage]
    return next(action for action in menu.actions() if action.text() == text)


def test_message_is_sent_again_without_a_picture_whose_file_is_missing(stage: Stage) -> None:
    picture = stored_picture(stage.core.pictures)
    other = make_attachment("notes.txt", "text", "Hills have grass.")
    put(stage, picture, other)
    stage.send("What is this?")
    stage.engine.fail(
        PictureError("The file of a picture is missing.", advice="Send it again.").problem
    )
    stage.settle()
    problem = stage.items[-1].problem
    assert problem is not None
    assert (problem.cause, problem.advice) == (
        "The file of a picture is missing.",
        "Send it again.",
    )

    choose(stage, words.SEND_WITHOUT_PICTURE)
    stage.answer("Grass.")

    sent = stage.engine.submitted[-1].messages[-1]
    assert sent.pictures == ()
    assert sent.content.endswith("What is this?")
    first, answer = shown_path(stage.core.desk.get(stage.current))
    assert (first.attachments, first.content) == ((other,), "What is this?")
    assert answer.content == "Grass."
    stage.run(CommandId.UNDO)
    stage.settle()
    (first, _) = shown_path(stage.core.desk.get(stage.current))
    assert first.attachments == (picture, other)


def test_message_with_a_picture_only_is_not_sent_again_without_it(stage: Stage) -> None:
    put(stage, stored_picture(stage.core.pictures))
    stage.send("")
    assert not entry(stage, words.SEND_WITHOUT_PICTURE).isEnabled(), "an answer is being written"
    stage.answer("Hills.")
    stage.wait_until(lambda: stage.pane.view.statistics().is_idle)
    assert not entry(stage, words.SEND_WITHOUT_PICTURE).isEnabled()
    assert entry(stage, words.COPY_PICTURE).isEnabled()


def test_lost_picture_is_named_and_a_click_says_so(stage: Stage) -> None:
    put(stage, lost_picture("photo.jpg"))
    stage.send("What is this?")
    stage.answer("I can’t see it.")
    assert words.LOST_PICTURE in stage.engine.submitted[-1].messages[-1].content
    assert stage.engine.submitted[-1].messages[-1].pictures == ()
    (chip,) = stage.items[0].files
    assert (chip.name, chip.details) == ("photo.jpg", words.LOST_PART)
    said: list[str] = []
    stage.pane.attaching.said.connect(partial(_note, said))
    stage.click(RowAction.OPEN_FILE)
    assert said == ["“photo.jpg” can’t be read. Remove it, or attach it again."]


def test_copy_picture_puts_it_on_the_clipboard(stage: Stage) -> None:
    send_picture(stage)
    QGuiApplication.clipboard().clear()
    choose(stage, words.COPY_PICTURE)
    stage.wait_until(lambda: not QGuiApplication.clipboard().image().isNull())
    assert QGuiApplication.clipboard().image().size().toTuple() == (800, 600)


def test_save_picture_writes_the_stored_file(stage: Stage, tmp_path: Path) -> None:
    picture = send_picture(stage)
    choose(stage, words.SAVE_PICTURE)
    dialog = stage.window.findChild(QFileDialog)
    assert dialog is not None
    target = tmp_path / "saved.png"
    dialog.fileSelected.emit(str(target))
    dialog.close()
    stage.wait_until(target.exists)
    assert picture.picture is not None
    assert target.read_bytes() == stage.core.pictures.original(picture.picture).read_bytes()


def test_edited_message_keeps_and_shows_its_pictures(stage: Stage) -> None:
    picture = send_picture(stage)
    stage.run(CommandId.EDIT_LAST)
    editor = stage.pane.view.editor_host._editor  # pyright: ignore[reportPrivateUsage]
    assert editor is not None
    (chip,) = editor.files.chips
    assert chip.chip.picture == picture.picture
    field = QApplication.focusWidget()
    assert field is not None
    QTest.keyClicks(field, " Be short.")
    QTest.keyClick(field, Qt.Key.Key_Return)
    stage.settle()
    assert picture.picture is not None
    last = stage.engine.submitted[-1].messages[-1]
    assert last.content == "What is this? Be short."
    assert last.pictures == (picture.picture.view,)
    assert len(rows(stage)) == 1


def test_pdf_file_contains_the_pictures(stage: Stage, tmp_path: Path) -> None:
    send_picture(stage)
    printing = Printing(stage.pane.view.paper_kit, stage.window)
    target, saved = tmp_path / "chat.pdf", list[str]()
    printing.saved.connect(saved.append)
    printing.save_pdf(target, stage.core.desk.get(stage.current))
    stage.wait_until(lambda: bool(saved))
    (image,) = PdfReader(target).pages[0].images
    assert Image.open(BytesIO(image.data)).width >= 640


def test_deleted_file_of_a_picture_is_said_in_its_window(stage: Stage) -> None:
    picture = send_picture(stage)
    assert picture.picture is not None
    stage.core.pictures.view(picture.picture.view).unlink()
    stage.core.pictures.original(picture.picture).unlink()
    stage.click(RowAction.OPEN_PICTURE)
    (window,) = windows()
    stage.wait_until(lambda: window.canvas.accessibleDescription() == words.PICTURE_MISSING)
    assert not window.copy_button.isEnabled()
    window.close()


def test_files_of_a_message_open_beside_its_pictures(stage: Stage) -> None:
    picture = stored_picture(stage.core.pictures)
    notes = make_attachment("notes.txt", "txt", "Monday", source="/nowhere/notes.txt")
    put(stage, notes, picture)
    stage.send("Both?")
    stage.answer("Yes.")
    said: list[str] = []
    stage.pane.attaching.said.connect(partial(_note, said))
    stage.click(RowAction.OPEN_FILE)
    assert said == [words.source_gone("notes.txt")]
    stage.click(RowAction.OPEN_PICTURE)
    assert [one.windowTitle() for one in windows()] == ["hills.png"]
    windows()[0].close()


def test_regenerated_answer_gets_the_pictures(stage: Stage) -> None:
    send_picture(stage)
    stage.run(CommandId.REGENERATE)
    assert len(stage.engine.submitted[-1].messages[-1].pictures) == 1


def test_undone_message_returns_with_its_picture(stage: Stage) -> None:
    picture = send_picture(stage)
    stage.run(CommandId.UNDO)
    assert stage.core.desk.get(stage.current).draft_attachments == (picture,)
