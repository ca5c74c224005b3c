"""Write a safetensors file in slices, so that only one slice is in memory at a time.

The header contains the offset of every tensor. So the names, types and shapes of all tensors must
be known before the first slice is written. Call on any thread.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

_ALIGNMENT: Final = 8


class NumberFormat(StrEnum):
    """A number format of safetensors files. The values are the names that safetensors uses."""

    U32 = "U32"
    F32 = "F32"
    F16 = "F16"

    @property
    def num_bytes(self) -> int:
        return 2 if self is NumberFormat.F16 else 4


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """The name, number format and shape of a tensor that will be written."""

    name: str
    storage: NumberFormat
    shape: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        return math.prod(self.shape) * self.storage.num_bytes


class WeightsWriter:
    """Writes a safetensors file from a list of planned tensors.

    The rows of one tensor must be written in order. Slices of different tensors may alternate.
    """

    def __init__(self, file: BinaryIO, plan: Iterable[PlannedTensor]) -> None:
        self._file = file
        # Write all tensors with 4-byte numbers before all tensors with 2-byte numbers. Each tensor
        # then starts at a multiple of its number size.
        ordered = sorted(plan, key=lambda planned: -planned.storage.num_bytes)
        header, self._positions = _layout(ordered)
        self._file.write(header)
        self._ends = {
            planned.name: self._positions[planned.name] + planned.num_bytes for planned in ordered
        }

    def write_rows(
        self, name: str, rows: NDArray[np.float16] | NDArray[np.float32] | NDArray[np.uint32]
    ) -> None:
        """Write the next rows of the tensor `name`."""
        self._file.seek(self._positions[name])
        self._file.write(np.ascontiguousarray(rows).data)
        self._positions[name] += rows.nbytes
        assert self._positions[name] <= self._ends[name], f"tensor {name} exceeds its planned size"

    def finish(self) -> None:
        assert self._positions == self._ends, "a planned tensor was not written completely"


def _layout(ordered: Iterable[PlannedTensor]) -> tuple[bytes, dict[str, int]]:
    """Return the header of the file and the positions of tensors in the file.

    The positions are a dictionary. Key: tensor name. Value: position in bytes.
    """
    offset = 0
    starts: dict[str, int] = {}
    entries: dict[str, Mapping[str, object]] = {"__metadata__": {"format": "mlx"}}
    for planned in ordered:
        starts[planned.name] = offset
        entries[planned.name] = {
            "dtype": planned.storage.value,
            "shape": planned.shape,
            "data_offsets": (offset, offset + planned.num_bytes),
        }
        offset += planned.num_bytes
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    head = struct.pack("<Q", len(text)) + text
    return head, {name: len(head) + start for name, start in starts.items()}
