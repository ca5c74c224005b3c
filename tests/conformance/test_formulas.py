"""Tests that the formulas of a public list are drawn, or explain why not (formulas.toml)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from app.viewmodels.typeset import Formula, TypesetFormula, Undrawn, typeset
from tests.fakes.tables import rest_in_soak

_TABLE = Path(__file__).with_name("formulas.toml")
_ROWS = cast(
    "list[Mapping[str, object]]",
    tomllib.loads(_TABLE.read_text(encoding="utf-8"))["formula"],
)
_BY_NAME = {str(row["name"]): row for row in _ROWS}
# A row for each kind of rewriting and repair, and one for each kind of reason.
_HERE = (
    "Alignedat", "ArrayRemoveEmptyLine", "CD", "DelimiterSizing", "KaTeX", "MathOp",
    "MathtoolsMatrix", "PrimeSuper", "SqrtRoot", "Text", "Unicode", "Verb", "Supported4",
    "Supported19", "Supported39", "Supported59", "Supported67",
)  # fmt: skip


@pytest.mark.parametrize("name", rest_in_soak(_BY_NAME, *_HERE))
def test_formula_of_the_list_is_drawn_or_explains_why_not(name: str) -> None:
    row = _BY_NAME[name]
    made = typeset(Formula(str(row["latex"]), display=bool(row.get("display"))))
    why = row.get("why")
    if why is None:
        assert isinstance(made, TypesetFormula)
    else:
        assert made == Undrawn(str(why))


def test_table_has_200_formulas_of_which_180_are_drawn() -> None:
    assert len(_BY_NAME) == len(_ROWS) == 200
    assert sum("why" not in row for row in _ROWS) >= 180
