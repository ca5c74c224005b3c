"""Formulas in the transcript, as a reader meets them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from PySide6.QtCore import QPoint

from app.viewmodels.transcript import ItemStatus
from app.viewmodels.typeset import MAX_LATEX, Formula, typeset
from engine.types import Channel
from tests.fakes.transcript_samples import answer, question
from tests.fakes.transcript_stage import TranscriptStage

FRACTION = r"\frac{a_1 + b}{\sqrt{c}}"
KINDS = [
    FRACTION,
    r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}",
    r"\begin{cases} x & x > 0 \\ -x & \text{else} \end{cases}",
    r"\begin{align} a &= b + c \\ &= d \end{align}",
    r"\begin{equation} E = mc^2 \label{e} \end{equation}",
    r"\sum_{i=0}^{n} \underbrace{x_i}_{\text{each}} \cdot \boxed{y}",
    r"\int_0^\infty e^{-x^2}\,dx = \tfrac{\sqrt{\pi}}{2} \tag{1}",
    r"\mathbb{R}, \mathcal{L}, \hat{x}, \vec{v}, \lVert x \rVert, \operatorname{softmax}",
    r"\left( \binom{n}{k} \right)",
]


@pytest.mark.parametrize("latex", KINDS)
def test_what_models_write_is_set(latex: str) -> None:
    picture = typeset(Formula(latex, display=True))

    assert picture is not None
    assert 0 < picture.width < 60
    assert 0 < picture.ascent + picture.descent < 10
    assert "currentColor" in picture.svg


@pytest.mark.parametrize(
    "latex", ["", " ", r"\frac{", "x" * (MAX_LATEX + 1), "{" * 900, r"\begin{align} a", "x^2^3_"]
)
def test_what_cannot_be_set_is_no_picture_or_one_that_is_bounded(latex: str) -> None:
    picture = typeset(Formula(latex, display=False))

    assert picture is None or picture.width < 60


@pytest.mark.parametrize(
    "latex", [r"\nope", r"\nope{x}", r"\frac{\nope}{2}", r"\begin{cases} \nope \end{cases}"]
)
def test_a_command_that_is_not_known_is_no_picture(latex: str) -> None:
    assert typeset(Formula(latex, display=True)) is None


def test_a_text_may_name_a_command() -> None:
    assert typeset(Formula(r"\text{see \nope}", display=False)) is not None


@pytest.mark.parametrize("kind", ["cases", "pmatrix", "aligned", "array}{cc"])
def test_rows_stand_apart_as_lines_do(kind: str) -> None:
    def height(num_rows: int) -> float:
        rows = r" \\ ".join(["a & b"] * num_rows)
        end = kind.split("}", maxsplit=1)[0]
        picture = typeset(Formula(rf"\begin{{{kind}}} {rows} \end{{{end}}}", display=True))
        assert picture is not None
        return picture.ascent + picture.descent

    assert 1.2 <= height(5) - height(4) <= 1.6  # em; a line of text is 1.2


def test_commands_that_double_a_formula_again_and_again_are_not_run() -> None:
    doubling = "".join(
        rf"\newcommand{{\{b}}}{{{{\{a}}}{{\{a}}}}}" for a, b in pairwise("abcdefghijklmn")
    )

    assert typeset(Formula(rf"\newcommand{{\a}}{{x}}{doubling}\n", display=False)) is None


def test_nothing_in_a_formula_becomes_markup_of_the_picture() -> None:
    picture = typeset(Formula(r"\text{<image href='file:///etc/hosts'/> & \"}", display=False))

    assert picture is None or "<image" not in picture.svg


def test_a_picture_makes_its_line_as_high_as_it_is(transcript: TranscriptStage) -> None:
    plain, tall = ("so x is one\n\n" * 60, f"so ${FRACTION}$ is one\n\n" * 60)
    transcript.show([answer(0, plain)])
    end = transcript.end
    transcript.show([answer(0, tall)])

    assert transcript.end > end


def test_a_selected_formula_is_copied_as_latex(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"so ${FRACTION}$ is one")])
    transcript.drag(QPoint(45, 40), QPoint(700, 40))

    copied = transcript.copied()
    assert f"${FRACTION}$ is one" in copied
    assert not copied.startswith("so")


def test_copying_all_gives_the_source(transcript: TranscriptStage) -> None:
    text = f"a\n\n$$\n{FRACTION}\n$$\n\n| $x$ | y |\n|---|---|\n| $y^2$ | z |"
    transcript.show([answer(0, text)])
    transcript.view.select_all()

    assert transcript.copied() == text


def test_part_of_a_table_is_copied_with_its_formulas(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "| a | b |\n|---|---|\n| $y^2$ | z |\n\nend")])
    transcript.drag(QPoint(48, 36), QPoint(700, 140))

    assert transcript.copied() == "\tb\n$y^2$\tz\n\nend"


def test_a_streamed_formula_ends_in_the_same_picture(transcript: TranscriptStage) -> None:
    text = f"so ${FRACTION}$ and\n\n\\[\n{FRACTION}\n\\]\n\n- $x$ end"
    transcript.show([answer(0, text)])
    whole = transcript.picture()
    transcript.show([replace(answer(0, ""), status=ItemStatus.STREAMING)])
    for start in range(0, len(text), 7):
        transcript.view.append_delta("a0", Channel.ANSWER, text[start : start + 7])
        transcript.view.flush()
    transcript.view.finish(answer(0, text))
    transcript.settle()

    assert transcript.picture() == whole


def test_a_source_that_cannot_be_set_is_shown(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, r"so $\frac{$ x")])
    transcript.view.select_all()

    assert transcript.copied() == r"so $\frac{$ x"


def test_the_reader_stays_where_he_was_when_pictures_come(transcript: TranscriptStage) -> None:
    above = "".join(f"$$\n\\frac{{a_{number}}}{{b}}\n$$\n\n" for number in range(30))
    view = transcript.view
    view.show_conversation([answer(0, f"{above}A needle.\n\n" + "word\n\n" * 200)])
    view.finding.look_for("needle")
    before = transcript.top
    transcript.settle()

    assert transcript.copied() == "needle"
    assert transcript.top > before, "what is above has become higher"
    shown = transcript.top
    view.finding.look_for("needle")
    assert transcript.top == shown, "it was in view"


def test_a_selection_stays_on_its_words_when_pictures_come(transcript: TranscriptStage) -> None:
    view = transcript.view
    view.show_conversation([answer(0, r"With $\frac{x_9}{y_9}$ and $\sqrt{z_9}$ the fox jumps.")])
    view.finding.look_for("the fox")
    transcript.settle()

    assert transcript.copied() == "the fox"


def test_formulas_far_away_are_set_when_they_are_reached(transcript: TranscriptStage) -> None:
    items = [answer(number, f"so $\\frac{{x_{{{number}}}}}{{y}}$ is") for number in range(90)]
    view = transcript.view
    view.show_conversation(items)
    view.jump_to_start()
    transcript.settle()
    slowly = transcript.picture()
    view.show_conversation(items)
    view.jump_to_start()
    transcript.settle()

    assert transcript.picture() == slowly
    end = transcript.end
    view.resize(view.width() + 1, view.height())
    view.resize(view.width() - 1, view.height())
    transcript.settle()
    assert transcript.end == end, "all heights were exact"


def test_columns_of_a_long_table_are_as_wide_in_all_its_rows(transcript: TranscriptStage) -> None:
    rows = "".join(f"| {number} | b |\n" for number in range(30))
    text = f"| $\\sum_i x_{{i,77}}$ | b |\n|---|---|\n{rows}"
    transcript.view.resize(800, 1800)
    transcript.view.show_conversation([answer(0, text)])
    transcript.settle()
    first = transcript.view.viewport().grab().toImage()
    transcript.view.show_conversation([answer(0, text)])
    transcript.settle()

    assert transcript.view.viewport().grab().toImage() == first


def test_a_formula_in_a_question_stands_in_its_bubble(transcript: TranscriptStage) -> None:
    transcript.show([question(0, "1. Solve\n\n$$x^2=1$$"), answer(0, "no")])
    beside = transcript.view.viewport().grab().toImage()
    background = beside.pixelColor(4, 4)
    width = beside.width()

    assert all(
        beside.pixelColor(x, y) == background
        for x in range(width - 40, width - 20)
        for y in range(200)
    )


def test_theme_and_zoom_change_with_pictures_on_screen(
    transcript: TranscriptStage,
) -> None:
    transcript.show([answer(0, f"so ${FRACTION}$\n\n$$\n{FRACTION}\n$$")])
    normal = transcript.picture()
    transcript.view.set_zoom(2.0)
    transcript.settle()
    assert transcript.picture() != normal
    transcript.view.set_zoom(1.0)
    transcript.settle()

    assert transcript.picture() == normal
