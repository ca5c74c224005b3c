"""Fixtures of the tests of the server: tiny models that are served."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.engine_fixtures import TinyModel, open_tiny, tiny_model
from tests.fakes.qwen import Qwen, build_qwen
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


@pytest.fixture(scope="module")
def module_calling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedModel]:
    folder = build_qwen(Qwen.QWEN3_5, tmp_path_factory.mktemp("qwen"), num_tokens=8_000)
    with served_model(folder) as served:
        yield served


@pytest.fixture
def calling(module_calling: ServedModel) -> ServedModel:
    """Return a server with a model that can call tools. The tests of a module share it."""
    module_calling.replies.clear()
    module_calling.requests.clear()
    return module_calling
