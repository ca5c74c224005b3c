r"""Tests of LaTeX for the notation of mhchem: `\ce{...}`."""

from __future__ import annotations

import pytest

from app.viewmodels.chemistry import chemistry
from app.viewmodels.typeset import Formula, TypesetFormula, Undrawn, typeset


@pytest.mark.parametrize(
    ("source", "latex"),
    [
        ("H2O", r"\mathrm{H}_{2}\mathrm{O}"),
        ("2H2 + O2", r"2\,\mathrm{H}_{2}+\mathrm{O}_{2}"),
        ("1/2 O2", r"\tfrac{1}{2}\,\mathrm{O}_{2}"),
        ("0.5 H2", r"0.5\,\mathrm{H}_{2}"),
        ("SO4^2-", r"\mathrm{SO}_{4}^{2-}"),
        ("NH4+", r"\mathrm{NH}_{4}^{+}"),
        ("[Fe(CN)6]^{4-}", r"[\mathrm{Fe}(\mathrm{CN})_{6}]^{4-}"),
        ("H2+O2", r"\mathrm{H}_{2}+\mathrm{O}_{2}"),
        ("CH3-CH2=CH#N", r"\mathrm{CH}_{3}{-}\mathrm{CH}_{2}{=}\mathrm{CH}{\equiv}\mathrm{N}"),
        ("CuSO4.5H2O", r"\mathrm{CuSO}_{4}\cdot 5\,\mathrm{H}_{2}\mathrm{O}"),
        ("^{235}_{92}U", r"{}^{235}_{92}\mathrm{U}"),
        ("A -> B", r"\mathrm{A}\xrightarrow{}\mathrm{B}"),
        ("A <=>[H+][k] B", r"\mathrm{A}\xrightleftharpoons[\mathrm{k}]{\mathrm{H}^{+}}\mathrm{B}"),
        ("A ->[$T > 5$] B", r"\mathrm{A}\xrightarrow{T > 5}\mathrm{B}"),
        ("CO2 ^", r"\mathrm{CO}_{2}\uparrow "),
        ("AgCl v", r"\mathrm{AgCl}\downarrow "),
        (r"C_nH_{2n}", r"\mathrm{C}_{n}\mathrm{H}_{2n}"),
        (r"\Delta \text{heat}", r"\Delta \text{heat} "),
    ],
)
def test_notation_of_mhchem_becomes_latex(source: str, latex: str) -> None:
    assert chemistry(source) == latex


@pytest.mark.parametrize("source", ["^", "_", "{", "->[", "->[[", "$", "^{", "\\", "}{", "A^"])
def test_broken_notation_gives_a_picture_or_a_reason(source: str) -> None:
    assert isinstance(
        typeset(Formula(rf"\ce{{{source}}}", display=False)), TypesetFormula | Undrawn
    )


def test_reaction_in_a_formula_is_drawn() -> None:
    latex = r"K = \frac{[\ce{H+}]}{\text{at \ce{CaCO3 ->[\Delta] CaO + CO2 ^}}}"

    assert isinstance(typeset(Formula(latex, display=True)), TypesetFormula)
