"""Describe how the weights of a model folder are made from the tensors of a GGUF file.

llama.cpp's conversion reorders, renames and changes weights. A `WeightPart` states the inverse for
one weight of mlx-lm. The module contains no names of architectures and reads no tensor data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

import numpy as np
from numpy.typing import NDArray

from engine.errors import GgufError
from engine.gguf.header import Metadata

Order = NDArray[np.intp]
# Return the positions in the file of the rows or columns that mlx-lm expects, in mlx-lm's order.
# The argument is the number of rows or columns in the file. Raise GgufError if it does not fit.
Reorder = Callable[[int], Order]

_MAX_HEADS: Final = 1 << 16


class Change(Enum):
    """A change of values. llama.cpp's conversion made the opposite change."""

    NONE = auto()
    MINUS_ONE = auto()  # The file contains 1 + w of a norm whose class in mlx-lm adds the 1.
    LOG_OF_NEGATED = auto()  # The file contains -exp(A_log).


class Form(Enum):
    """The shape of a weight in mlx-lm, derived from the tensor's shape in the file."""

    SAME = auto()
    CONVOLUTION = auto()  # (channels, kernel) becomes (channels, kernel, 1).
    ONE_ROW = auto()  # (columns,) becomes (1, columns).


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightPart:
    """One weight of mlx-lm and the tensors from which it is made."""

    name: str  # name of the parameter in mlx-lm, such as model.norm.weight
    tensors: tuple[str, ...]  # names in the GGUF file; their rows are joined in this order
    rows: Reorder | None = None  # order of the joined rows; None: as in the file
    columns: Reorder | None = None  # order of the columns; None: as in the file
    change: Change = Change.NONE
    form: Form = Form.SAME


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """The configuration of a model and the weights that it must have."""

    config: Mapping[str, object]  # fields of config.json
    num_layers: int  # number of layers, without layers that only predict drafts
    parts: tuple[WeightPart, ...]
    optional: frozenset[str] = frozenset({"output.weight"})  # tensors that a file may lack
    # Prefixes of tensor names that are not imported, such as layers that predict drafts.
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ArchitectureKeys:
    """The metadata of one architecture. The methods add the architecture's prefix to each key."""

    metadata: Metadata
    architecture: str
    num_tensors: int
    # Returns the values of a small vector of the file, or None if the file lacks the tensor.
    vector: Callable[[str], list[float] | None]

    def integer(self, key: str, default: int | None = None) -> int:
        return self.metadata.integer(self._full(key), default)

    def count(self, key: str, default: int | None = None) -> int:
        """Return a number of heads, experts or channels, from 1 to a billion."""
        value = self.integer(key, default)
        if not 1 <= value <= 1_000_000_000:
            raise GgufError(f"Its {self._full(key)} is {value:,}, which no model has.")
        return value

    def heads(self, key: str, default: int | None = None) -> int:
        value = self.count(key, default)
        if value > _MAX_HEADS:
            raise GgufError(f"Its {self._full(key)} is {value:,}, which no model has.")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        # Metadata values have single precision. Rounding to seven digits restores the intended
        # number, such as 1e-05 instead of 9.9999997e-06.
        return float(f"{self.metadata.number(self._full(key), default):.7g}")

    def has(self, key: str) -> bool:
        return self._full(key) in self.metadata.values

    def integers(self, key: str) -> list[int]:
        return self.metadata.integers(self._full(key))

    def num_layers(self) -> int:
        num_layers = self.integer("block_count")
        if not 0 < num_layers <= self.num_tensors:
            raise GgufError(
                f"It claims {num_layers:,} layers, but holds {self.num_tensors} tensors."
            )
        return num_layers

    def require(self, key: str, *understood: object) -> None:
        """Raise GgufError if the file has the key with another value than those understood."""
        value = self.metadata.values.get(self._full(key), understood[0])
        if value not in understood:
            raise GgufError(
                f"Its {self._full(key)} is {value!r}; only {understood[0]!r} can be imported."
            )

    def _full(self, key: str) -> str:
        return f"{self.architecture}.{key}"


def same(table: Mapping[str, str], before: str = "", after: str = "") -> tuple[WeightPart, ...]:
    """Return parts that are copied unchanged.

    Args:
        table: names of parameters in mlx-lm, by the tensor's name in the GGUF file.
        before: prefix of the names in the GGUF file, such as blk.0.
        after: prefix of the names in mlx-lm, such as model.layers.0.
    """
    return tuple(
        WeightPart(name=after + ours, tensors=(before + theirs,)) for theirs, ours in table.items()
    )


def interleaved_halves(num_heads: int, what: str) -> Reorder:
    """Undo the interleaving of the two halves of each head, as llama.cpp does for llama."""

    def order(num_rows: int) -> Order:
        if num_rows % (2 * num_heads):
            raise GgufError(f"The tensor {what} has {num_rows:,} rows, not {num_heads} heads.")
        return np.arange(num_rows).reshape(num_heads, -1, 2).swapaxes(1, 2).ravel()

    return order


def grouped_heads(skipped: int, num_key_heads: int, num_value_heads: int, size: int) -> Reorder:
    """Sort value heads by their key head.

    llama.cpp stores value head j of key head k at position j * num_key_heads + k. mlx-lm expects it
    at position k * (num_value_heads / num_key_heads) + j.

    Args:
        skipped: the number of rows or columns before the value heads, which keep their order.
        num_key_heads: the number of key heads.
        num_value_heads: the number of value heads, a multiple of num_key_heads.
        size: the number of rows or columns of one value head.
    """

    def order(count: int) -> Order:
        _require_count(count, skipped + num_value_heads * size)
        values = np.arange(skipped, count).reshape(-1, num_key_heads, size)
        return np.concatenate([np.arange(skipped), values.swapaxes(0, 1).ravel()])

    return order


def interleaved_by_key_head(num_key_heads: int, key_size: int, values_size: int) -> Reorder:
    """Interleave queries, keys, values and gates by key head, as mlx-lm stores Qwen3-Next.

    The file has all queries, then all keys, all values and all gates.

    Args:
        num_key_heads: the number of key heads.
        key_size: the number of rows of a query and of a key.
        values_size: the number of rows of all values of one key head.
    """

    def order(count: int) -> Order:
        sizes = (key_size, key_size, values_size, values_size)
        _require_count(count, num_key_heads * sum(sizes))
        blocks: list[Order] = []
        start = 0
        for size in sizes:
            end = start + num_key_heads * size
            blocks.append(np.arange(start, end).reshape(num_key_heads, size))
            start = end
        return np.concatenate(blocks, axis=1).ravel()

    return order


def _require_count(count: int, expected: int) -> None:
    if count != expected:
        raise GgufError(
            f"A tensor of its linear attention has {count:,} rows or columns "
            f"instead of {expected:,}."
        )
