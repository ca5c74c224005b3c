"""Mutated weight files give an answer or one honest sentence. `table.py` tries more of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template
from tests.hostile.folders import is_honest
from tests.hostile.mutations import gguf_content, import_trial, mutated, weights_trial

pytestmark = pytest.mark.slow
SEEDS = rest_in_soak(range(30), *range(8))


@pytest.mark.parametrize("seed", SEEDS)
def test_mutated_gguf_file_gives_an_answer_or_an_honest_sentence(tmp_path: Path, seed: int) -> None:
    problem = import_trial(tmp_path, mutated(gguf_content(), seed))

    assert is_honest(problem), problem


@pytest.mark.parametrize("seed", SEEDS)
def test_mutated_weights_give_an_answer_or_an_honest_sentence(
    tiny_model: TinyModel, tmp_path: Path, seed: int
) -> None:
    source = tiny_model("llama", Template.KEEPING)
    folder = Path(shutil.copytree(source, tmp_path / "model"))

    problem = weights_trial(folder, mutated((source / "model.safetensors").read_bytes(), seed))

    assert is_honest(problem), problem
