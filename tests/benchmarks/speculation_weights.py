"""The same float32 weights as a GGUF file and as a model folder, for engines that read one of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import mlx.core as mx
import numpy as np

from engine.cache.trees import evaluate
from engine.gguf.convert import WEIGHTS_NAME
from engine.gguf.importer import import_once
from engine.gguf.quants import dequantised
from engine.gguf.reader import TensorKind, read_gguf
from tests.fakes.gguf_writer import gguf_bytes, plain_tensor

# Number of tokens that transformers drafts from the prompt in its lookup folder. 10 is the example
# value of its documentation.
LOOKUP_TOKENS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    gguf: Path
    model: Path  # a model folder
    lookup: Path  # the same model folder, with prompt lookup as a default of transformers


def write_float32(source: Path, folder: Path) -> ModelFiles:
    """Write a quantised GGUF file's weights into `folder` as float32.

    The values are rounded to float16 first, because the import of a GGUF file rounds them too.
    """
    files = ModelFiles(gguf=folder / "model.gguf", model=folder / "model", lookup=folder / "lookup")
    quantised = read_gguf(source)
    tensors = [
        plain_tensor(
            tensor.name,
            TensorKind.F32,
            dequantised(tensor.kind, tensor.raw).reshape(tensor.shape).astype(np.float16),
        )
        for tensor in quantised.tensors.values()
    ]
    files.gguf.write_bytes(
        gguf_bytes({**quantised.metadata.values, "general.file_type": 0}, tensors)
    )
    import_once(files.gguf, files.model, lambda _: None)
    _store_as_float32(files.model / WEIGHTS_NAME)
    _change(files.model / "config.json", torch_dtype="float32")
    files.lookup.mkdir()
    for path in files.model.iterdir():
        (files.lookup / path.name).hardlink_to(path)
    _change(files.lookup / "generation_config.json", prompt_lookup_num_tokens=LOOKUP_TOKENS)
    return files


def _store_as_float32(path: Path) -> None:
    weights = mx.load(str(path))
    assert isinstance(weights, dict)
    wide = {name: array.astype(mx.float32) for name, array in weights.items()}
    evaluate(wide)
    path.unlink()
    mx.save_safetensors(str(path), wide, {"format": "pt"})  # pyright: ignore[reportUnknownMemberType] — untyped result


def _change(path: Path, **values: object) -> None:
    """Set values of a JSON file. Write a new file, so that hard links keep the old values."""
    text = json.dumps(json.loads(path.read_text(encoding="utf-8")) | values, indent=2)
    path.unlink()
    path.write_text(text + "\n", encoding="utf-8")
