from __future__ import annotations

import logging
from dataclasses import dataclass
from enum import StrEnum

import pytest
from hypothesis import given, settings, strategies as st

from app.conversation.tree import Generation, Setup
from app.store.codec import from_json, from_json_or_none, to_json
from engine.problem import Problem


class _CodecKind(StrEnum):
    GOOD = "good"


@dataclass(frozen=True, slots=True, kw_only=True)
class _CodecPart:
    name: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Whole:
    count: int
    kind: _CodecKind
    parts: tuple[_CodecPart, ...]
    flag: bool | None = None
    note: str = "none"


WHOLE = _Whole(count=1, kind=_CodecKind.GOOD, parts=(_CodecPart(name="ä", share=0.5),), flag=True)


def test_from_json_reverses_to_json() -> None:
    assert from_json(_Whole, to_json(WHOLE)) == WHOLE


@settings(max_examples=50, deadline=None)
@given(st.from_type(Generation), st.from_type(Setup), st.from_type(Problem))
def test_stored_types_survive_the_round_trip_through_json(
    how: Generation, setup: Setup, problem: Problem
) -> None:
    assert _repr(from_json(Generation, to_json(how))) == _repr(how)
    assert _repr(from_json(Setup, to_json(setup))) == _repr(setup)
    assert from_json(Problem, to_json(problem)) == problem


def _repr(value: object) -> str:
    return repr(value)  # compare texts, because NaN is not equal to itself


def test_from_json_ignores_unknown_fields_and_fills_in_defaults() -> None:
    stored = '{"count": 2, "kind": "good", "parts": [], "gone": [1]}'

    assert from_json(_Whole, stored) == _Whole(count=2, kind=_CodecKind.GOOD, parts=())


def test_from_json_reads_an_integer_as_float() -> None:
    part = from_json(_CodecPart, '{"name": "x", "share": 1}')

    assert repr(part.share) == "1.0"


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "not JSON",
        '{"kind": "good", "parts": []}',
        '{"count": "1", "kind": "good", "parts": []}',
        '{"count": true, "kind": "good", "parts": []}',
        '{"count": 1, "kind": "bad", "parts": []}',
        '{"count": 1, "kind": "good", "parts": {}}',
        '{"count": 1, "kind": "good", "parts": [3]}',
        '{"count": 1, "kind": "good", "parts": [], "flag": 1}',
    ],
)
def test_from_json_of_invalid_json_raises_value_error(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(_Whole, text)
    with caplog.at_level(logging.WARNING):
        assert from_json_or_none(_Whole, text) is None

    assert "_Whole" in caplog.text
