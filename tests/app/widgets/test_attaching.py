"""Files attached in the window: chips, sending, removing, dropping."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDragLeaveEvent, QDropEvent, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QInputDialog, QLabel, QWidget

from app.conversation.attachments import make_attachment, marked_page
from app.theme.tokens import Space
from app.widgets.commands import CommandId
from app.widgets.message_sheet import MessageSheet
from app.words import attachments as words
from engine.errors import TextTooLongError
from engine.types import ConversationId
from tests.fakes.stage import Stage

Key = Qt.Key


def urls(*paths: Path) -> QMimeData:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return mime


def drag_over(widget: QWidget, mime: QMimeData) -> QDragEnterEvent:
    event = QDragEnterEvent(
        widget.rect().center(),
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    QApplication.sendEvent(widget, event)
    return event


def drop_on(widget: QWidget, mime: QMimeData) -> None:
    drag_over(widget, mime)
    event = QDropEvent(
        QPointF(widget.rect().center()),
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    QApplication.sendEvent(widget, event)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text("The meeting is on Monday.", encoding="utf-8")
    return path


def names(stage: Stage) -> list[str]:
    return [chip.chip.name for chip in stage.composer.files.chips]


def attach(stage: Stage, *paths: Path) -> None:
    drop_on(stage.window, urls(*paths))
    stage.wait_until(lambda: not stage.rig.core.attachments.is_opening(stage.rig.library.current))
    stage.settle()


def test_dropped_file_becomes_a_chip_and_stands_before_the_question(
    stage: Stage, notes: Path
) -> None:
    attach(stage, notes)
    assert names(stage) == ["notes.txt"]

    stage.send("When is it?")

    message = stage.engine.submitted[-1].messages[-1]
    assert message.content.startswith("File: notes.txt\n```\nThe meeting is on Monday.\n```\n\n")
    assert message.content.endswith("When is it?")
    assert message.part_ends == (message.content.index("When"),)
    assert names(stage) == []
    assert stage.items[0].text == "When is it?"
    assert [chip.name for chip in stage.items[0].files] == ["notes.txt"]


def test_draft_with_files_survives_a_visit_to_another_chat(stage: Stage, notes: Path) -> None:
    stage.chat("Hello", "Hi")
    attach(stage, notes)
    stage.run(CommandId.NEW_CHAT)
    assert names(stage) == []

    stage.click_row("Hello")

    assert names(stage) == ["notes.txt"]


def test_outline_shows_while_files_are_over_the_window(stage: Stage, notes: Path) -> None:
    outline = stage.window.file_drop.outline
    assert drag_over(stage.window, urls(notes)).isAccepted()
    assert outline.isVisible()

    QApplication.sendEvent(stage.window, QDragLeaveEvent())

    assert not outline.isVisible()


def test_pasted_file_is_attached(stage: Stage, notes: Path) -> None:
    QGuiApplication.clipboard().setMimeData(urls(notes))
    stage.run(CommandId.PASTE)
    stage.wait_until(lambda: names(stage) == ["notes.txt"])
    # Data that a test leaves in the clipboard crash Qt at the end of the process.
    QGuiApplication.clipboard().clear()


def test_removed_file_comes_back_with_undo(stage: Stage, notes: Path) -> None:
    attach(stage, notes)
    QTest.mouseClick(stage.composer.files.chips[0].close_button, Qt.MouseButton.LeftButton)
    assert names(stage) == []

    stage.run(CommandId.UNDO)

    assert names(stage) == ["notes.txt"]


def test_removal_and_later_attaching_are_undone_one_at_a_time(
    stage: Stage, notes: Path, tmp_path: Path
) -> None:
    later = tmp_path / "later.txt"
    later.write_text("Later.", encoding="utf-8")
    attach(stage, notes)
    QTest.mouseClick(stage.composer.files.chips[0].close_button, Qt.MouseButton.LeftButton)
    attach(stage, later)

    stage.run(CommandId.UNDO)
    assert names(stage) == []
    stage.run(CommandId.UNDO)
    assert names(stage) == ["notes.txt"]


def test_undo_after_sending_returns_the_sent_file_then_the_removed_one(
    stage: Stage, notes: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.md"
    other.write_text("# Other", encoding="utf-8")
    attach(stage, notes, other)
    QTest.mouseClick(stage.composer.files.chips[0].close_button, Qt.MouseButton.LeftButton)
    stage.chat("What is it?", "A heading.")

    stage.run(CommandId.UNDO)
    assert names(stage) == ["other.md"]
    stage.run(CommandId.UNDO)
    assert names(stage) == ["notes.txt", "other.md"]


def test_chosen_pages_and_later_attaching_are_undone_one_at_a_time(
    stage: Stage, notes: Path
) -> None:
    text = "\n\n".join(marked_page(number, "Text.") for number in (1, 2))
    book = make_attachment("book.pdf", "pdf", text, num_pages=2)
    stage.core.draft_files.set(stage.current, (book,))
    assert stage.core.attachments.use_pages(stage.current, [range(1, 2)]) == ""
    attach(stage, notes)

    stage.run(CommandId.UNDO)
    assert names(stage) == ["book.pdf"]
    stage.run(CommandId.UNDO)
    assert stage.rig.current.draft_attachments[0] == book


def test_choosing_pages_with_two_files_names_the_file(stage: Stage, notes: Path) -> None:
    attach(stage, notes)
    text = "\n\n".join(marked_page(number, "Text. " * 12_000) for number in (1, 2))
    book = make_attachment("<b>report of 2026</b>.pdf", "pdf", text, num_pages=2)
    files = (*stage.rig.current.draft_attachments, book)
    stage.core.draft_files.set(stage.current, files)
    stage.settle()
    QTest.mouseClick(stage.pane.long_files.second, Qt.MouseButton.LeftButton)
    (dialog,) = stage.window.findChildren(QInputDialog)
    label = dialog.findChild(QLabel)
    assert label is not None
    name = "<b>report of 2026</b>.pdf"
    assert dialog.labelText() == f"Pages of “{name}” (2 pages), for example 1:"
    assert label.textFormat() is Qt.TextFormat.PlainText
    assert dialog.width() >= dialog.fontMetrics().horizontalAdvance(dialog.windowTitle()) + 200
    dialog.reject()


def test_chosen_pages_that_do_not_exist_are_named(stage: Stage) -> None:
    text = "\n\n".join(marked_page(number, "Text. " * 3000) for number in range(1, 28))
    book = make_attachment("book.pdf", "pdf", text, num_pages=27)
    toast = stage.window.toast
    for typed, part, said in (
        ("4-6", "Pages 4\u20136", ""),
        ("3-5, 30", "Pages 3\u20135", "The attached text does not contain page 30."),
        ("4, 30-40", "Page 4", "The attached text does not contain pages 30\u201340."),
        ("30", "", "The file has none of these pages."),
    ):
        stage.core.draft_files.set(stage.current, (book,))
        stage.settle()
        stage.pane.long_files.second.click()
        (dialog,) = stage.window.findChildren(QInputDialog)
        assert dialog.labelText() == "Pages of “book.pdf” (27 pages), for example 1-13, 27:"
        dialog.setTextValue(typed)
        dialog.accept()
        stage.settle()
        assert stage.rig.current.draft_attachments[0].part == part
        assert (toast.text if toast.isVisible() else "") == said


def test_keys_move_and_remove_a_chip(stage: Stage, notes: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.md"
    other.write_text("# Other", encoding="utf-8")
    attach(stage, notes, other)
    first = stage.composer.files.chips[0]
    first.setFocus()
    QTest.keyClick(first, Key.Key_Right, Qt.KeyboardModifier.AltModifier)
    assert names(stage) == ["other.md", "notes.txt"]

    QTest.keyClick(stage.composer.files.chips[1], Key.Key_Delete)

    assert names(stage) == ["other.md"]


def test_every_refused_file_is_named_with_its_reason(
    stage: Stage, notes: Path, tmp_path: Path
) -> None:
    image = tmp_path / "photo.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\r")
    attach(stage, image, tmp_path, notes)

    assert names(stage) == ["notes.txt"]
    image_reason, folder_reason = stage.window.toast.text.split("\n")
    assert image_reason.startswith("“photo.png” is damaged.")
    assert folder_reason == f"“{tmp_path.name}” is a folder. Attach the files in it."


def test_refused_file_is_reported_when_the_opening_of_the_last_other_file_is_cancelled(
    stage: Stage, notes: Path, tmp_path: Path
) -> None:
    attachments = stage.rig.core.attachments

    def cancel_last(conversation_id: ConversationId) -> None:
        if [chip.name for chip in attachments.chips] == ["notes.txt"]:
            attachments.changed.disconnect(cancel_last)
            attachments.remove(conversation_id, 0)

    attachments.changed.connect(cancel_last)
    attach(stage, tmp_path / "gone.txt", notes)
    assert names(stage) == []
    assert stage.window.toast.text == "“gone.txt” can’t be found."


def test_toast_follows_the_composer_that_grows_and_shrinks(stage: Stage, tmp_path: Path) -> None:
    stage.chat("One", "1")
    toast, composer = stage.window.toast, stage.composer
    attach(stage, tmp_path)
    for text in ("", "A line.\n" * 8, ""):
        stage.edit.setPlainText(text)
        stage.settle()
        assert toast.isVisible()
        bottom = toast.mapTo(stage.window, toast.rect().bottomLeft()).y()
        top = composer.mapTo(stage.window, composer.rect().topLeft()).y()
        assert 0 < top - bottom <= Space.M


def test_toast_leaves_the_buttons_above_the_composer_free(stage: Stage) -> None:
    stage.chat("One", "1")
    toast, line = stage.window.toast, stage.pane.long_files
    toast.say("The files are too long.")
    for text, below in (("Too long.", line), ("", stage.composer)):
        line.show_offer(text, paged_file=None, model_name="")
        stage.settle()
        bottom = toast.mapTo(stage.window, toast.rect().bottomLeft()).y()
        top = below.mapTo(stage.window, below.rect().topLeft()).y()
        assert 0 < top - bottom <= Space.M


def test_many_refused_files_are_listed_in_a_sheet(stage: Stage, tmp_path: Path) -> None:
    missing = [tmp_path / f"{number}.txt" for number in range(5)]
    attach(stage, *missing)

    toast = stage.window.toast
    assert toast.text.splitlines()[2:] == ["“2.txt” can’t be found.", "And 2 more files."]
    toast.button.click()
    stage.settle()
    (sheet,) = stage.window.findChildren(MessageSheet)
    assert sheet.text.splitlines()[5] == "“4.txt” can’t be found."
    assert not toast.isVisible()
    sheet.accept()


def test_notice_of_a_refused_file_does_not_come_back_after_the_next_one(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    toast = stage.window.toast
    for name in ("folder", "nonexist.txt"):
        stage.core.open_files([tmp_path / name])
        stage.wait_until(lambda name=name: name in toast.text)
    assert toast.text == "“nonexist.txt” can’t be found."
    QTest.mouseClick(toast.button, Qt.MouseButton.LeftButton)
    assert not toast.isVisible()


def test_notice_of_a_refused_file_ends_when_files_are_attached(
    stage: Stage, notes: Path, tmp_path: Path
) -> None:
    attach(stage, tmp_path / "notes.txt.missing")
    toast = stage.window.toast
    assert toast.isVisible()
    toast.say_done("Undone")
    attach(stage, notes)
    toast.dismiss()
    assert names(stage) == ["notes.txt"]
    assert not toast.isVisible()


def test_note_about_a_refused_file_stays_with_its_chat(stage: Stage, tmp_path: Path) -> None:
    stage.chat("Hello", "Hi")
    toast = stage.window.toast
    stage.core.open_files([tmp_path / "nonexist.txt"])
    stage.run(CommandId.NEW_CHAT)
    stage.wait_until(lambda: not stage.core.attachments.is_opening(stage.current))
    stage.settle()
    assert not toast.isVisible()
    stage.click_row("Hello")
    stage.wait_until(lambda: toast.text == "“nonexist.txt” can’t be found.")
    assert toast.isVisible()
    stage.run(CommandId.NEW_CHAT)
    assert not toast.isVisible()
    stage.core.open_files([tmp_path / "other.txt"])
    stage.wait_until(lambda: "other.txt" in toast.text)
    stage.click_row("Hello")
    assert toast.text == "“nonexist.txt” can’t be found.", "it was not closed"
    QTest.mouseClick(toast.button, Qt.MouseButton.LeftButton)
    assert not toast.isVisible()


def test_first_part_of_a_file_that_is_far_too_long_fills_the_context(stage: Stage) -> None:
    files = (
        make_attachment("notes.txt", "text", "The meeting is on Monday.\n" * 40),
        make_attachment("log.txt", "text", "Sail on and on.\n" * 30_000),
    )
    stage.core.draft_files.set(stage.current, files)
    stage.settle()
    details = [chip.details for chip in stage.core.attachments.chips]
    assert details == ["266 tokens", "about 120,000 tokens"]
    assert stage.core.attachments.excess_note == (
        f"The files alone are too long for {stage.engine.facts.title}: about 120,000 tokens."
        " Up to 32,256 tokens leave room for an answer."
    )
    stage.pane.long_files.first.setFocus()
    QTest.keyClick(stage.pane.long_files.first, Key.Key_Space)
    stage.wait_until(lambda: stage.core.attachments.excess is None)
    stage.settle()
    assert stage.edit.hasFocus()
    part = stage.rig.current.draft_attachments[1]
    assert 0.98 < (len(part.text) / 4 + 266) / (stage.engine.facts.context_len - 512) < 1.0


def test_row_of_chips_is_cut_if_there_are_more(stage: Stage) -> None:
    files = [make_attachment(f"{number}.txt", "text", f"Note {number}.") for number in range(12)]
    stage.core.draft_files.set(stage.current, tuple(files))
    stage.settle()
    chips = stage.composer.files
    bottoms = [chip.geometry().bottom() for chip in chips.chips]
    tops = [chip.geometry().top() for chip in chips.chips]
    assert any(top < chips.height() < end for top, end in zip(tops, bottoms, strict=True))


def test_refusal_ends_with_the_first_part_of_the_file(stage: Stage) -> None:
    file = make_attachment("book.txt", "text", "Sail on and on.\n" * 9_000)
    stage.core.draft_files.set(stage.current, (file,))
    stage.type("What happens?")
    stage.engine.hold_start = True
    QTest.keyClick(stage.edit, Key.Key_Return)
    stage.engine.fail(TextTooLongError("It needs 36,000 tokens.", 36_000).problem)
    stage.wait_until(stage.pane.notice.isVisible)
    stage.wait_until(stage.pane.long_files.isVisible)

    stage.pane.long_files.first.click()

    stage.wait_until(lambda: not stage.pane.notice.isVisible())
    assert stage.edit.toPlainText() == "What happens?"
    assert "too long" not in stage.composer.caption


def test_refusal_of_the_whole_file_is_not_shown_while_its_first_part_is_counted(
    stage: Stage,
) -> None:
    file = make_attachment("book.txt", "text", "Sail on and on.\n" * 9_000)
    stage.core.draft_files.set(stage.current, (file,))
    stage.type("What happens?")
    stage.wait_until(stage.pane.long_files.isVisible)
    stage.wait_until(lambda: stage.core.prompt_sizes.is_counted)
    shown: list[str] = []
    stage.core.prompt_sizes.changed.connect(lambda: shown.append(stage.composer.caption))

    stage.pane.long_files.first.click()

    stage.wait_until(lambda: stage.core.attachments.excess is None)
    stage.wait_until(lambda: stage.core.prompt_sizes.is_counted)
    stage.settle()
    assert shown
    assert not [caption for caption in shown if "too long" in caption]


def test_estimates_of_a_file_that_is_far_too_long_are_marked_and_follow_a_sample(
    stage: Stage,
) -> None:
    stage.engine.chars_per_token = 5
    file = make_attachment("log.txt", "text", "Sail on and on.\n" * 30_000)
    stage.core.draft_files.set(stage.current, (file,))
    stage.settle()
    (chip,) = stage.core.attachments.chips
    assert chip.details == "about 96,000 tokens"
    assert "about 96,000 tokens. Up to " in stage.pane.long_files.sentence.text()
    counted = sum(len(message.content) for message in stage.engine.counts[-1].messages)
    assert counted < 21_000


def test_buttons_stay_while_the_sentence_about_long_files_grows(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.window.resize(1100, 800)
    line, places = stage.pane.long_files, list[QPoint]()
    for text in ("It is too long.", "The files are too long. " * 6):
        line.show_offer(text, paged_file=None, model_name="")
        stage.settle()
        places.append(line.first.mapTo(stage.pane, QPoint()))
    assert line.sentence.height() > line.first.height(), "the sentence has a second line"
    assert places[0] == places[1]


def test_too_many_files_are_refused_before_any_is_read(stage: Stage) -> None:
    drop_on(stage.window, urls(*(Path(f"/nowhere/{n}") for n in range(20_000))))

    assert stage.window.toast.text == words.too_many(20_000, 50)
    assert names(stage) == []


def test_queued_message_keeps_its_files(stage: Stage, notes: Path) -> None:
    stage.send("One")
    attach(stage, notes)
    stage.send("Two")
    assert names(stage) == []

    stage.answer("1")

    message = stage.engine.submitted[-1].messages[-1]
    assert message.content.startswith("File: notes.txt")
    assert message.content.endswith("Two")


def test_file_alone_can_be_sent_and_its_question_edited(stage: Stage, notes: Path) -> None:
    attach(stage, notes)
    QTest.keyClick(stage.composer.edit, Key.Key_Return)
    stage.settle()

    assert stage.engine.submitted[-1].messages[-1].content.startswith("File: notes.txt")
    assert stage.rig.core.desk.get(stage.rig.library.current).title == "notes.txt"
