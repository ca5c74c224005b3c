from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QHelpEvent, QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip

from app.viewmodels.phases import Waiting
from app.viewmodels.transcript import ItemStatus, Version
from app.widgets.transcript.rows.notes import CutLink, cut_link
from app.widgets.transcript.rows.row import RowAction
from engine.problem import Problem
from tests.fakes.transcript_samples import CODE, answer, question, restored
from tests.fakes.transcript_stage import LEFT, TranscriptStage

PROBLEM = Problem(title="It failed.", cause="No memory.", advice="Try again.")


def test_copy_button_copies_the_markdown_of_the_message(transcript: TranscriptStage) -> None:
    transcript.show([question(0), answer(0, "Some **bold** text")])
    transcript.click(RowAction.COPY_MESSAGE, 1)
    assert transcript.clipboard() == "Some **bold** text"
    transcript.click(RowAction.COPY_MESSAGE, 0)
    assert transcript.clipboard() == question(0).text


@pytest.mark.slow
def test_copy_button_shows_confirmation_for_a_moment(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "text")])
    point = transcript.find(RowAction.COPY_MESSAGE)
    QTest.mouseMove(transcript.view.viewport(), point)
    before = transcript.picture()
    transcript.click(RowAction.COPY_MESSAGE)
    assert transcript.picture() != before
    transcript.qtbot.waitUntil(lambda: transcript.picture() == before)


def test_copy_code_button_copies_only_the_code(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"Before\n\n{CODE}\n\nafter")])
    transcript.click(RowAction.COPY_CODE)
    assert transcript.clipboard() == "\n".join(CODE.split("\n")[1:-1])


@pytest.mark.parametrize("before", ["", "> "])
def test_saved_code_gets_the_file_suffix_of_its_language(
    transcript: TranscriptStage, before: str
) -> None:
    lines = CODE.split("\n")
    transcript.show([answer(0, "\n".join(before + line for line in lines))])
    transcript.settle()
    transcript.click(RowAction.SAVE_CODE)
    transcript.show([answer(1, "```\nplain\n```")])
    transcript.click(RowAction.SAVE_CODE)
    text = "\n".join(lines[1:-1])
    assert transcript.asked == [f"save code.py {text!r}", "save code.txt 'plain'"]


def test_cut_off_answer_that_can_continue_has_a_continue_link(transcript: TranscriptStage) -> None:
    stopped = replace(answer(0, "Half"), status=ItemStatus.STOPPED, cut="Stopped")
    transcript.show([question(0), stopped])
    assert not transcript.has(RowAction.CONTINUE)
    transcript.show([question(0), replace(stopped, can_continue=True)])
    transcript.click(RowAction.CONTINUE)
    assert transcript.asked == ["continue a0"]


def test_empty_answer_has_a_link_that_requests_it_again(transcript: TranscriptStage) -> None:
    cut = replace(answer(0, ""), status=ItemStatus.STOPPED, cut="Stopped", can_retry=True)
    transcript.show([question(0), cut])
    assert cut_link(cut) == CutLink(RowAction.RETRY, "Retry")
    transcript.click(RowAction.RETRY)
    never = replace(cut, key="a1", status=ItemStatus.UNANSWERED, cut="No answer")
    assert cut_link(never) == CutLink(RowAction.RETRY, "Get an Answer")
    transcript.show([question(0), never])
    transcript.click(RowAction.RETRY)
    assert transcript.asked == ["retry a0", "retry a1"]


def test_delete_button_works_only_if_the_item_can_be_deleted(transcript: TranscriptStage) -> None:
    transcript.show([question(0), answer(0, "text")])
    assert not transcript.has(RowAction.DELETE)
    transcript.show([replace(question(0), can_delete=True), answer(0, "text")])
    transcript.click(RowAction.DELETE)
    assert transcript.asked == ["delete u0"]


def test_edit_regenerate_and_retry_buttons_request_their_action(
    transcript: TranscriptStage,
) -> None:
    failed = replace(answer(0, ""), status=ItemStatus.FAILED, problem=PROBLEM)
    transcript.show([question(0), failed])
    for action in (RowAction.EDIT, RowAction.REGENERATE, RowAction.RETRY):
        transcript.click(action)
    assert transcript.asked == ["edit u0", "regenerate a0", "retry a0"]


def test_version_switch_is_disabled_at_the_first_and_last_version(
    transcript: TranscriptStage,
) -> None:
    transcript.show([question(0, version=Version(2, 3))])
    transcript.click(RowAction.PREVIOUS_VERSION)
    transcript.click(RowAction.NEXT_VERSION)
    assert transcript.asked == ["previous_version u0", "next_version u0"]
    transcript.show([question(0, version=Version(1, 3))])
    assert not transcript.has(RowAction.PREVIOUS_VERSION)
    transcript.show([question(0, version=Version(3, 3))])
    assert not transcript.has(RowAction.NEXT_VERSION)
    transcript.show([question(0)])
    assert not transcript.has(RowAction.NEXT_VERSION)


def test_press_released_outside_its_button_is_no_click(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "text")])
    viewport = transcript.view.viewport()
    with transcript.qtbot.assertNotEmitted(transcript.view.click_actions.requested):
        QTest.mousePress(viewport, LEFT, pos=transcript.find(RowAction.REGENERATE))
        QTest.mouseRelease(viewport, LEFT, pos=QPoint(5, 5))
    assert transcript.asked == []


@pytest.mark.parametrize(
    ("link", "opened"),
    [
        ("https://example.org/a?b=c", True),
        ("mailto:a@example.org", True),
        ("ftp://example.org", False),
        ("smb://host/share", False),
        ("relative/path", False),
    ],
)
def test_clicked_link_opens_only_with_an_allowed_scheme(
    transcript: TranscriptStage, link: str, opened: bool
) -> None:
    transcript.show([answer(0, f"[a link with a long text]({link})")])
    assert transcript.opened == []
    transcript.click(RowAction.OPEN_LINK)
    assert transcript.opened == ([link] if opened else [])


def test_drag_across_a_link_selects_and_does_not_open_it(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "[a link with a long text](https://example.org)")])
    start = transcript.find(RowAction.OPEN_LINK)
    transcript.drag(start, start + QPoint(80, 0))
    assert transcript.opened == []
    assert not transcript.view.selection.is_empty


def test_earlier_message_shows_its_buttons_on_hover(transcript: TranscriptStage) -> None:
    transcript.show([question(0), answer(0, "one"), question(1), answer(1, "two")])
    away = QPoint(790, 590)
    QTest.mouseMove(transcript.view.viewport(), away)
    before = transcript.picture()
    QTest.mouseMove(transcript.view.viewport(), transcript.find(RowAction.COPY_MESSAGE, 0))
    assert transcript.picture() != before
    QTest.mouseMove(transcript.view.viewport(), away)
    assert transcript.picture() == before


def test_click_on_thinking_pill_unfolds_and_folds_the_reasoning(
    transcript: TranscriptStage,
) -> None:
    item = replace(answer(0, "text"), reasoning="A thought", reasoning_s=4.1)
    transcript.show([item])
    QTest.mouseMove(transcript.view.viewport(), QPoint(5, 5))
    transcript.view.selection.select_all()
    closed = transcript.picture()
    transcript.click(RowAction.TOGGLE_THINKING)
    transcript.drag(QPoint(60, 62), QPoint(300, 70))
    transcript.view.selection.copy()
    assert transcript.clipboard() == "A thought"
    transcript.click(RowAction.TOGGLE_THINKING)
    QTest.mouseMove(transcript.view.viewport(), QPoint(7, 7))
    transcript.view.selection.select_all()
    assert transcript.picture() == closed


def test_question_with_many_lines_is_folded_until_unfolded(transcript: TranscriptStage) -> None:
    transcript.show([question(0, "\n".join(f"line {n}" for n in range(340))), answer(0, "x")])
    assert transcript.end == 0
    transcript.click(RowAction.TOGGLE_FOLD)
    transcript.settle()
    assert transcript.end > 340 * 20
    transcript.view.jump_to_latest()
    transcript.click(RowAction.TOGGLE_FOLD)
    transcript.settle()
    assert transcript.end == 0


def test_question_with_one_long_paragraph_is_folded(transcript: TranscriptStage) -> None:
    transcript.show([question(0, "many words " * 400)])
    assert transcript.end == 0
    assert transcript.has(RowAction.TOGGLE_FOLD)


def test_a_folded_list_longer_than_one_parsed_slice_is_laid_out(
    transcript: TranscriptStage,
) -> None:
    transcript.show([question(0, "- many words\n" + "- " + "many words " * 400)])
    transcript.settle()
    assert transcript.has(RowAction.TOGGLE_FOLD)


@pytest.mark.qt_log_ignore("^This plugin does not support raise")
def test_tooltip_of_state_line_and_figures_explains_the_restore(
    transcript: TranscriptStage,
) -> None:
    phase = restored(9, "Message 3 is new.", "<b> & 'so'")
    old, new = (replace(answer(number, "x"), phase=phase) for number in (0, 1))
    transcript.show([question(0), old, question(1), new])
    viewport = transcript.view.viewport()
    line = "Restored 9 tokens · read 24 new tokens · first word after 90 ms"
    said = f"{line}\nRestored in 6 ms, read in 84 ms.\nMessage 3 is new.\n<b> & 'so'"

    def show_tip() -> None:
        QTest.mouseMove(viewport, point)
        help_event = QHelpEvent(QEvent.Type.ToolTip, point, viewport.mapToGlobal(point))
        QApplication.sendEvent(viewport, help_event)
        shown = QTextDocument()
        shown.setHtml(QToolTip.text())
        assert shown.toPlainText().strip() == said

    for which in range(3):  # 0: figures of `old`, 1: state line, 2: figures of `new`
        point = transcript.find(RowAction.EXPLAIN, which)
        # The tooltip before may have made the mouse leave the view, and that event may come late.
        transcript.qtbot.waitUntil(show_tip)
        QTest.mouseClick(viewport, LEFT, pos=point)
    QToolTip.hideText()
    assert transcript.asked == []


def test_failed_answer_shows_and_copies_its_details(transcript: TranscriptStage) -> None:
    problem = replace(PROBLEM, details="RuntimeError\nin the runner")
    failed = replace(answer(0, "x"), status=ItemStatus.FAILED, problem=problem)
    transcript.show([question(0), failed])
    assert not transcript.has(RowAction.COPY_DETAILS)
    transcript.click(RowAction.TOGGLE_DETAILS)
    transcript.click(RowAction.COPY_DETAILS)
    assert transcript.clipboard() == problem.details
    transcript.click(RowAction.TOGGLE_DETAILS)
    assert not transcript.has(RowAction.COPY_DETAILS)
    transcript.click(RowAction.RETRY)
    assert transcript.asked == ["retry a0"]
    transcript.show([question(0), replace(failed, problem=replace(problem, details=""))])
    assert not transcript.has(RowAction.TOGGLE_DETAILS)


def test_state_line_without_details_has_no_tooltip(transcript: TranscriptStage) -> None:
    waiting = replace(answer(0, "x"), phase=Waiting(ahead=0), figures=None)
    transcript.show([question(0), waiting])
    assert not transcript.has(RowAction.EXPLAIN)
