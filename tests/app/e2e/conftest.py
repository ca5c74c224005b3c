"""Fixtures of the tests of the whole window."""

from __future__ import annotations

from tests.fakes.seeing_engine import seeing_model

__all__ = ["seeing_model"]
