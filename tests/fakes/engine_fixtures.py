"""Pytest fixtures: tiny models, and engines that run in the test's thread."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.cli.client import load_model
from engine.config import EngineConfig
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import Template, build_tiny

TinyModel = Callable[[str, Template], Path]
OpenTiny = Callable[..., InlineClient]


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    """Return a function that builds a tiny random model and returns its folder.

    Each model is built once per test session."""
    built: dict[tuple[str, Template], Path] = {}
    root = tmp_path_factory.mktemp("models")

    def get(name: str, template: Template = Template.KEEPING) -> Path:
        key = (name, template)
        if key not in built:
            built[key] = build_tiny(name, root / f"{name}-{template}", template)
        return built[key]

    return get


@pytest.fixture
def open_tiny(tiny_model: TinyModel) -> OpenTiny:
    """Return a function that opens an engine in the test's thread and loads a tiny model."""

    def get(
        name: str = "qwen3_5",
        template: Template = Template.KEEPING,
        *,
        cache_bytes: int = 1 << 30,
        max_hot: int = 16,
        idle_work: bool = False,
        client_type: type[InlineClient] = InlineClient,
        disk_rest_s: float = 0.0,
        **options: Any,
    ) -> InlineClient:
        client = client_type(
            EngineConfig(
                use_openblas=False,
                cache_budget_bytes=cache_bytes,
                max_hot=max_hot,
                idle_work=idle_work,
                saves_battery=False,
                disk_rest_s=disk_rest_s,
                **options,
            )
        )
        load_model(client, tiny_model(name, template), lambda _: None)
        return client

    return get
