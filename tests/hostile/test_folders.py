"""Each hostile model folder gives an answer or one honest sentence, and no bug of Rejoinder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template
from tests.hostile.folders import FOLDERS, damaged, is_honest, trial

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", FOLDERS)
def test_hostile_folder_gives_an_answer_or_an_honest_sentence(
    tiny_model: TinyModel, tmp_path: Path, kind: str
) -> None:
    folder = damaged(tiny_model("llama", Template.KEEPING), tmp_path, kind)

    problem = trial(folder)

    assert is_honest(problem), problem


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("num_labels many", "The num_labels of config.json is 1,000,000,000"),
        ("generation nested", "generation_config.json is broken"),
        ("generation digits", "generation_config.json is broken"),
        ("folder generation_config.json", "generation_config.json is a folder"),
        ("post-processor large", "The post_processor in tokenizer.json has 4 MB"),
        ("end token number", "The value of eos_token in tokenizer_config.json is of a wrong type"),
        ("special tokens number", "The value of additional_special_tokens in tokenizer_config"),
        ("first token", "The value of bos_token in tokenizer_config.json is of a wrong type"),
        ("index of 100,000 files", "names 100,000 weight files"),
    ],
)
def test_hostile_file_is_named_in_the_sentence(
    tiny_model: TinyModel, tmp_path: Path, kind: str, words: str
) -> None:
    problem = trial(damaged(tiny_model("llama", Template.KEEPING), tmp_path, kind))

    assert problem is not None
    assert words in problem.cause
