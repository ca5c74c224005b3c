"""Fixtures of the engine tests: tiny models, and engines that run in the test's thread."""

from __future__ import annotations

from tests.fakes.engine_fixtures import (
    open_tiny,
    passes_timed_once,
    signatures_read_once,
    tiny_model,
)

__all__ = ["open_tiny", "passes_timed_once", "signatures_read_once", "tiny_model"]
