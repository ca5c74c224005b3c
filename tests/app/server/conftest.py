"""Fixtures of the tests of the server: tiny models that are served."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.engine_fixtures import TinyModel, open_tiny, tiny_model
from tests.fakes.served_model import ServedModel, served_model
from tests.fakes.tiny_model import Template

__all__ = ["open_tiny", "tiny_model"]


@pytest.fixture(scope="module")
def module_server(tiny_model: TinyModel) -> Iterator[ServedModel]:
    with served_model(tiny_model("qwen3_5", Template.KEEPING)) as served:
        yield served


@pytest.fixture
def served(module_server: ServedModel) -> ServedModel:
    """Return a server with a tiny hybrid model. The tests of a module share it."""
    module_server.replies.clear()
    module_server.requests.clear()
    return module_server
