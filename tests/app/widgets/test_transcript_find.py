"""Find in the transcript: selection, marks and scrolling."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest

from app.theme.tokens import LIGHT
from app.viewmodels.find import FindPosition
from app.viewmodels.transcript import ItemStatus
from app.widgets.transcript.rows.row import RowAction
from engine.types import Channel
from tests.fakes.transcript_samples import CODE, GUIDE, answer, conversation, question
from tests.fakes.transcript_stage import LEFT, TranscriptStage

TABLE = "| a | fox |\n|---|---|\n| Fox | $x$ |"


def test_find_next_and_previous_wrap_around_the_ends(transcript: TranscriptStage) -> None:
    transcript.show([question(0, "A fox?"), answer(0, "No fox, and\n\n- a **FOX** too")])

    assert transcript.view.find_controller.look_for("fox") == FindPosition(1, 3)
    assert transcript.copied() == "fox"
    assert transcript.view.find_controller.go(1) == FindPosition(2, 3)
    assert transcript.view.find_controller.go(1) == FindPosition(3, 3)
    assert transcript.copied() == "FOX"
    assert transcript.view.find_controller.go(1) == FindPosition(1, 3)
    assert transcript.view.find_controller.go(-1) == FindPosition(3, 3)


def test_find_without_a_match_selects_nothing(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "No fox")])

    assert transcript.view.find_controller.look_for("wolf") == FindPosition(0, 0)
    assert transcript.view.selection.is_empty


def test_matches_are_marked_until_finding_ends(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"A fox\n\n{CODE}\n\n{TABLE}")])
    plain = transcript.picture()
    transcript.view.find_controller.look_for("fox")
    marked = transcript.picture()
    transcript.view.find_controller.look_for("snapshot")

    assert transcript.picture() != marked
    assert plain not in (marked, transcript.picture())
    transcript.view.find_controller.look_for("")
    QTest.mouseClick(transcript.view.viewport(), LEFT, pos=QPoint(20, 590))
    assert transcript.picture() == plain


@pytest.mark.parametrize(
    ("text", "wanted", "shown"),
    [
        (TABLE, "fox", "fox"),
        (CODE, "message boundary", "message boundary"),
        ("two\nlines, three", "two lines", "two\nlines"),
        ("[here](https://fox.org) is a fox", "fox", "fox"),
        ("\N{SLIGHTLY SMILING FACE} a fox", "fox", "fox"),
    ],
)
def test_find_selects_a_match_in_every_kind_of_block(
    transcript: TranscriptStage, text: str, wanted: str, shown: str
) -> None:
    transcript.show([answer(0, text)])
    transcript.view.find_controller.look_for(wanted)

    assert transcript.copied() == shown


@pytest.mark.parametrize(
    ("text", "looked_for", "count"),
    [
        ("the **quick** fox", "the quick", 1),
        ("**un**believable", "unbelievable", 1),
        ("fish &amp; chips, snake\\_case", "fish & chips, snake_case", 1),
        ("[here](https://fox.org)", "fox", 0),
        ("> two\n> lines\n\nlines", "two lines", 1),
        ("- one\n- two", "one two", 0),
    ],
)
@pytest.mark.parametrize("is_settled", [True, False])
def test_find_searches_the_text_without_its_markdown(
    transcript: TranscriptStage, text: str, looked_for: str, count: int, is_settled: bool
) -> None:
    others = [question(number, "x\n" * 9) for number in range(100)]
    transcript.view.show_conversation([answer(0, text), *others])
    if is_settled:
        transcript.settle()
    found = transcript.view.find_controller.look_for(looked_for)

    # A word with markup inside is found only after the message is parsed.
    assert found in (FindPosition(count, count), FindPosition(0, 0))
    transcript.settle()
    assert transcript.view.find_controller.look_for(looked_for) == FindPosition(count, count)


def test_find_searches_reasoning_only_while_it_is_unfolded(transcript: TranscriptStage) -> None:
    transcript.show([replace(answer(0, "text"), reasoning="A fox?", reasoning_s=1)])

    assert transcript.view.find_controller.look_for("fox") == FindPosition(0, 0)
    transcript.click(RowAction.TOGGLE_THINKING)
    assert transcript.view.find_controller.go(1) == FindPosition(1, 1)
    assert transcript.copied() == "fox"


def test_count_is_updated_while_an_answer_streams(transcript: TranscriptStage) -> None:
    writing = replace(answer(1, ""), status=ItemStatus.STREAMING)
    transcript.show([question(0, "A fox?"), writing])
    find_controller = transcript.view.find_controller
    find_controller.look_for("fox")
    counted: list[FindPosition] = []
    find_controller.counted.connect(counted.append)
    transcript.view.append_delta("a1", Channel.ANSWER, "No fox, no *fox*.")

    transcript.qtbot.waitUntil(lambda: len(counted) > 0)
    assert counted == [FindPosition(1, 3)]


@pytest.mark.slow
def test_find_scrolls_to_a_match_far_away(transcript: TranscriptStage) -> None:
    items = conversation(60)
    items[7] = answer(70, f"{GUIDE}\n\nA needle.\n\n{GUIDE}")
    transcript.show(items)
    at_end = transcript.top
    transcript.view.find_controller.look_for("needle")
    transcript.settle()
    found = transcript.top

    assert 0 < found < at_end
    assert transcript.copied() == "needle"
    transcript.view.find_controller.go(1)
    assert transcript.top == found


@pytest.mark.parametrize("row", ["```\n{}\n```", "| a |\n|---|\n| `{}` |", "> ```\n> {}\n> ```"])
def test_find_scrolls_sideways_to_a_match(transcript: TranscriptStage, row: str) -> None:
    transcript.show([answer(0, row.format("x" * 300 + "needle" + "x" * 300))])
    left = transcript.picture()
    transcript.view.find_controller.look_for("needle")
    found = transcript.picture()
    accent = QColor(LIGHT.accent)
    seen = {found.pixelColor(x, y).rgb() for x in range(40, 760, 3) for y in range(0, 200, 3)}

    assert accent.rgb() in seen
    assert found != left


def test_find_unfolds_a_question_with_a_match(transcript: TranscriptStage) -> None:
    lines = "\n".join(f"line {number}" for number in range(40))
    transcript.show([question(0, f"{lines}\nneedle")])
    assert transcript.has(RowAction.TOGGLE_FOLD)
    transcript.view.find_controller.look_for("needle")
    transcript.settle()

    assert transcript.copied() == "needle"


def test_find_next_reaches_messages_added_after_finding_began(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "fox")])
    transcript.view.find_controller.look_for("fox")
    transcript.view.set_items([answer(0, "fox"), answer(1, "fox fox")])

    assert transcript.view.find_controller.go(1) == FindPosition(2, 3)
    assert transcript.view.find_controller.go(1) == FindPosition(3, 3)
