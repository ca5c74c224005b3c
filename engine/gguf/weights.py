"""Writes a model.safetensors file piece by piece, so that no more than a slice is in memory.

Any thread. The plan of all tensors is fixed first: the header holds every offset.
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


class Storage(StrEnum):
    """Number formats, named as safetensors names them."""

    U32 = "U32"
    F16 = "F16"

    @property
    def num_bytes(self) -> int:
        return 4 if self is Storage.U32 else 2


@dataclass(frozen=True, slots=True)
class PlannedTensor:
    """A tensor that will be written."""

    name: str
    storage: Storage
    shape: tuple[int, ...]

    @property
    def num_bytes(self) -> int:
        return math.prod(self.shape) * self.storage.num_bytes


class WeightsWriter:
    """Fills an open, empty file according to a plan; each tensor's rows come in order."""

    def __init__(self, file: BinaryIO, plan: Iterable[PlannedTensor]) -> None:
        self._file = file
        # The wider format comes first, so that every tensor starts at a multiple of its width.
        ordered = sorted(plan, key=lambda planned: -planned.storage.num_bytes)
        header, self._positions = _layout(ordered)
        self._file.write(header)
        self._ends = {
            planned.name: self._positions[planned.name] + planned.num_bytes for planned in ordered
        }

    def write_rows(self, name: str, rows: NDArray[np.float16] | NDArray[np.uint32]) -> None:
        """Write the next rows of a tensor."""
        self._file.seek(self._positions[name])
        self._file.write(np.ascontiguousarray(rows).data)
        self._positions[name] += rows.nbytes
        assert self._positions[name] <= self._ends[name], f"{name} is longer than planned"

    def finish(self) -> None:
        assert self._positions == self._ends, "not every planned tensor was written"


def _layout(ordered: Iterable[PlannedTensor]) -> tuple[bytes, dict[str, int]]:
    """The file's head, and where in the file each tensor starts."""
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
