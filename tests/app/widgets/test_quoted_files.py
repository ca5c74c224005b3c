"""The rows below answers that quote attached files, and the window with the text of a file."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QKeySequence
from PySide6.QtTest import QTest

from app.conversation.attachments import Attachment, make_attachment
from app.conversation.quotes import QuotedFile
from app.conversation.tree import NodeId, set_draft_attachments
from app.widgets.text_window import TextWindow
from app.widgets.transcript.accessibility.canvas import install_accessibility
from app.widgets.transcript.rows.row import RowAction
from tests.fakes.stage import Stage

pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)
PUMP = "The pump must be switched off before the lid of the tank is opened"
GLOVES = "Wear the thick gloves whenever you touch one of the hot pipes"
RULES = "Rules.\n" * 200
MANUAL = make_attachment("manual.txt", "text", f"{RULES}{PUMP}.\n{RULES}{GLOVES}.")
OTHER = make_attachment("other.txt", "text", f"A copy: {PUMP.upper()}!")


def attach(stage: Stage, *files: Attachment) -> None:
    conversation = stage.core.desk.get(stage.current)
    stage.core.chat.apply(set_draft_attachments(conversation, files))


def quotes(stage: Stage) -> Sequence[QuotedFile]:
    return stage.pane.transcript.items[-1].quotes


def ask(stage: Stage, answer: str, *files: Attachment) -> None:
    attach(stage, *files)
    stage.chat("What does it say?", answer)


def focused_name(stage: Stage) -> str:
    """Return the name of the focused link of the transcript for screen readers."""
    canvas = QAccessible.queryAccessibleInterface(stage.pane.view.viewport())
    nodes = [part for message in children(canvas) for part in children(message)]
    nodes += [button for part in nodes for button in children(part)]
    return "".join(one.text(QAccessible.Text.Name) for one in nodes if one.state().focused)


def children(node: QAccessibleInterface) -> list[QAccessibleInterface]:
    return [node.child(number) for number in range(node.childCount())]


def test_answer_names_the_files_above_it_with_its_words(stage: Stage) -> None:
    ask(stage, f"It says: “{PUMP}.” And: {GLOVES}.", MANUAL, OTHER)
    stage.wait_until(lambda: quotes(stage) != ())
    assert quotes(stage) == (QuotedFile("manual.txt", 2), QuotedFile("other.txt", 1))

    stage.chat("Thanks.", f"Once more: {PUMP}.")
    stage.wait_until(lambda: quotes(stage) != ())
    assert [one.num_passages for one in quotes(stage)] == [1, 1]


def test_answer_being_written_has_no_row_and_a_file_below_it_does_not_count(stage: Stage) -> None:
    stage.chat("Guess.", PUMP)
    attach(stage, MANUAL)
    stage.send("And this?")
    stage.engine.write(PUMP)
    stage.settle()
    assert [item.quotes for item in stage.pane.transcript.items] == [()] * 4

    stage.engine.finish()
    stage.wait_until(lambda: quotes(stage) != ())
    assert stage.pane.transcript.items[1].quotes == ()


def test_rewritten_answer_loses_its_row(stage: Stage) -> None:
    ask(stage, PUMP, MANUAL)
    stage.wait_until(lambda: quotes(stage) != ())
    answer = NodeId(stage.pane.transcript.items[-1].key)
    stage.core.chat.rewrite(stage.current, answer, "Nothing.")
    stage.settle()
    assert quotes(stage) == ()


@pytest.mark.parametrize("by_key", [False, True])
def test_row_opens_the_text_at_the_passage(stage: Stage, *, by_key: bool) -> None:
    ask(stage, f"It says: {PUMP}. And: {GLOVES}.", MANUAL)
    stage.wait_until(lambda: quotes(stage) != ())
    stage.settle()
    view = stage.pane.view
    install_accessibility()
    if by_key:
        view.setFocus()
        for _ in range(30):
            QTest.keyClick(view, Qt.Key.Key_Tab)
            if focused_name(stage).startswith("Quotes"):
                break
        name = "Quotes manual.txt: 2 passages with the same words. Show in the file"
        assert focused_name(stage) == name
        QTest.keyClick(view, Qt.Key.Key_Return)
    else:
        stage.click(RowAction.OPEN_QUOTE)

    window = stage.pane.texts.window
    assert isinstance(window, TextWindow)
    assert window.isVisible()
    assert window.windowTitle() == "manual.txt"
    assert window.edit.textCursor().selectedText() == PUMP
    assert window.number.text() == "1 of 2"
    rect = window.edit.cursorRect()
    assert window.edit.viewport().rect().contains(rect.center())

    stage.settle()
    window.next_button.click()
    assert window.edit.textCursor().selectedText() == GLOVES
    QTest.keySequence(window.edit, QKeySequence(QKeySequence.StandardKey.FindNext))
    assert window.edit.textCursor().selectedText() == PUMP
    assert len(window.edit.extraSelections()) == 2
    QTest.keyClick(window.edit, Qt.Key.Key_Escape)
    assert not window.isVisible()


def test_sentence_that_stands_often_in_a_file_is_shown_at_each_place(stage: Stage) -> None:
    often = make_attachment("often.txt", "text", f"{PUMP}. " + f"Then: {PUMP}. " * 17)
    ask(stage, f"It says: {PUMP}.", often)
    stage.wait_until(lambda: quotes(stage) != ())
    stage.settle()
    stage.click(RowAction.OPEN_QUOTE)
    window = stage.pane.texts.window
    assert isinstance(window, TextWindow)
    assert window.number.text() == "1 of 18"
    assert window.edit.textCursor().selectionStart() == 0
    window.previous_button.click()
    assert window.number.text() == "18 of 18"
    assert window.edit.textCursor().selectedText() == PUMP
