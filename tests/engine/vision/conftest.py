"""Fixtures of the tests about pictures."""

from __future__ import annotations

from tests.fakes.seeing_engine import cat, dog, open_seeing, seeing_model

__all__ = ["cat", "dog", "open_seeing", "seeing_model"]
