"""Convert a parsed GGUF file to the files of a model folder: configuration, weights, tokenizer.

`plan_conversion` checks the whole file and raises GgufError before anything is written.
`write_files` then writes the files into an empty folder, which importer.py creates. It converts the
weights in slices, so that a large model needs little memory. Call on any worker thread. The module
does not use mlx.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.errors import GgufError
from engine.gguf import quants
from engine.gguf.architectures import (
    Architecture,
    ConfigNumbers,
    find_architecture,
    module_names,
    read_settings,
)
from engine.gguf.reader import GgufFile, Tensor
from engine.gguf.tokenizer import Tokenizer, read_tokenizer, tokenizer_config_json, tokenizer_json
from engine.gguf.weights import PlannedTensor, Storage, WeightsWriter

WEIGHTS_NAME: Final = "model.safetensors"
_SLICE_VALUES: Final = 1 << 22  # number of weights converted at once; 16 MiB as float32


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounding:
    """The largest rounding errors of a conversion.

    An error is relative to the largest value in the same group of 32 weights.
    """

    # Error from rounding the scales to float16. The quantised codes are unchanged.
    scale_error: float = 0.0
    # Error from quantising values again. 0 if MLX supports the quantisation of all tensors.
    requantised_error: float = 0.0

    def joined(self, other: Rounding) -> Rounding:
        return Rounding(
            scale_error=max(self.scale_error, other.scale_error),
            requantised_error=max(self.requantised_error, other.requantised_error),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _TensorPart:
    """The plan for the conversion of one tensor."""

    tensor: Tensor
    module: str  # name of the module in mlx-lm that holds the weight
    bits: int | None  # bits per weight; None if the tensor is stored as float16
    # Row numbers in the GGUF file, sorted in the order that mlx-lm expects.
    order: NDArray[np.intp]

    def planned(self) -> list[PlannedTensor]:
        weight = f"{self.module}.weight"
        if self.bits is None:
            return [PlannedTensor(weight, Storage.F16, self.tensor.shape)]
        num_rows, num_columns = self.tensor.shape
        groups = (num_rows, num_columns // quants.GROUP_SIZE)
        return [
            PlannedTensor(weight, Storage.U32, (num_rows, num_columns * self.bits // 32)),
            PlannedTensor(f"{self.module}.scales", Storage.F16, groups),
            PlannedTensor(f"{self.module}.biases", Storage.F16, groups),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The plan for the conversion of a whole GGUF file. The file has passed all checks."""

    architecture: Architecture
    settings: ConfigNumbers
    tokenizer: Tokenizer
    parts: tuple[_TensorPart, ...]

    @property
    def weights_bytes(self) -> int:
        """Approximate size of the weights file in bytes: all tensors, without the header."""
        return sum(planned.num_bytes for part in self.parts for planned in part.planned())


def plan_conversion(gguf: GgufFile) -> Conversion:
    """Return the plan for the conversion of a file. Write nothing.

    Raises:
        GgufError: the file cannot be imported.
    """
    architecture = find_architecture(gguf.metadata)
    settings = read_settings(architecture, gguf.metadata)
    tokenizer = read_tokenizer(gguf.metadata)
    num_layers = settings.integers["num_hidden_layers"]
    if not 0 < num_layers <= len(gguf.tensors):
        raise GgufError(f"It claims {num_layers:,} layers, but holds {len(gguf.tensors)} tensors.")
    names = module_names(architecture, num_layers, gguf.tensors.keys())
    parts = tuple(
        _plan_part(gguf.tensors[name], module, architecture, settings)
        for name, module in names.items()
    )
    num_rows = gguf.tensors["token_embd.weight"].shape[0]
    if len(tokenizer.tokens) > num_rows:
        raise GgufError(
            f"It has {len(tokenizer.tokens):,} tokens, but embeddings for {num_rows:,}."
        )
    return Conversion(
        architecture=architecture, settings=settings, tokenizer=tokenizer, parts=parts
    )


def write_files(conversion: Conversion, folder: Path, on_bytes: Callable[[int], None]) -> Rounding:
    """Write all files of a model folder and return the rounding errors.

    Args:
        conversion: the plan.
        folder: an empty folder.
        on_bytes: called after each slice with the slice's number of bytes in the GGUF file.

    Raises:
        GgufError: a tensor contains values that float16 cannot represent.
    """
    tokenizer = conversion.tokenizer
    context_len = conversion.settings.integers["max_position_embeddings"]
    texts = {
        "config.json": _config_json(conversion),
        "generation_config.json": json.dumps(_special_ids(tokenizer), indent=2),
        "tokenizer.json": tokenizer_json(tokenizer),
        "tokenizer_config.json": tokenizer_config_json(tokenizer, context_len),
    }
    for name, text in texts.items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    with (folder / WEIGHTS_NAME).open("wb") as file:
        writer = WeightsWriter(
            file, [planned for part in conversion.parts for planned in part.planned()]
        )
        rounding = Rounding()
        for part in conversion.parts:
            rounding = rounding.joined(_write_part(part, writer, on_bytes))
        writer.finish()
    return rounding


def _plan_part(
    tensor: Tensor, module: str, architecture: Architecture, settings: ConfigNumbers
) -> _TensorPart:
    if len(tensor.shape) > 2:
        raise GgufError(f"The tensor {tensor.name} has {len(tensor.shape)} dimensions, not 1 or 2.")
    order = np.arange(len(tensor.raw))
    part = tensor.name.split(".")[-2]  # e.g. attn_q from blk.0.attn_q.weight
    if part in architecture.interleaved:
        num_heads = settings.integers[architecture.interleaved[part]]
        if num_heads < 1 or len(order) % (2 * num_heads):
            raise GgufError(
                f"The tensor {tensor.name} has {len(order):,} rows, not {num_heads} heads."
            )
        order = order.reshape(num_heads, -1, 2).swapaxes(1, 2).ravel()
    is_matrix = len(tensor.shape) > 1
    return _TensorPart(
        tensor=tensor,
        module=module,
        bits=quants.affine_bits(tensor.kind) if is_matrix else None,
        order=order,
    )


def _write_part(
    part: _TensorPart, writer: WeightsWriter, on_bytes: Callable[[int], None]
) -> Rounding:
    rounding = Rounding()
    step = max(1, _SLICE_VALUES // part.tensor.shape[-1])
    for start in range(0, len(part.order), step):
        raw = part.tensor.raw[part.order[start : start + step]]
        # Ignore overflows: _require_finite reports them with the tensor's name.
        with np.errstate(all="ignore"):
            rounding = rounding.joined(_write_rows(part, raw, writer))
        on_bytes(raw.nbytes)
    return rounding


def _write_rows(part: _TensorPart, raw: NDArray[np.uint8], writer: WeightsWriter) -> Rounding:
    weight = f"{part.module}.weight"
    if part.bits is None:
        values = quants.dequantised(part.tensor.kind, raw).astype(np.float16)
        _require_finite(values, part.tensor)
        writer.write_rows(weight, values)
        return Rounding()
    affine = quants.quantised(part.tensor.kind, raw)
    packed = quants.packed(affine)
    _require_finite(packed.scales, part.tensor)
    _require_finite(packed.biases, part.tensor)
    writer.write_rows(weight, packed.weight)
    writer.write_rows(f"{part.module}.scales", packed.scales)
    writer.write_rows(f"{part.module}.biases", packed.biases)
    return Rounding(scale_error=packed.error, requantised_error=affine.error)


def _require_finite(values: NDArray[np.float16], tensor: Tensor) -> None:
    if not np.isfinite(values).all():
        raise GgufError(f"The tensor {tensor.name} holds values that 16 bits can’t.")


def _config_json(conversion: Conversion) -> str:
    embeddings = next(part for part in conversion.parts if part.tensor.name == "token_embd.weight")
    content: dict[str, object] = {
        "model_type": conversion.architecture.model_type,
        "architectures": [conversion.architecture.model_class],
        **conversion.architecture.constants,
        **conversion.settings.integers,
        **conversion.settings.numbers,
        **_special_ids(conversion.tokenizer),
        "vocab_size": embeddings.tensor.shape[0],
        "tie_word_embeddings": all(
            part.tensor.name != "output.weight" for part in conversion.parts
        ),
        "torch_dtype": "float16",
    }
    if quantisation := _quantisation(conversion.parts):
        content |= {"quantization": quantisation, "quantization_config": quantisation}
    return json.dumps(content, indent=2)


def _quantisation(parts: tuple[_TensorPart, ...]) -> Mapping[str, object]:
    """Return the field `quantization` of config.json.

    The field states the number of bits that most modules have. If a module has another number of
    bits, the field contains an entry for this module.
    """
    widths = {part.module: part.bits for part in parts if part.bits is not None}
    if not widths:
        return {}
    ((common, _),) = Counter(widths.values()).most_common(1)
    others = {
        module: {"group_size": quants.GROUP_SIZE, "bits": bits}
        for module, bits in widths.items()
        if bits != common
    }
    return {"group_size": quants.GROUP_SIZE, "bits": common, **others}


def _special_ids(tokenizer: Tokenizer) -> Mapping[str, object]:
    eos = tokenizer.eos_ids
    named = {
        "bos_token_id": tokenizer.bos_id,
        "eos_token_id": eos[0] if len(eos) == 1 else list(eos),
        "pad_token_id": tokenizer.padding_id,
    }
    return {name: value for name, value in named.items() if value is not None}
