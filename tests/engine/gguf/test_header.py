"""The fit of a GGUF file by its header alone equals that of the imported model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.catalog.card import ModelSource
from engine.catalog.inspect import read_card
from engine.config import EngineConfig
from engine.errors import GgufError
from engine.fitting import FitMeter
from engine.gguf.convert import describe_header
from engine.gguf.header import header_len
from engine.gguf.importer import import_once
from tests.fakes.gguf_models import CONFIGS, SCALED, tiny_gguf
from tests.fakes.gguf_writer import gguf_bytes, q8_0


@pytest.fixture(scope="module")
def meter() -> Iterator[FitMeter]:
    meter = FitMeter(EngineConfig())
    yield meter
    meter.close()


def sparse(content: bytes, place: Path) -> Path:
    """Return a file of the same size that has only the header."""
    length = header_len(content, "m.gguf")
    assert length is not None
    path = place / "sparse.gguf"
    path.write_bytes(content[:length])
    os.truncate(path, len(content))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("name", [*CONFIGS, *SCALED])
def test_fit_of_a_header_equals_that_of_the_imported_model(
    tmp_path: Path, meter: FitMeter, name: str
):
    content = tiny_gguf(name).to_bytes()
    source = tmp_path / "m.gguf"
    source.write_bytes(content)
    import_once(source, tmp_path / "m", lambda _: None)
    imported = meter.fit_folder(read_card(tmp_path / "m", ModelSource.FOLDER))

    config, weight_bytes = describe_header(sparse(content, tmp_path))

    stored = sum(path.stat().st_size for path in (tmp_path / "m").glob("*.safetensors"))
    assert weight_bytes == pytest.approx(stored, rel=0.05)
    measured, real = meter.fit_config(config, weight_bytes).memory, imported.memory
    assert measured.kv_bytes_per_token == real.kv_bytes_per_token
    assert measured.snapshot_bytes == real.snapshot_bytes
    # Some classes have a second copy of the embeddings until the weights show that there is none.
    assert real.weight_bytes <= measured.weight_bytes <= 1.1 * real.weight_bytes


def test_fit_of_a_quantised_file_counts_its_quantisation(tmp_path: Path):
    tiny = tiny_gguf("llama")
    written = [
        q8_0(tensor.name, tiny.tensors[tensor.name])
        if tiny.tensors[tensor.name].ndim == 2 and "norm" not in tensor.name
        else tensor
        for tensor in tiny.written()
    ]
    content = gguf_bytes(tiny.metadata, written)
    _, quantised = describe_header(sparse(content, tmp_path))
    _, plain = describe_header(sparse(tiny.to_bytes(), tmp_path))

    assert quantised < 0.7 * plain


def test_header_length_needs_the_whole_header():
    content = tiny_gguf("qwen3").to_bytes()
    length = header_len(content, "m.gguf")

    assert length is not None
    assert header_len(content[:length], "m.gguf") == length
    for cut in (0, 3, 20, length // 2, length - 1):
        assert header_len(content[:cut], "m.gguf") is None


def test_broken_header_raises_the_error_of_the_reader():
    with pytest.raises(GgufError):
        header_len(b"PK\x03\x04" + bytes(100), "m.gguf")
    with pytest.raises(GgufError):
        header_len(b"GGUF" + bytes([99]) + bytes(100), "m.gguf")


def test_header_with_an_impossible_count_is_refused(tmp_path: Path):
    tiny = tiny_gguf("llama")
    huge = replace(tiny, metadata={**tiny.metadata, "llama.block_count": 4_000_000_000})
    with pytest.raises(GgufError):
        describe_header(sparse(huge.to_bytes(), tmp_path))
