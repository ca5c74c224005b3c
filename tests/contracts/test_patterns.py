"""Each regular expression has its worst text in the benchmark, which measures how its time grows."""

from __future__ import annotations

from tests.benchmarks.patterns import WORST, expressions


def test_every_regular_expression_has_a_worst_text() -> None:
    sources = {found.source for found in expressions()}

    assert sources - WORST.keys() == set(), "add the worst text to tests/benchmarks/patterns.py"
    assert WORST.keys() - sources == set(), "remove it from tests/benchmarks/patterns.py"
