"""Compare GGUF files and their imports with llama.cpp and the gguf package.

All tests are skipped unless `make independent` has installed these packages. What was compared:

| architecture | greedy 32 tokens of llama.cpp | names of the gguf package |
|---|---|---|
| all ten of `engine.gguf.architectures` | equal | known |
| llama and phi3 with scaled rotary embeddings | equal | known |

Logits differ by less than 1e-4 of their standard deviation, those of gemma3 by less than 1e-2:
ggml looks up GELU in a table of float16.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache
from tokenizers import Tokenizer

from engine.gguf import quants
from engine.gguf.architectures import ARCHITECTURES
from engine.gguf.header import Metadata
from engine.gguf.reader import TensorKind, read_gguf
from engine.gguf.tokenizer import PRE_TOKENIZERS, read_tokenizer, tokenizer_json
from tests.engine.gguf.test_architectures import PROMPT, imported, logits
from tests.fakes.gguf_models import SCALED, tiny_gguf
from tests.fakes.gguf_writer import (
    gguf_bytes,
    random_tensor,
    sentence_piece_metadata,
    tiny_metadata,
)

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".tools/independent/bin/python"
NUM_TOKENS = 32
TEXTS = [
    "hello world",
    "Hello 12345 WORLD’s we'll  see\n\n  indented\ttabs \n x",
    "naïve café 你好世界 🎉",
    "हिन्दी x́y",
    "<|im_start|>user\nhello<|im_end|>\n",
    "def f(x):\n    return x ** 12  # hello's",
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (ROOT / ".tools/.independent").exists(),
        reason="llama.cpp and gguf are not installed; `make independent` installs them",
    ),
]


def ask(*arguments: object) -> Any:
    command = [str(PYTHON), str(ROOT / "tests/independent/reader.py"), *map(str, arguments)]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert answer.returncode == 0, answer.stderr[-2000:]
    return json.loads(answer.stdout)


def continued(model: Any, count: int) -> list[int]:
    """Return the tokens that greedy decoding continues PROMPT with."""
    cache = make_prompt_cache(model)
    tokens: list[int] = []
    step = PROMPT
    for _ in range(count):
        last = np.array(model(mx.array([step]), cache=cache)[0, -1])
        step = [int(last.argmax())]
        tokens += step
    return tokens


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, *SCALED])
def test_llama_cpp_continues_a_file_as_mlx_lm_continues_its_import(
    tmp_path: Path, architecture: str
):
    model = imported(tiny_gguf(architecture), tmp_path)

    theirs = ask("continue", tmp_path / "tiny.gguf", PROMPT, NUM_TOKENS)

    ours = logits(model)
    difference = np.abs(np.array(theirs["logits"]) - ours).max() / ours.std()
    assert difference < (1e-2 if architecture == "gemma3" else 1e-4)
    assert theirs["tokens"] == continued(model, NUM_TOKENS)


@pytest.mark.parametrize("architecture", [*ARCHITECTURES, *SCALED])
def test_gguf_package_knows_all_written_tensors(tmp_path: Path, architecture: str):
    source = tmp_path / "model.gguf"
    tiny = tiny_gguf(architecture)
    source.write_bytes(tiny.to_bytes())

    answer = ask("names", source)

    assert {name: tuple(reversed(shape)) for name, shape in answer["shapes"].items()} == {
        name: values.shape for name, values in tiny.tensors.items()
    }
    for name in tiny.tensors:
        general = re.sub(r"^blk\.\d+\.", "blk.{bid}.", name)
        stem = general.removesuffix(".weight").removesuffix(".bias")
        assert stem in answer["known"], name


@pytest.mark.parametrize("kind", TensorKind)
def test_gguf_package_reads_the_same_values(tmp_path: Path, kind: TensorKind):
    source, out = tmp_path / "model.gguf", tmp_path / "values.npz"
    tensor = random_tensor("w", kind, (8, 512), np.random.default_rng(3))
    source.write_bytes(gguf_bytes({"general.architecture": "llama"}, [tensor]))

    ask("values", source, out)

    ours = quants.dequantised(kind, read_gguf(source).tensors["w"].raw)
    np.testing.assert_allclose(ours, np.load(out)["w"], rtol=1e-6, atol=1e-8)


def ids(metadata: Metadata) -> list[list[int]]:
    tokenizer = Tokenizer.from_str(tokenizer_json(read_tokenizer(metadata)))
    return [tokenizer.encode(text).ids for text in TEXTS]


@pytest.mark.parametrize("pre", PRE_TOKENIZERS)
def test_llama_cpp_tokenizes_text_in_the_same_way(tmp_path: Path, pre: str):
    values = {**tiny_metadata(), "tokenizer.ggml.pre": pre}
    source = tmp_path / "model.gguf"
    source.write_bytes(gguf_bytes(values, []))
    assert ask("tokenize", source, json.dumps(TEXTS)) == ids(Metadata(values))


@pytest.mark.parametrize("prefix", [True, False])
def test_llama_cpp_tokenizes_with_sentence_piece_in_the_same_way(tmp_path: Path, prefix: bool):
    values = sentence_piece_metadata(add_space_prefix=prefix)
    source = tmp_path / "model.gguf"
    source.write_bytes(gguf_bytes(values, []))
    assert ask("tokenize", source, json.dumps(TEXTS)) == ids(Metadata(values))
