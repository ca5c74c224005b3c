"""A model that was loaded before is ready without a test pass; a changed one is tested again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import mlx.core as mx
import pytest

from app.cli.client import load_model
from engine.models.adapter import ModelAdapter
from tests.fakes.asking import ask, user
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.tiny_model import Template


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list to which the number of tokens of each forward pass is added."""
    counted: list[int] = []
    run = ModelAdapter.run

    def counting(self: ModelAdapter, input_ids: mx.array, caches: Sequence[object]) -> mx.array:
        counted.append(input_ids.size)
        return run(self, input_ids, caches)

    monkeypatch.setattr(ModelAdapter, "run", counting)
    return counted


@pytest.fixture
def folder(tiny_model: TinyModel, tmp_path: Path) -> Path:
    """Return the folder of a model that no other test loads."""
    return Path(shutil.copytree(tiny_model("lfm2", Template.KEEPING), tmp_path / "model"))


def test_model_that_was_loaded_before_takes_no_pass_and_answers_the_same(
    open_tiny: OpenTiny, tiny_model: TinyModel, folder: Path, passes: list[int]
) -> None:
    client = open_tiny("llama")
    load_model(client, folder, lambda _: None)
    wanted = ask(client, user("A list of boats.")).reply
    load_model(client, tiny_model("llama", Template.KEEPING), lambda _: None)
    passes.clear()

    load_model(client, folder, lambda _: None)

    # mlx-lm's models do not state the size of their vocabulary: a lazy pass of one token shows it.
    assert passes == [1]
    assert ask(client, user("A list of boats.")).reply == wanted


def test_model_whose_weights_changed_is_tested_again(
    open_tiny: OpenTiny, folder: Path, passes: list[int]
) -> None:
    client = open_tiny("llama")
    load_model(client, folder, lambda _: None)
    os.utime(folder / "model.safetensors", ns=(1, 1))
    passes.clear()

    load_model(client, folder, lambda _: None)

    assert len(passes) > 20
