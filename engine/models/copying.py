"""The program that writes a quantised copy of a model, with mlx-lm's own conversion.

`engine/copying.py` sends the calls: one opens the model, and each further one writes a part of the
copy. Arrays are lazy: a tensor is read, quantised and dropped in its own step, so the process needs
the memory of one file of the copy and of one tensor in full precision.

No code from the model's folder runs. The process cannot open network connections or start programs.
"""

# mlx.utils and mlx-lm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import mlx.core as mx
from mlx import nn
from mlx.utils import tree_flatten, tree_map, tree_map_with_path
from mlx_lm.utils import load_model, make_shards, quantize_model, save_config

from engine.catalog.card import ModelSource
from engine.catalog.inspect import read_card
from engine.errors import ModelFolderError
from engine.worker.confinement import stay_offline
from engine.worker.frames import Frame
from engine.worker.loop import answer_calls

_GROUP_SIZE: Final = 64  # weights that share one scale, as in mlx-lm's conversion
_FILE_GB: Final = 1  # highest size of a weight file, unless a single tensor is larger
_STEP_BYTES: Final = 64 << 20  # bytes of the copy that one step evaluates
_FREED_BYTES: Final = 256 << 20  # bytes of freed buffers that MLX keeps
_DTYPES: Final = ("float16", "bfloat16", "float32")


def main() -> None:
    """Answer calls until the input ends."""
    stay_offline()
    mx.set_cache_limit(_FREED_BYTES)
    answer_calls(_Copy().answer, counts_cpu_time=False)


class _Copy:
    """The copy that is being written."""

    def __init__(self) -> None:
        self._steps: Iterator[int] = iter(())

    def answer(self, call: Frame) -> Frame:
        """Open a model, or write the next part of its copy."""
        # Standard output carries the answers, and modules of mlx-lm may print.
        with contextlib.redirect_stdout(sys.stderr):
            if source := call.header.get("open"):
                bits, folder = call.header["bits"], Path(str(call.header["folder"]))
                assert isinstance(bits, int)
                weights, config = _quantised(Path(str(source)), bits)
                self._steps = _write(weights, config, folder)
                return Frame({"total_bytes": sum(array.nbytes for array in weights.values())})
            return Frame({"done_bytes": next(self._steps)})


def _quantised(source: Path, bits: int) -> tuple[dict[str, mx.array], dict[str, Any]]:
    """Return the lazy weights of the copy by name, and its config.json.

    Raises:
        ModelFolderError: the model cannot be loaded, or has no layer that can be quantised.
    """
    card = read_card(source, ModelSource.FOLDER)
    if card.problem is not None:
        raise ModelFolderError.of(card.problem)
    model, config = cast("tuple[nn.Module, dict[str, Any]]", load_model(source, lazy=True))
    _cast(model, config)
    model, config = quantize_model(model, config, _GROUP_SIZE, bits)
    weights = dict(cast("list[tuple[str, mx.array]]", tree_flatten(model.parameters())))
    if not any(name.endswith(".scales") for name in weights):
        raise ModelFolderError(f"No layer of {card.title} can be quantized.")
    # From here on only `weights` references the arrays, so a written tensor is freed.
    model.update(tree_map(lambda _: mx.array([]), model.parameters()))
    return weights, config


def _cast(model: Any, config: dict[str, Any]) -> None:
    """Convert the weights to the number type that config.json states, as mlx-lm's convert does."""
    text = config.get("text_config")
    name = config.get("torch_dtype") or (text.get("dtype") if isinstance(text, dict) else None)
    if name not in _DTYPES:
        return
    dtype, casts = getattr(mx, name), getattr(model, "cast_predicate", lambda _: True)

    def convert(path: str, array: mx.array) -> mx.array:
        is_wanted = casts(path) and mx.issubdtype(array.dtype, mx.floating)
        return array.astype(dtype) if is_wanted else array

    model.update(tree_map_with_path(convert, model.parameters()))


def _write(weights: dict[str, mx.array], config: dict[str, Any], folder: Path) -> Iterator[int]:
    """Write the files of the copy. Yield the number of written bytes after each part.

    The last number is yielded when all files are complete.
    """
    total = done = waiting = 0
    total = sum(array.nbytes for array in weights.values())
    shards = cast("list[dict[str, mx.array] | None]", make_shards(weights, _FILE_GB))
    num_parameters = sum(array.size for array in weights.values())
    weights.clear()
    places: dict[str, str] = {}
    for number, shard in enumerate(shards, start=1):
        assert shard is not None
        shards[number - 1] = None
        name = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        name = name if len(shards) > 1 else "model.safetensors"
        for array in shard.values():
            mx.eval(array)
            done, waiting = done + array.nbytes, waiting + array.nbytes
            if waiting >= _STEP_BYTES and done < total:
                waiting = 0
                yield done
        mx.save_safetensors(str(folder / name), shard, metadata={"format": "mlx"})
        places.update(dict.fromkeys(shard, name))
    index = {
        "metadata": {"total_size": total, "total_parameters": num_parameters},
        "weight_map": dict(sorted(places.items())),
    }
    text = json.dumps(index, indent=4)
    (folder / "model.safetensors.index.json").write_text(text, encoding="utf-8")
    save_config(config, folder / "config.json")
    yield total
