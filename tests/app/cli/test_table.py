"""Tests of the step report table: its last column shows the result of each check."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.cli import table
from app.cli.step_report import StepReport
from engine.questions import CheckResult

EQUAL = CheckResult(
    prompt_equal=True,
    equal=True,
    max_difference=2e-6,
    replay_difference=0.0,
    first_difference=None,
)
REPORT = StepReport(
    op="send",
    chat="A",
    text="Yes.",
    finish_reason="stop",
    prompt_tokens=10,
    matched=0,
    restored=0,
    read=10,
    replayed=0,
    redo=0,
    output_tokens=2,
    restore_ms=0.0,
    ttft_ms=1.0,
    total_ms=2.0,
    decode_tok_s=3.0,
    passes=0,
    drafted_tokens=0,
    accepted_tokens=0,
    cache_bytes=0,
    restored_disk=0,
    disk_ms=0.0,
    written_bytes=0,
    reasons=(),
    check=EQUAL,
)


def test_row_of_an_unchecked_step_shows_no_verdict() -> None:
    report = replace(REPORT, check=None)
    assert report.holds
    assert "equal" not in table.row(report)


def test_row_of_an_equal_step_ends_with_equal() -> None:
    assert REPORT.holds
    assert table.row(REPORT).endswith("equal (2.0e-06)")


def test_row_of_a_cut_reply_is_equal_and_names_the_reply() -> None:
    cut = "the template shows only a part of the reply 'a'"
    report = replace(REPORT, check=replace(EQUAL, template_cut=cut))
    assert report.holds
    assert table.row(report).endswith(f"equal (2.0e-06) {cut}")


@pytest.mark.parametrize(
    ("check", "shown"),
    [
        (replace(EQUAL, replay_difference=1e-7), "DIFFERS (2.0e-06, same passes 1.0e-07) "),
        (replace(EQUAL, equal=False, first_difference=3), "DIFFERS from token 3 (2.0e-06) "),
        (replace(EQUAL, prompt_equal=False, detail="reads 'x'"), "DIFFERS (2.0e-06) reads 'x'"),
    ],
)
def test_row_of_a_different_step_shows_the_difference(check: CheckResult, shown: str) -> None:
    report = replace(REPORT, check=check)
    assert not report.holds
    assert table.row(report).endswith(shown)
