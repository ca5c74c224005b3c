"""Fixtures of tests/fakes/engine_fixtures.py, made available to the tests of this folder."""

from __future__ import annotations

from tests.fakes.engine_fixtures import open_tiny, tiny_model

__all__ = ["open_tiny", "tiny_model"]
