"""Marks in the transcript's scroll bar at the occurrences of the find text."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtGui import QColor

from app.theme.tokens import LIGHT
from app.widgets.transcript.search.marks import MarkedBar, Marks
from tests.fakes.transcript_samples import GUIDE, answer, conversation, question
from tests.fakes.transcript_stage import TranscriptStage

ITEMS = [
    question(100, "A needle?"),
    *conversation(20),
    answer(101, f"{GUIDE}\n\nA needle."),
    *[answer(102 + number, "x") for number in range(80)],
]


def bar_of(stage: TranscriptStage) -> MarkedBar:
    bar = stage.view.verticalScrollBar()
    assert isinstance(bar, MarkedBar)
    return bar


@pytest.mark.slow
def test_scroll_bar_mark_is_at_the_place_of_its_occurrence(transcript: TranscriptStage) -> None:
    transcript.show(ITEMS)
    bar, find_controller = bar_of(transcript), transcript.view.find_controller
    find_controller.look_for("needle")
    first, last = bar.marks.ys

    assert first == bar.marks.current or last == bar.marks.current
    find_controller.go(1)
    find_controller.go(1)
    for y in (first, last):
        transcript.settle()
        transcript.qtbot.wait(150)
        assert bar.marks.current is not None
        assert abs(bar.marks.current - y) <= 1
        place = (transcript.top + transcript.view.viewport().height() / 2) / (
            transcript.end + transcript.view.viewport().height()
        )
        assert abs(bar.marks.current / bar.height() - place) < 0.05
        find_controller.go(1)


def test_marks_are_painted_and_disappear_when_finding_ends(transcript: TranscriptStage) -> None:
    transcript.show(ITEMS)
    bar, find_controller = bar_of(transcript), transcript.view.find_controller
    assert bar.marks == Marks()
    plain = bar.grab().toImage()
    find_controller.look_for("needle")
    assert len(bar.marks.ys) == 2
    other = next(y for y in bar.marks.ys if y != bar.marks.current)
    picture = bar.grab().toImage()

    assert bar.marks.current is not None
    assert picture.pixelColor(6, bar.marks.current) == QColor(LIGHT.accent)
    assert picture.pixelColor(6, other) == QColor(LIGHT.must_read.ink)
    find_controller.look_for("")
    assert bar.marks == Marks()
    transcript.view.jump_to_latest()
    assert bar.grab().toImage() == plain


@pytest.mark.slow
def test_marks_move_when_message_heights_change(transcript: TranscriptStage) -> None:
    transcript.view.show_conversation(ITEMS)
    bar = bar_of(transcript)
    transcript.view.find_controller.look_for("needle")
    estimated = bar.marks
    transcript.settle()
    transcript.qtbot.waitUntil(lambda: bar.marks != estimated)
    settled = bar.marks
    transcript.view.resize(400, 300)
    transcript.settle()
    transcript.qtbot.waitUntil(lambda: bar.marks != settled)
    assert len(estimated.ys) == len(settled.ys) == len(bar.marks.ys)


def test_marks_do_not_parse_messages(transcript: TranscriptStage) -> None:
    transcript.view.show_conversation(conversation(300))
    parsed = transcript.view.statistics().num_parsed
    assert transcript.view.find_controller.look_for("paragraphs").total == 300
    assert transcript.view.statistics().num_parsed <= parsed + 2
    assert bar_of(transcript).marks.ys
    transcript.qtbot.waitUntil(lambda: len(bar_of(transcript).marks.ys) > 100)


def test_long_message_has_a_mark_for_each_occurrence(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "\n\n".join(["A fox.", *["Words."] * 40] * 5))])
    transcript.view.find_controller.look_for("fox")
    ys, height = bar_of(transcript).marks.ys, bar_of(transcript).height()

    assert len(ys) == 5
    gaps = [after - before for before, after in pairwise(ys)]
    assert all(abs(gap - height / 5) < 8 for gap in gaps)
