"""Tests of lines between the rows and columns of arrays, and of equation numbers."""

from __future__ import annotations

from xml.etree import ElementTree as ET

import pytest

from app.viewmodels.typeset import Formula, TypesetFormula, typeset


def drawn(latex: str) -> TypesetFormula:
    picture = typeset(Formula(latex, display=True))
    assert isinstance(picture, TypesetFormula), picture
    return picture


def lines(picture: TypesetFormula) -> tuple[int, int]:
    """Return the number of horizontal and of vertical lines in a picture."""
    found = [
        float(rect.get("width", "0")) > float(rect.get("height", "0"))
        for rect in ET.fromstring(picture.svg).findall(".//{*}rect")
    ]
    return sum(found), len(found) - sum(found)


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\begin{array}{c|c} x & y \\ \hline 1 & 2 \end{array}", (1, 1)),
        (r"\begin{array}{|c|c|}\hline x & y \\ \hline 1 & 2 \\ \hline\end{array}", (3, 3)),
        (r"\begin{array}{c||c} x & y \\ \hline\hline 1 & 2 \end{array}", (2, 2)),
        (r"\left[\begin{array}{cc|c} 1 & 2 & 3 \end{array}\right]", (0, 1)),
        (r"\begin{array}{@{}r|*{2}{c|}p{2cm}} 1 & 2 & 3 & 4 \end{array}", (0, 3)),
        (r"\begin{array}{rr} 1 & 2 \\ \cline{2-2} & 3 \\ \toprule 4 \end{array}", (2, 0)),
        (r"\begin{matrix} \hline a & b \\ c & d \\ \hline \end{matrix}", (2, 0)),
        (
            r"\begin{array}{c|c} \begin{array}{c} 1 \\ \hline 2 \end{array} & b \\ c & d \end{array}",
            (1, 1),
        ),
        (r"\begin{array}{c} \hline \end{array} x", None),
        (r"\begin{array}{*{99}{*{99}{*{99}{|}}}c} x \end{array}", None),
        (r"\begin{array}{c} a \\ \cline{7-99} b \end{array}", None),
    ],
)
def test_lines_of_an_array_are_drawn(latex: str, expected: tuple[int, int] | None) -> None:
    made = typeset(Formula(latex, display=True))

    if expected is not None:
        assert isinstance(made, TypesetFormula)
        assert lines(made) == expected


def test_line_of_some_columns_does_not_cross_the_others() -> None:
    svg = drawn(r"\begin{array}{rrr} 1 & 2 & 3 \\ \cline{2-3} & 4 & 5 \end{array}").svg
    root = ET.fromstring(svg)
    (line,) = root.findall(".//{*}rect")
    start = float(line.get("x", "0")) / float(root.get("width", "1"))

    assert 0.25 < start < 0.5


def test_equation_numbers_stand_in_a_column_of_their_own() -> None:
    plain = r"\begin{align} a &= b + c + d \\ e &= f \end{align}"
    numbered = r"\begin{align} a &= b + c + d \tag{1} \\ e &= f \tag*{B} \end{align}"

    assert drawn(numbered).width > drawn(plain).width
    # Without \tag, equations have no numbers.
    assert drawn(plain).width == drawn(plain.replace("align", "align*")).width


@pytest.mark.parametrize("latex", [r"x = 1 \tag{1}", r"\tag{1} x = 1"])
def test_equation_number_of_one_line_stands_at_its_end(latex: str) -> None:
    assert drawn(latex).width == drawn(r"x = 1 \qquad \text{(1)}").width


def test_box_has_the_same_margin_above_and_below() -> None:
    content, box = drawn(r"\frac{1}{2}"), drawn(r"\boxed{\frac{1}{2}}")
    above, below = box.ascent - content.ascent, box.descent - content.descent

    assert 0.2 < below < 0.6
    assert abs(above - below) < 0.05
