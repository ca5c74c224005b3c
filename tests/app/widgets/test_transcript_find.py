"""Finding in the transcript: what is selected, what is marked, where the view goes."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest

from app.theme.tokens import LIGHT
from app.viewmodels.find import Found
from app.widgets.transcript_rows import Action
from tests.fakes.transcript_samples import CODE, GUIDE, answer, conversation, question
from tests.fakes.transcript_stage import LEFT, TranscriptStage

TABLE = "| a | fox |\n|---|---|\n| Fox | $x$ |"


def test_the_next_and_the_one_before_around_the_end(transcript: TranscriptStage) -> None:
    transcript.show([question(0, "A fox?"), answer(0, "No fox, and\n\n- a **FOX** too")])

    assert transcript.view.look_for("fox") == Found(1, 3)
    assert transcript.copied() == "fox"
    assert transcript.view.find_again(1) == Found(2, 3)
    assert transcript.view.find_again(1) == Found(3, 3)
    assert transcript.copied() == "FOX"
    assert transcript.view.find_again(1) == Found(1, 3)
    assert transcript.view.find_again(-1) == Found(3, 3)


def test_nothing_is_found(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "No fox")])

    assert transcript.view.look_for("wolf") == Found(0, 0)
    assert not transcript.view.has_selection()


def test_what_is_found_is_marked_until_nothing_is_looked_for(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"A fox\n\n{CODE}\n\n{TABLE}")])
    plain = transcript.picture()
    transcript.view.look_for("fox")
    marked = transcript.picture()
    transcript.view.look_for("snapshot")

    assert transcript.picture() != marked
    assert plain not in (marked, transcript.picture())
    transcript.view.look_for("")
    QTest.mouseClick(transcript.view.viewport(), LEFT, pos=QPoint(20, 590))
    assert transcript.picture() == plain


@pytest.mark.parametrize(
    ("text", "wanted", "shown"),
    [
        (TABLE, "fox", "fox"),
        (CODE, "message boundary", "message boundary"),
        ("two\nlines, three", "two lines", "two lines"),
        ("[here](https://fox.org) is a fox", "fox", "fox"),
        ("\N{SLIGHTLY SMILING FACE} a fox", "fox", "fox"),
    ],
)
def test_it_is_found_in_every_kind_of_block(
    transcript: TranscriptStage, text: str, wanted: str, shown: str
) -> None:
    transcript.show([answer(0, text)])
    transcript.view.look_for(wanted)

    assert transcript.copied() == shown


def test_an_address_behind_a_link_shows_its_message(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "[here](https://fox.org)"), *conversation(10)])

    assert transcript.view.look_for("fox") == Found(1, 1)
    assert transcript.top == 0


def test_far_away_text_comes_into_view(transcript: TranscriptStage) -> None:
    items = conversation(60)
    items[7] = answer(70, f"{GUIDE}\n\nA needle.\n\n{GUIDE}")
    transcript.show(items)
    at_end = transcript.top
    transcript.view.look_for("needle")
    transcript.settle()
    found = transcript.top

    assert 0 < found < at_end
    assert transcript.copied() == "needle"
    transcript.view.find_again(1)
    assert transcript.top == found


@pytest.mark.parametrize("row", ["```\n{}\n```", "| a |\n|---|\n| `{}` |", "> ```\n> {}\n> ```"])
def test_what_stands_far_to_the_right_comes_into_view(
    transcript: TranscriptStage, row: str
) -> None:
    transcript.show([answer(0, row.format("x" * 300 + "needle" + "x" * 300))])
    left = transcript.picture()
    transcript.view.look_for("needle")
    found = transcript.picture()
    accent = QColor(LIGHT.accent)
    seen = {found.pixelColor(x, y).rgb() for x in range(40, 760, 3) for y in range(0, 200, 3)}

    assert accent.rgb() in seen
    assert found != left


def test_a_folded_question_is_unfolded(transcript: TranscriptStage) -> None:
    lines = "\n".join(f"line {number}" for number in range(40))
    transcript.show([question(0, f"{lines}\nneedle")])
    assert transcript.has(Action.TOGGLE_FOLD)
    transcript.view.look_for("needle")
    transcript.settle()

    assert transcript.copied() == "needle"


def test_text_that_arrives_meanwhile_is_found_too(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "fox")])
    transcript.view.look_for("fox")
    transcript.view.set_items([answer(0, "fox"), answer(1, "fox fox")])

    assert transcript.view.find_again(1) == Found(2, 3)
    assert transcript.view.find_again(1) == Found(3, 3)
