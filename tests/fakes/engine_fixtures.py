"""Pytest fixtures: tiny models, and engines that run in the test's thread."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from app.cli.client import load_model
from engine.config import EngineConfig
from engine.runner import pass_times
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


@pytest.fixture(scope="session", autouse=True)
def signatures_read_once() -> Iterator[None]:
    """Let mlx-lm read the signature of a class once. It reads it for each key of a config.json."""
    with pytest.MonkeyPatch.context() as patch:
        signature = SimpleNamespace(signature=cache(inspect.signature))
        patch.setattr("mlx_lm.models.base.inspect", signature)
        yield


@pytest.fixture(autouse=True)
def passes_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let idle work time each length of a pass twice, in place of four times."""
    monkeypatch.setattr(pass_times, "_REPEATS", 1)


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
