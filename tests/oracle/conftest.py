"""Fixtures of the oracle tests: tiny models, and engines that run in the test's thread."""

from __future__ import annotations

from tests.fakes.engine_fixtures import open_tiny, tiny_model

__all__ = ["open_tiny", "tiny_model"]
