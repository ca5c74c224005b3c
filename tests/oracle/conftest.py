"""Fixtures of the oracle tests: tiny models, and engines that run in the test's thread."""

from __future__ import annotations

import pytest

from tests.fakes.engine_fixtures import (
    open_tiny,
    passes_timed_once,
    signatures_read_once,
    tiny_model,
)
from tests.oracle.foreseen import check_plans

__all__ = ["open_tiny", "passes_timed_once", "signatures_read_once", "tiny_model"]


@pytest.fixture(autouse=True)
def _plans_are_foreseen(monkeypatch: pytest.MonkeyPatch) -> None:
    check_plans(monkeypatch)
