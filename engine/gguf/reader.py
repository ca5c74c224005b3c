"""Read a GGUF file (version 2 or 3): metadata and tensors.

A model may be divided into several files. A file is mapped into memory, and tensors are views of
the mapping. Tensors are not converted: only their sizes are computed and checked. A broken or
malicious file raises GgufError and no other error. Call on any thread.
"""

from __future__ import annotations

import math
import mmap
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.errors import GgufError
from engine.gguf.header import Cursor, Metadata, TensorEntry, read_header, wrong
from engine.plain_file import open_plain

Bytes = NDArray[np.uint8]


class TensorKind(StrEnum):
    """The number format of a tensor. The values are the names that GGUF uses."""

    F32 = "F32"
    F16 = "F16"
    BF16 = "BF16"
    Q4_0 = "Q4_0"
    Q4_1 = "Q4_1"
    Q5_0 = "Q5_0"
    Q5_1 = "Q5_1"
    Q8_0 = "Q8_0"
    Q4_K = "Q4_K"
    Q5_K = "Q5_K"
    Q6_K = "Q6_K"
    IQ4_NL = "IQ4_NL"
    IQ4_XS = "IQ4_XS"


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """The size of a block in one number format. GGUF stores tensors as sequences of blocks."""

    kind: TensorKind
    num_values: int
    num_bytes: int


BLOCKS: Final[Mapping[int, BlockFormat]] = {
    0: BlockFormat(TensorKind.F32, 1, 4),
    1: BlockFormat(TensorKind.F16, 1, 2),
    2: BlockFormat(TensorKind.Q4_0, 32, 18),
    3: BlockFormat(TensorKind.Q4_1, 32, 20),
    6: BlockFormat(TensorKind.Q5_0, 32, 22),
    7: BlockFormat(TensorKind.Q5_1, 32, 24),
    8: BlockFormat(TensorKind.Q8_0, 32, 34),
    12: BlockFormat(TensorKind.Q4_K, 256, 144),
    13: BlockFormat(TensorKind.Q5_K, 256, 176),
    14: BlockFormat(TensorKind.Q6_K, 256, 210),
    20: BlockFormat(TensorKind.IQ4_NL, 32, 18),
    23: BlockFormat(TensorKind.IQ4_XS, 256, 136),
    30: BlockFormat(TensorKind.BF16, 1, 2),
}
# Names of formats that cannot be imported. MLX has no format with the same values.
_OTHER_FORMATS: Final[Mapping[int, str]] = {
    9: "Q8_1", 10: "Q2_K", 11: "Q3_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS",
    19: "IQ1_S", 21: "IQ3_S", 22: "IQ2_S", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64",
    29: "IQ1_M", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}  # fmt: skip

_PART_NAME: Final = re.compile(
    r"(?P<stem>.+)-(?P<number>[0-9]{5})-of-(?P<count>[0-9]{5})(?P<suffix>\.gguf)", re.IGNORECASE
)
_MAX_PARTS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufTensor:
    """A tensor of a GGUF file, in the file's own number format."""

    name: str
    kind: TensorKind
    shape: tuple[int, ...]  # (rows, columns), or (columns,) for a vector
    raw: Bytes  # view of the mapped file, of shape (rows, bytes per row)


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufFile:
    """A parsed GGUF file, or all parts of a model that is divided into several files."""

    paths: tuple[Path, ...]
    contents: tuple[mmap.mmap, ...]  # memory mappings of the files, in the order of paths
    metadata: Metadata  # metadata of the first file
    tensors: Mapping[str, GgufTensor]  # tensors of all files, by name

    @property
    def num_bytes(self) -> int:
        return sum(len(content) for content in self.contents)


def part_paths(path: Path) -> tuple[Path, ...]:
    """Return the files of a model, given any of them.

    A model in several files has names such as model-00001-of-00003.gguf. Any other name stands for
    a model in one file. The files need not exist.
    """
    match = _PART_NAME.fullmatch(path.name)
    if match is None or not 1 <= int(match["number"]) <= int(match["count"]) <= _MAX_PARTS:
        return (path,)
    count = int(match["count"])
    names = (f"{match['stem']}-{i:05}-of-{count:05}{match['suffix']}" for i in range(1, count + 1))
    return tuple(path.with_name(name) for name in names)


def model_name(path: Path) -> str:
    """Return a file's name without its ending and without the number of its part."""
    match = _PART_NAME.fullmatch(path.name)
    return match["stem"] if match and len(part_paths(path)) > 1 else path.stem


def read_gguf(path: Path) -> GgufFile:
    """Map and parse a GGUF file, and check that all tensors lie inside the file.

    If the file is a part of a model in several files, read all of them.

    Raises:
        GgufError: a file is missing, broken or not a part of the same model.
    """
    paths = part_paths(path)
    parts = [_read_part(each, index, len(paths)) for index, each in enumerate(paths)]
    tensors: dict[str, GgufTensor] = {}
    for part in parts:
        if doubled := sorted(tensors.keys() & part.tensors.keys()):
            raise GgufError(f"{part.paths[0].name} holds the tensor {doubled[0]} again.")
        tensors |= part.tensors
    metadata = parts[0].metadata
    if (expected := metadata.integer("split.tensors.count", len(tensors))) != len(tensors):
        raise GgufError(f"Its parts hold {len(tensors)} tensors instead of {expected:,}.")
    contents = tuple(content for part in parts for content in part.contents)
    return GgufFile(paths=paths, contents=contents, metadata=metadata, tensors=tensors)


def _read_part(path: Path, index: int, num_parts: int) -> GgufFile:
    """Parse one file, which must be part number index (from 0) of a model of num_parts files."""
    content = _map(path)
    cursor = Cursor(content, path.name)
    metadata, entries = read_header(cursor, path.name)
    _require_part(metadata, path, index, num_parts)
    alignment = metadata.integer("general.alignment", 32)
    if alignment < 1:
        raise wrong("general.alignment", "a positive number")
    start = -(-cursor.position // alignment) * alignment
    tensors: dict[str, GgufTensor] = {}
    for entry in entries:
        if entry.name in tensors:
            raise GgufError(f"{path.name} holds the tensor {entry.name} twice.")
        tensors[entry.name] = _view(entry, content, start, path.name)
    return GgufFile(paths=(path,), contents=(content,), metadata=metadata, tensors=tensors)


def _require_part(metadata: Metadata, path: Path, index: int, num_parts: int) -> None:
    number, count = metadata.integer("split.no", 0) + 1, metadata.integer("split.count", 0) or 1
    if (number, count) == (index + 1, num_parts):
        return
    if count > 1 and num_parts == 1:
        raise GgufError(
            f"{path.name} is part {number:,} of {count:,}; the parts can be imported under names "
            f"such as model-{number:05}-of-{count:05}.gguf."
        )
    raise GgufError(
        f"{path.name} states that it is part {number:,} of {count:,}, "
        f"not {index + 1} of {num_parts}."
    )


def _map(path: Path) -> mmap.mmap:
    try:
        with open_plain(path) as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:
        raise GgufError(f"{path.name} is empty.") from error
    except OSError as error:
        raise GgufError(f"{path} can’t be read: {error.strerror}.") from error


def _view(entry: TensorEntry, content: mmap.mmap, start: int, file_name: str) -> GgufTensor:
    if entry.kind_id not in BLOCKS:
        have = ", ".join(TensorKind)
        kind = _OTHER_FORMATS.get(entry.kind_id, f"unknown type {entry.kind_id}")
        raise GgufError(
            f"The tensor {entry.name} has the format {kind}, which can’t be imported; "
            f"possible are {have}."
        )
    block = BLOCKS[entry.kind_id]
    columns, num_rows = entry.dimensions[0], math.prod(entry.dimensions[1:])
    if columns % block.num_values or columns * num_rows == 0:
        raise GgufError(
            f"The tensor {entry.name} has a shape that {block.kind} can’t have: {entry.dimensions}."
        )
    row_bytes = columns // block.num_values * block.num_bytes
    end = start + entry.offset + num_rows * row_bytes
    if end > len(content):
        raise GgufError(
            f"{file_name} is truncated: the tensor {entry.name} ends at byte {end:,}, "
            f"the file at {len(content):,}."
        )
    raw = np.frombuffer(content, np.uint8, num_rows * row_bytes, start + entry.offset)
    return GgufTensor(
        name=entry.name,
        kind=block.kind,
        shape=tuple(reversed(entry.dimensions)),
        raw=raw.reshape(num_rows, row_bytes),
    )
