"""Fixtures of tiny models for the hostile tests."""

from __future__ import annotations

from tests.fakes.engine_fixtures import tiny_model

__all__ = ["tiny_model"]
