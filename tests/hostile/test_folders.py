"""Each hostile model folder gives an answer or one honest sentence, and no bug of Rejoinder."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.models import isolated
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template
from tests.hostile.folders import FOLDERS, damaged, is_honest, trial

pytestmark = pytest.mark.slow

# The model is loaded and answers, or fails like another kind that damages the same file. Each takes
# 0.3 s and more.
IN_SOAK = frozenset(
    {
        "quantization {'bits': 99, 'group_size': 64}",
        "quantization {'bits': 4, 'group_size': 64, 'mode': 'none such'}",
        "quantization_config {'quant_method': 5}",
        "quantization_config []",
        "text_config x",
        "architectures [5]",
        "eos_token_id x",
        "eos_token_id -1",
        "eos_token_id 1000000000",
        "eos_token_id {'a': 1}",
        "eos_token_id None",
        "head_dim 0",
        "tie_word_embeddings no",
        "max_position_embeddings -1",
        "max_position_embeddings 1000000000000000000",
        "max_position_embeddings far",
        "generation with byte order mark",
        "generation end token",
        "generation end text",
        "generation end object",
        "400,000 added tokens",
        "added token of a blank",
        "added token of a letter",
        "padding",
        "normalizer prepends",
        "normalizer charsmap",
        "pattern explodes",
        "no pre-tokenizer",
        "post-processor roberta",
        "decoder strips",
        "decoder wordpiece",
        "no decoder",
        "word level without unk",
        "word piece without unk",
        "unigram without unk",
        "vocabulary of letters",
        "tokenizer class unknown",
        "length text",
        "template multiplies",
        "template multiplies a list",
        "template centres",
        "template power",
        "template lipsum",
        "template empty",
        "template includes",
        "template undefined",
        "template rewrites",
        "weights large",
        "added token far away",
        "added token without text",
        "config surrogate",
        "decoder ctc",
        "eos_token_id [[1]]",
        "generation end texts",
        "ids beyond the model",
        "link to nothing",
        "name with controls",
        "normalizer empties",
        "post-processor adds",
        "quantization {'bits': 3, 'group_size': 0}",
        "template changes messages",
        "template escapes",
        "template raises",
        "template recurses",
        "template surrogates",
        "template syntax",
        "tensor of whole numbers",
        "text_config []",
        "truncation",
        "unigram nan",
        "weights many entries",
        "weights zero",
        "rms_norm_eps inf",
        "max_position_embeddings 0",
        "generation words",
        "vocabulary empty",
        "dropout",
        "weights infinite",
        "index of 100,000 files",  # tested below
    }
)


@pytest.mark.parametrize("kind", rest_in_soak(FOLDERS, *(FOLDERS.keys() - IN_SOAK)))
def test_hostile_folder_gives_an_answer_or_an_honest_sentence(
    tiny_model: TinyModel, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = damaged(tiny_model("llama", Template.KEEPING), tmp_path, kind)
    if kind in {"template loops", "normalizer grows"}:
        monkeypatch.setattr(isolated, "_CALL_S", 0.5)

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

    assert is_honest(problem), problem
    assert problem is not None
    assert words in problem.cause
