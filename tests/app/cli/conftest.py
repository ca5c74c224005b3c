"""Fixtures that run the real engine with a tiny model."""

from __future__ import annotations

from tests.fakes.engine_fixtures import open_tiny, tiny_model

__all__ = ["open_tiny", "tiny_model"]
