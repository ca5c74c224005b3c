from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QGuiApplication, QImage, QInputMethodEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton

from app.theme.tokens import Size, Space, Type
from app.viewmodels.attachments import Chip
from app.widgets.transcript.editor.editor import MessageEditor
from app.widgets.transcript.jump import JumpButton
from app.widgets.transcript.messages.bubble import FOLD_LINES
from app.widgets.transcript.rows.row import RowAction
from tests.fakes.transcript_samples import answer, conversation, question
from tests.fakes.transcript_stage import HEIGHT, LEFT, WIDTH, TranscriptStage

TEXT = "What is a matrix? " * 8


@pytest.fixture
def editing(transcript: TranscriptStage) -> TranscriptStage:
    items = [question(0, TEXT.strip()), answer(0, "It is")]
    transcript.show(items)
    transcript.view.update_item(replace(items[0], editing=True))
    transcript.qtbot.waitUntil(lambda: field(transcript).hasFocus())
    return transcript


def editor(stage: TranscriptStage) -> MessageEditor:
    found = stage.view.findChild(MessageEditor)
    assert isinstance(found, MessageEditor)
    return found


def field(stage: TranscriptStage) -> QPlainTextEdit:
    found = editor(stage).findChild(QPlainTextEdit)
    assert isinstance(found, QPlainTextEdit)
    return found


def button(stage: TranscriptStage, label: str) -> QPushButton:
    return next(one for one in editor(stage).findChildren(QPushButton) if one.text() == label)


def test_editor_holds_the_text_and_fits_its_height(editing: TranscriptStage) -> None:
    assert field(editing).toPlainText() == TEXT.strip()
    num_lines = field(editing).document().firstBlock().layout().lineCount()
    assert num_lines > 1
    assert field(editing).height() == num_lines * Type.BODY.line


@pytest.mark.parametrize("width", [400, WIDTH])
def test_buttons_and_note_in_the_editor_of_an_answer_are_not_cut(
    transcript: TranscriptStage, width: int
) -> None:
    transcript.view.resize(width, HEIGHT)
    item = answer(0, "It is a table of numbers.")
    transcript.show([question(0), item])
    transcript.view.update_item(replace(item, editing=True))
    transcript.settle()

    parts = [
        *editor(transcript).findChildren(QPushButton),
        *editor(transcript).findChildren(QLabel),
    ]
    shown = [one for one in parts if one.isVisible()]
    assert "Cancel" in [one.text() for one in shown]
    assert [one.text() for one in shown if one.width() < one.sizeHint().width()] == []


@pytest.mark.parametrize("width", [400, WIDTH])
def test_no_jump_button_shows_behind_an_editor(transcript: TranscriptStage, width: int) -> None:
    transcript.view.resize(width, 300)
    item = answer(0, "A line.\n\n" * 40)
    transcript.show([question(0), item, question(1), answer(1, "A line.\n\n" * 40)])
    transcript.view.update_item(replace(item, editing=True))
    transcript.settle()

    jump = transcript.view.findChild(JumpButton)
    assert jump is not None
    assert not (jump.isVisible() and editor(transcript).geometry().intersects(jump.geometry()))


@pytest.mark.parametrize("height", [240, 320, HEIGHT])
def test_editor_of_a_long_answer_is_whole_in_a_low_view(
    transcript: TranscriptStage, height: int
) -> None:
    transcript.view.resize(400, height)
    item = answer(0, "A line.\n\n" * 40)
    transcript.show([question(0), item])
    transcript.view.update_item(replace(item, editing=True))
    transcript.settle()
    assert transcript.view.viewport().rect().contains(editor(transcript).geometry())
    assert button(transcript, "Save as New Version").isVisible()


@pytest.mark.parametrize("width", [260, 370])
def test_buttons_stay_inside_the_editor_in_a_narrow_column(
    editing: TranscriptStage, width: int
) -> None:
    editing.view.resize(width, HEIGHT)
    editing.settle()
    inside = editor(editing).rect().adjusted(Space.S, 0, -Space.S, -Space.S)
    for label in ("Cancel", "Send as New Version"):
        one = button(editing, label)
        place = QRect(one.mapTo(editor(editing), QPoint()), one.size())
        assert inside.contains(place), label
        assert one.width() >= one.sizeHint().width(), label


@pytest.mark.parametrize("zoom", [0.8, 1.0, 2.0])
@pytest.mark.parametrize("text", [TEXT.strip(), "One\n\ttwo\n\n" + "three " * 30 + "end"])
def test_text_does_not_move_when_its_editor_opens(
    transcript: TranscriptStage, text: str, zoom: float
) -> None:
    view, item = transcript.view, question(0, text)
    view.resize(WIDTH, 2 * HEIGHT)
    view.set_zoom(zoom)
    transcript.show([item, answer(0, "It is")])
    before = transcript.picture()
    view.update_item(replace(item, editing=True))
    field(transcript).clearFocus()  # hides the text cursor
    place = QRect(field(transcript).mapTo(view.viewport(), QPoint()), field(transcript).size())
    stood, stands = inked(before, place), inked(transcript.picture(), place)
    assert stood
    # A few pixels differ, because the edges of glyphs blend with the background, which changes.
    assert len(stood ^ stands) < len(stood) / 5, "the text moved"


def test_short_text_begins_at_the_left_of_its_editor(transcript: TranscriptStage) -> None:
    transcript.show([question(0, "Hi"), answer(0, "It is")])
    transcript.view.update_item(replace(question(0, "Hi"), editing=True))
    assert field(transcript).x() == Space.L
    assert editor(transcript).width() > 10 * Space.L


def test_editor_shows_the_files_of_its_message_above_the_text(transcript: TranscriptStage) -> None:
    item = replace(question(0, "Hi"), files=(Chip(name="notes.md", kind="md"),))
    transcript.show([item, answer(0, "It is")])
    transcript.view.update_item(replace(item, editing=True))
    above = field(transcript).y() - Space.M
    (chip,) = editor(transcript).files.chips
    assert above == chip.height() + Space.S
    assert chip.chip.name == "notes.md"
    assert field(transcript).accessibleDescription() == "notes.md"


def inked(image: QImage, place: QRect) -> set[tuple[int, int]]:
    """Return the pixels of text: all pixels that are darker than any background."""
    seen = place & image.rect()
    return {
        (x, y)
        for y in range(seen.top(), seen.bottom() + 1)
        for x in range(seen.left(), seen.right() + 1)
        if image.pixelColor(x, y).value() < 110
    }


def test_typing_keeps_the_editors_right_edge_and_all_lines_visible(
    transcript: TranscriptStage,
) -> None:
    transcript.show([question(0, "Hi"), answer(0, "It is")])
    transcript.view.update_item(replace(question(0, "Hi"), editing=True))
    right = editor(transcript).geometry().right()
    QTest.keyClicks(field(transcript), " there, how are you doing today, and yesterday?" * 3)
    QTest.keyClick(field(transcript), Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert editor(transcript).geometry().right() == right
    assert field(transcript).verticalScrollBar().maximum() == 0
    assert field(transcript).horizontalScrollBar().maximum() == 0


def test_long_text_scrolls_in_its_editor(transcript: TranscriptStage) -> None:
    text = "\n".join(f"Line {number}" for number in range(40))
    transcript.show([question(0, text), answer(0, "It is")])
    transcript.view.update_item(replace(question(0, text), editing=True))
    bar = field(transcript).verticalScrollBar()
    assert field(transcript).height() < HEIGHT
    assert bar.value() == 0 < bar.maximum(), "the editor does not open at its top"
    assert field(transcript).textCursor().atStart()
    assert bar.isVisible()


def test_editing_a_message_out_of_view_scrolls_to_its_editor(
    transcript: TranscriptStage,
) -> None:
    items = conversation(3)
    transcript.show(items)
    transcript.view.update_item(replace(items[0], editing=True))
    assert transcript.view.viewport().rect().contains(editor(transcript).geometry())


def test_return_submits_the_edited_text(editing: TranscriptStage) -> None:
    QTest.keyClicks(field(editing), "!")
    QTest.keyClick(field(editing), Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(field(editing), "?")
    assert editing.asked == []
    QTest.keyClick(field(editing), Qt.Key.Key_Return)
    assert editing.asked == [f"submit u0 {TEXT.strip() + '!' + chr(10) + '?'!r}"]


def test_return_while_an_input_method_composes_does_not_submit(editing: TranscriptStage) -> None:
    QGuiApplication.sendEvent(field(editing), QInputMethodEvent("ni", []))
    QTest.keyClick(field(editing), Qt.Key.Key_Return)
    QTest.keyClick(field(editing), Qt.Key.Key_Escape)
    assert editing.asked == []
    done = QInputMethodEvent("", [])
    done.setCommitString("你")
    QGuiApplication.sendEvent(field(editing), done)
    QTest.keyClick(field(editing), Qt.Key.Key_Return)
    assert editing.asked == [f"submit u0 {TEXT.strip() + '你'!r}"]


def test_escape_cancels_editing(editing: TranscriptStage) -> None:
    QTest.keyClick(field(editing), Qt.Key.Key_Escape)
    assert editing.asked == ["cancel u0"]


def test_save_and_cancel_buttons_submit_and_cancel(editing: TranscriptStage) -> None:
    QTest.mouseClick(button(editing, "Send as New Version"), LEFT)
    QTest.mouseClick(button(editing, "Cancel"), LEFT)
    assert editing.asked == [f"submit u0 {TEXT.strip()!r}", "cancel u0"]


def test_blank_text_cannot_be_submitted(editing: TranscriptStage) -> None:
    field(editing).setPlainText("  \n")
    QTest.keyClick(field(editing), Qt.Key.Key_Return)
    assert not button(editing, "Send as New Version").isEnabled()
    assert editing.asked == []


def test_editor_grows_with_its_text(editing: TranscriptStage) -> None:
    before, end = editor(editing).height(), editing.view.statistics()
    field(editing).setPlainText("\n".join("line" for _ in range(8)))
    editing.settle()
    assert editor(editing).height() > before + 50
    assert end.num_messages == 2


def test_editor_scrolls_with_its_message(transcript: TranscriptStage) -> None:
    items = conversation(3)
    transcript.show(items)
    transcript.view.verticalScrollBar().setValue(0)
    transcript.view.update_item(replace(items[0], editing=True))
    before = editor(transcript).y()
    transcript.view.verticalScrollBar().setValue(50)
    assert editor(transcript).y() == before - 50


def test_editor_closes_when_editing_ends(editing: TranscriptStage) -> None:
    editing.view.update_item(question(0, TEXT))
    editing.qtbot.waitUntil(lambda: editing.view.findChild(MessageEditor) is None)
    assert editing.view.text_of("u0") == TEXT


def test_typed_text_survives_item_updates(editing: TranscriptStage) -> None:
    QTest.keyClicks(field(editing), " more")
    editing.view.set_items([replace(question(0, TEXT), editing=True), answer(0, "It is")])
    assert field(editing).toPlainText().endswith(" more")


def test_editor_controls_have_accessible_names_and_normal_height(editing: TranscriptStage) -> None:
    assert field(editing).accessibleName() == "Edit message"
    assert button(editing, "Cancel").height() >= Size.CONTROL


@pytest.mark.parametrize(("which", "num_paragraphs"), [(0, 3), (0, 40), (1, 2), (1, 3), (1, 5)])
def test_message_looks_the_same_after_its_edit_is_cancelled(
    transcript: TranscriptStage, which: int, num_paragraphs: int
) -> None:
    text = "\n\n".join(f"- Paragraph {number}." for number in range(num_paragraphs))
    items = [question(0, text), answer(0, text)]
    transcript.show(items)
    QTest.keyClick(transcript.view, Qt.Key.Key_Home)
    transcript.settle()
    if num_paragraphs > FOLD_LINES:
        transcript.click(RowAction.TOGGLE_FOLD)
        transcript.settle()
    before, end = transcript.picture(), transcript.end

    transcript.view.update_item(replace(items[which], editing=True))
    transcript.settle()
    transcript.view.update_item(items[which])
    transcript.settle()
    QTest.keyClick(transcript.view, Qt.Key.Key_Home)
    transcript.settle()

    assert transcript.end == end
    assert transcript.picture() == before
