"""Formulas in the transcript: typesetting, layout, copying, streaming."""

from __future__ import annotations

import gc
from dataclasses import replace
from itertools import pairwise

import pytest
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip

from app.theme.palette import Theme
from app.viewmodels.transcript import ItemStatus
from app.viewmodels.typeset import MAX_LATEX, Formula, TypesetFormula, Undrawn, typeset
from app.widgets.transcript.rows.row import RowAction
from app.widgets.transcript.view import TranscriptView
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
    r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}^T \begin{bmatrix} 1 \\[4pt] 2 \end{bmatrix}^{-1}",
    r"\tbinom{n}{k}^2 \bigl\langle x \bigr\rangle \Bigl\{ y \Bigr\} a \bmod n",
    r"\begin{alignat}{2} a &= b & c &= d \end{alignat}",
    r"f''^{2} + \text{for $x_{1}$ at \$5} + \text{learning\_rate}",
    r"\ce{2H2 + O2 -> 2H2O} \cancelto{0}{x} \operatorname*{arg\,max}_x \mathbb{1}_{A}",
    r"\text{速度 if x < 0} = \colorbox{yellow}{距離 is $x^2$} \\",
]


@pytest.mark.parametrize("latex", KINDS)
def test_usual_latex_is_typeset(latex: str) -> None:
    picture = typeset(Formula(latex, display=True))

    assert isinstance(picture, TypesetFormula)
    assert 0 < picture.width < 60
    assert 0 < picture.ascent + picture.descent < 10
    assert "currentColor" in picture.svg


@pytest.mark.parametrize(
    "latex", ["", " ", r"\frac{", "x" * (MAX_LATEX + 1), "{" * 900, r"\begin{align} a", "x^2^3_"]
)
def test_broken_latex_gives_no_picture_or_a_small_one(latex: str) -> None:
    picture = typeset(Formula(latex, display=False))

    assert isinstance(picture, Undrawn) or picture.width < 60


@pytest.mark.parametrize(
    "latex", [r"\nope", r"\nope{x}", r"\frac{\nope}{2}", r"\begin{cases} \nope \end{cases}"]
)
def test_unknown_latex_command_gives_no_picture(latex: str) -> None:
    assert isinstance(typeset(Formula(latex, display=True)), Undrawn)


@pytest.mark.parametrize(
    ("latex", "why"),
    [
        (r"\text{see \nope}", "Shown as LaTeX: “\\nope” is not supported."),
        (r"\begin{CD} A \end{CD}", "Shown as LaTeX: “CD” is not supported."),
        (r"\text{ب}", "Shown as LaTeX: the font of formulas has no “ب”."),
        (r"\def\a{b}\a", "Shown as LaTeX: a formula that defines commands is not drawn."),
        ("x" * (MAX_LATEX + 1), "Shown as LaTeX: the formula is too long to draw."),
        ("{" * 900, "Shown as LaTeX: the formula is nested too deeply to draw."),
        (
            r"\text{" + r"\bf" * 600 + "}",
            "Shown as LaTeX: the formula is nested too deeply to draw.",
        ),
        (
            r"\begin{array}{c}\hspace{8000em}\\ \hdashline x\end{array}",
            "Shown as LaTeX: the formula is too long to draw.",
        ),
        (r"\frac{", "Shown as LaTeX: a part of the formula is wrong or not supported."),
    ],
)
def test_formula_that_is_not_typeset_gives_the_reason(latex: str, why: str) -> None:
    assert typeset(Formula(latex, display=False)) == Undrawn(why)


@pytest.mark.parametrize("kind", ["cases", "pmatrix", "aligned", "array}{cc"])
def test_rows_of_an_array_are_as_far_apart_as_text_lines(kind: str) -> None:
    def height(num_rows: int) -> float:
        rows = r" \\ ".join(["a & b"] * num_rows)
        end = kind.split("}", maxsplit=1)[0]
        picture = typeset(Formula(rf"\begin{{{kind}}} {rows} \end{{{end}}}", display=True))
        assert isinstance(picture, TypesetFormula)
        return picture.ascent + picture.descent

    assert 1.2 <= height(5) - height(4) <= 1.6  # in em; lines of text are 1.2 em apart


def test_formula_that_defines_commands_is_not_typeset() -> None:
    doubling = "".join(
        rf"\newcommand{{\{b}}}{{{{\{a}}}{{\{a}}}}}" for a, b in pairwise("abcdefghijklmn")
    )

    formula = Formula(rf"\newcommand{{\a}}{{x}}{doubling}\n", display=False)
    assert isinstance(typeset(formula), Undrawn)


def test_text_in_a_formula_does_not_become_svg_markup() -> None:
    picture = typeset(Formula(r"\text{<image href='file:///etc/hosts'/> & \"}", display=False))

    assert isinstance(picture, Undrawn) or "<image" not in picture.svg


def test_tall_formula_makes_its_line_higher(transcript: TranscriptStage) -> None:
    plain, tall = ("so x is one\n\n" * 60, f"so ${FRACTION}$ is one\n\n" * 60)
    transcript.show([answer(0, plain)])
    end = transcript.end
    transcript.show([answer(0, tall)])

    assert transcript.end > end


def test_selected_formula_is_copied_as_latex(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, f"so ${FRACTION}$ is one")])
    transcript.drag(QPoint(45, 40), QPoint(700, 40))

    copied = transcript.copied()
    assert f"${FRACTION}$ is one" in copied
    assert not copied.startswith("so")


def test_copy_of_everything_is_the_markdown_source(transcript: TranscriptStage) -> None:
    text = f"a\n\n$$\n{FRACTION}\n$$\n\n| $x$ | y |\n|---|---|\n| $y^2$ | z |"
    transcript.show([answer(0, text)])
    transcript.view.selection.select_all()

    assert transcript.copied() == text


def test_copied_part_of_a_table_has_the_formulas_as_latex(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, "| a | b |\n|---|---|\n| $y^2$ | z |\n\nend")])
    transcript.drag(QPoint(48, 36), QPoint(700, 140))

    assert transcript.copied() == "\tb\n$y^2$\tz\n\nend"


def test_streamed_formula_ends_with_the_picture_of_the_complete_one(
    transcript: TranscriptStage,
) -> None:
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


def test_latex_that_cannot_be_typeset_is_shown_as_source(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, r"so $\frac{$ x")])
    transcript.view.selection.select_all()

    assert transcript.copied() == r"so $\frac{$ x"


@pytest.mark.qt_log_ignore("does not support raise", extend=True)
def test_formula_shown_as_source_explains_why(transcript: TranscriptStage) -> None:
    table = "| $\\nope$ | b |\n|---|---|\n| c | d |"
    transcript.show([answer(0, f"so $\\nope$ x\n\n$$\n\\nope\n$$\n\n{table}")])
    viewport = transcript.view.viewport()
    for which in range(3):  # in a paragraph, in a block of its own, in a table
        point = transcript.find(RowAction.EXPLAIN, which)
        QTest.mouseMove(viewport, point)
        help_event = QHelpEvent(QEvent.Type.ToolTip, point, viewport.mapToGlobal(point))
        QApplication.sendEvent(viewport, help_event)

        assert "Shown as LaTeX: “\\nope” is not supported." in QToolTip.text()
    QToolTip.hideText()


def test_formula_shown_as_source_can_be_selected(transcript: TranscriptStage) -> None:
    transcript.show([answer(0, r"so $\nope$ x")])
    start = transcript.find(RowAction.EXPLAIN)
    transcript.drag(start, start + QPoint(400, 0))

    assert transcript.copied().endswith("x")


@pytest.mark.slow
def test_visible_text_does_not_move_when_formulas_above_arrive(transcript: TranscriptStage) -> None:
    above = "".join(f"$$\n\\frac{{a_{number}}}{{b}}\n$$\n\n" for number in range(30))
    view = transcript.view
    view.show_conversation([answer(0, f"{above}A needle.\n\n" + "word\n\n" * 200)])
    view.find_controller.look_for("needle")
    before = transcript.top
    transcript.settle()

    assert transcript.copied() == "needle"
    assert transcript.top > before, "the formulas above did not become higher"
    shown = transcript.top
    view.find_controller.look_for("needle")
    assert transcript.top == shown, "the needle was not in view"


def test_selection_keeps_its_words_when_formulas_arrive(transcript: TranscriptStage) -> None:
    view = transcript.view
    view.show_conversation([answer(0, r"With $\frac{x_9}{y_9}$ and $\sqrt{z_9}$ the fox jumps.")])
    view.find_controller.look_for("the fox")
    transcript.settle()

    assert transcript.copied() == "the fox"


@pytest.mark.slow
def test_formulas_far_from_the_view_have_exact_heights(transcript: TranscriptStage) -> None:
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
    assert transcript.end == end, "some height was not exact"


def test_all_rows_of_a_table_use_the_width_of_a_late_formula(transcript: TranscriptStage) -> None:
    rows = "".join(f"| {number} | b |\n" for number in range(30))
    text = f"| $\\sum_i x_{{i,77}}$ | b |\n|---|---|\n{rows}"
    transcript.view.resize(800, 1800)
    transcript.view.show_conversation([answer(0, text)])
    transcript.settle()
    first = transcript.view.viewport().grab().toImage()
    transcript.view.show_conversation([answer(0, text)])
    transcript.settle()

    assert transcript.view.viewport().grab().toImage() == first


def test_formula_in_a_question_stays_inside_its_bubble(transcript: TranscriptStage) -> None:
    transcript.show([question(0, "1. Solve\n\n$$x^2=1$$"), answer(0, "no")])
    beside = transcript.view.viewport().grab().toImage()
    background = beside.pixelColor(4, 4)
    width = beside.width()

    assert all(
        beside.pixelColor(x, y) == background
        for x in range(width - 40, width - 20)
        for y in range(200)
    )


def test_zoom_change_repaints_formulas_at_the_new_size(
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


def test_view_that_garbage_collection_destroys_closes_without_an_error(
    theme: Theme, capfd: pytest.CaptureFixture[str]
) -> None:
    view = TranscriptView(theme)
    del view
    gc.collect()
    assert capfd.readouterr().err == ""
