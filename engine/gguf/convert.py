"""Convert a parsed GGUF file to the files of a model folder: configuration, weights, tokenizer.

`plan_conversion` checks the whole file and raises GgufError before anything is written.
`write_files` then writes the files into an empty folder, which importer.py creates. It converts the
weights in slices, so that a large model needs little memory. Call on any worker thread. The module
does not use mlx.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.errors import GgufError
from engine.gguf import quants
from engine.gguf.architectures import PlannedModel, plan_model
from engine.gguf.parts import Change, Form, Order, WeightPart
from engine.gguf.reader import GgufFile, GgufTensor, TensorKind, read_gguf
from engine.gguf.tokenizer import Tokenizer, read_tokenizer, tokenizer_config_json, tokenizer_json
from engine.gguf.weights import NumberFormat, PlannedTensor, WeightsWriter

WEIGHTS_NAME: Final = "model.safetensors"
_SLICE_VALUES: Final = 1 << 18  # number of weights converted at once; 1 MiB as float32 fits caches
_MAX_VECTOR_BYTES: Final = 4096
_MATRIX: Final = 2  # number of dimensions
_MAX_DIMENSIONS: Final = 3  # experts, rows, columns


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
class _PlannedPart:
    """The plan for the conversion of one weight."""

    name: str  # name of the parameter in mlx-lm, such as model.norm.weight
    tensors: tuple[GgufTensor, ...]  # their rows are joined
    shape: tuple[int, ...]  # shape of the weight in mlx-lm
    bits: int | None  # bits per weight; None if the weight is stored as a plain number
    storage: NumberFormat  # number format of a plain weight
    rows: Order | None  # numbers of the joined rows, in mlx-lm's order; None: as in the file
    columns: Order | None  # numbers of the columns, in mlx-lm's order; None: as in the file
    change: Change

    @property
    def module(self) -> str:
        return self.name.removesuffix(".weight")

    @property
    def num_rows(self) -> int:
        return sum(len(tensor.raw) for tensor in self.tensors)

    def planned(self) -> list[PlannedTensor]:
        if self.bits is None:
            return [PlannedTensor(self.name, self.storage, self.shape)]
        *outer, num_columns = self.shape
        groups = (*outer, num_columns // quants.GROUP_SIZE)
        return [
            PlannedTensor(self.name, NumberFormat.U32, (*outer, num_columns * self.bits // 32)),
            PlannedTensor(f"{self.module}.scales", NumberFormat.F16, groups),
            PlannedTensor(f"{self.module}.biases", NumberFormat.F16, groups),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """The plan for the conversion of a whole GGUF file. The file has passed all checks."""

    model: PlannedModel
    vocab_size: int  # number of embeddings, at least the number of tokens
    tokenizer: Tokenizer
    parts: tuple[_PlannedPart, ...]

    @property
    def weights_bytes(self) -> int:
        """Approximate size of the weights file in bytes: all tensors, without the header."""
        return sum(planned.num_bytes for part in self.parts for planned in part.planned())


def plan_conversion(gguf: GgufFile) -> Conversion:
    """Return the plan for the conversion of a file. Write nothing.

    Raises:
        GgufError: the file cannot be imported.
    """
    vector = partial(_vector, gguf.tensors)
    return _planned(gguf, plan_model(gguf.metadata, gguf.tensors.keys(), vector))


def _planned(gguf: GgufFile, model: PlannedModel) -> Conversion:
    tokenizer = read_tokenizer(gguf.metadata)
    vocab_size = gguf.tensors["token_embd.weight"].shape[0]
    if len(tokenizer.tokens) > vocab_size:
        raise GgufError(
            f"It has {len(tokenizer.tokens):,} tokens, but embeddings for {vocab_size:,}."
        )
    return Conversion(
        model=model,
        vocab_size=vocab_size,
        tokenizer=tokenizer,
        parts=tuple(_plan_part(part, gguf.tensors) for part in model.parts),
    )


def describe_header(path: Path) -> tuple[str, int]:
    """Return the config.json and the bytes of weights that the import of a file would write.

    Only the header of the file is read, so all other bytes may be missing (a sparse file). The
    config.json lacks what depends on values of tensors, such as factors of rotary embeddings.

    Raises:
        GgufError: the file cannot be imported.
    """
    gguf = read_gguf(path)
    conversion = _planned(gguf, plan_model(gguf.metadata, gguf.tensors.keys(), lambda _: None))
    return _config_json(conversion), conversion.weights_bytes


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
    context_len = conversion.model.context_len
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


def _vector(tensors: Mapping[str, GgufTensor], name: str) -> list[float] | None:
    """Return the positive values of a small vector, or None if the file lacks the tensor."""
    tensor = tensors.get(name)
    if tensor is None:
        return None
    if tensor.kind is not TensorKind.F32 or tensor.raw.size > _MAX_VECTOR_BYTES:
        raise GgufError(f"The tensor {name} is not a small vector of 32-bit numbers.")
    values = [float(f"{value:.7g}") for value in quants.dequantised(tensor.kind, tensor.raw).flat]
    if not all(math.isfinite(value) and value > 0 for value in values):
        raise GgufError(f"The tensor {name} holds values that are not positive numbers.")
    return values


def _plan_part(part: WeightPart, by_name: Mapping[str, GgufTensor]) -> _PlannedPart:
    tensors = tuple(by_name[name] for name in part.tensors)
    for tensor in tensors:
        if len(tensor.shape) > _MAX_DIMENSIONS or tensor.shape[1:] != tensors[0].shape[1:]:
            raise GgufError(f"The tensor {tensor.name} has the shape {tensor.shape}.")
    num_rows, num_columns = sum(len(tensor.raw) for tensor in tensors), tensors[0].shape[-1]
    columns = part.columns(num_columns) if part.columns else None
    bits = _bits(part, tensors, columns)
    return _PlannedPart(
        name=part.name,
        tensors=tensors,
        shape=_shape(part, tensors),
        bits=bits,
        storage=NumberFormat.F32 if part.change is Change.LOG_OF_NEGATED else NumberFormat.F16,
        rows=part.rows(num_rows) if part.rows else None,
        columns=columns,
        change=part.change,
    )


def _shape(part: WeightPart, tensors: tuple[GgufTensor, ...]) -> tuple[int, ...]:
    num_rows, *inner = tensors[0].shape
    shape = (num_rows + sum(tensor.shape[0] for tensor in tensors[1:]), *inner)
    match part.form:
        case Form.CONVOLUTION:
            return (*shape, 1)
        case Form.ONE_ROW:
            return shape if len(shape) > 1 else (1, *shape)
        case Form.SAME:
            return shape


def _bits(part: WeightPart, tensors: tuple[GgufTensor, ...], columns: Order | None) -> int | None:
    """Return the bits per weight, or None if the weight is stored as a plain number.

    Raises:
        GgufError: the columns of a quantised tensor would have to be moved out of their groups.
    """
    widths = [quants.affine_bits(tensor.kind) for tensor in tensors]
    if len(tensors[0].shape) < _MATRIX or part.form is not Form.SAME:
        return None
    if part.change is not Change.NONE or None in widths:
        return None
    if columns is not None and quants.group_order(columns) is None:
        raise GgufError(f"The tensor {tensors[0].name} is quantised across value heads.")
    return max(width for width in widths if width is not None)


def _write_part(
    part: _PlannedPart, writer: WeightsWriter, on_bytes: Callable[[int], None]
) -> Rounding:
    rounding = Rounding()
    step = max(1, _SLICE_VALUES // part.tensors[0].shape[-1])
    for start in range(0, part.num_rows, step):
        pieces = list(_pieces(part, start, min(start + step, part.num_rows)))
        # Ignore overflows: _require_finite reports them with the tensor's name.
        with np.errstate(all="ignore"):
            rounding = rounding.joined(_write_rows(part, pieces, writer))
        on_bytes(sum(piece.raw.nbytes for piece in pieces))
    return rounding


@dataclass(frozen=True, slots=True)
class _Piece:
    """Rows of one tensor that belong to a slice of a weight."""

    tensor: GgufTensor
    raw: NDArray[np.uint8]
    places: slice | Order  # positions of the rows in the slice


def _pieces(part: _PlannedPart, start: int, end: int) -> Generator[_Piece]:
    """Yield the rows from start to end of a weight, by the tensor that contains them."""
    order = part.rows[start:end] if part.rows is not None else None
    first = 0
    for tensor in part.tensors:
        last = first + len(tensor.raw)
        if order is None:
            inner = slice(max(start, first) - first, max(min(end, last), first) - first)
            raw = tensor.raw[inner]
            begin = max(start, first) - start
            places: slice | Order = slice(begin, begin + len(raw))
        else:
            places = np.flatnonzero((order >= first) & (order < last))
            raw = tensor.raw[order[places] - first]
        if len(raw):
            yield _Piece(tensor, raw, places)
        first = last


def _write_rows(part: _PlannedPart, pieces: list[_Piece], writer: WeightsWriter) -> Rounding:
    if part.bits is None:
        writer.write_rows(part.name, _plain_rows(part, pieces))
        return Rounding()
    affine = quants.joined(
        [(piece.places, quants.quantised(piece.tensor.kind, piece.raw)) for piece in pieces]
    )
    if part.columns is not None:
        affine = quants.with_columns(affine, part.columns)
    packed = quants.packed(affine, part.bits)
    _require_finite(packed.scales, part.tensors[0])
    _require_finite(packed.biases, part.tensors[0])
    writer.write_rows(part.name, packed.weight)
    writer.write_rows(f"{part.module}.scales", packed.scales)
    writer.write_rows(f"{part.module}.biases", packed.biases)
    return Rounding(scale_error=packed.error, requantised_error=affine.error)


def _plain_rows(
    part: _PlannedPart, pieces: list[_Piece]
) -> NDArray[np.float16] | NDArray[np.float32]:
    num_rows = sum(len(piece.raw) for piece in pieces)
    rows = np.empty((num_rows, part.tensors[0].shape[-1]), np.float32)
    for piece in pieces:
        rows[piece.places] = quants.dequantised(piece.tensor.kind, piece.raw)
    if part.columns is not None:
        rows = rows[:, part.columns]
    match part.change:
        case Change.MINUS_ONE:
            rows = rows - np.float32(1)
        case Change.LOG_OF_NEGATED:
            rows = np.log(-rows)
        case Change.NONE:
            pass
    values = rows if part.storage is NumberFormat.F32 else rows.astype(np.float16)
    _require_finite(values, part.tensors[0])
    return values


def _require_finite(values: NDArray[np.float16] | NDArray[np.float32], tensor: GgufTensor) -> None:
    if not np.isfinite(values).all():
        raise GgufError(f"The tensor {tensor.name} holds values that 16 bits can’t.")


def _config_json(conversion: Conversion) -> str:
    content: dict[str, object] = {
        **conversion.model.config,
        **_special_ids(conversion.tokenizer),
        "vocab_size": conversion.vocab_size,
        "torch_dtype": "float16",
    }
    if quantisation := _quantisation(conversion.parts):
        content |= {"quantization": quantisation, "quantization_config": quantisation}
    return json.dumps(content, indent=2)


def _quantisation(parts: tuple[_PlannedPart, ...]) -> Mapping[str, object]:
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
