"""Rotary positions of pictures: rows and columns for a picture's tokens, a shift after it.

A picture of Qwen's models has positions on three axes: all its tokens have the same time, and each
has its row and its column (M-RoPE, arXiv 2409.12191, section 2.1). The picture takes as many
positions as it has rows or columns, whichever are more, so the text after it has lower positions
than numbers of tokens. mlx-lm's models have one axis and count tokens. So their `rope` modules are
replaced: in all other passes the replacement gives the bits of the original. Engine thread only.
"""

# mlx.nn has few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
from mlx import nn
from typing_extensions import override

from engine.vision.tower import TokenGrid

AxesOf = Callable[[Sequence[int], int], list[int]]


class PassPositions:
    """The positions of the pass that is being built. All `rope` modules of a model share it."""

    def __init__(self) -> None:
        self.shift = 0  # position of the next token, minus the number of tokens before it
        self.grid: TokenGrid | None = None  # None for text

    @contextmanager
    def of_pass(self, shift: int, grid: TokenGrid | None = None) -> Generator[None]:
        """Set the positions for a pass that is built inside the with block."""
        self.shift, self.grid = shift, grid
        try:
            yield
        finally:
            self.shift, self.grid = 0, None


class PictureRope(nn.Module):
    """A rotary embedding with the positions of PassPositions."""

    def __init__(self, rope: nn.RoPE, axes: Sequence[int], positions: PassPositions) -> None:
        """Create the replacement of a `rope` module.

        Args:
            rope: the module, which rotates halves (not pairs).
            axes: the axis of each frequency: 0 time, 1 row, 2 column.
            positions: the positions of each pass.
        """
        super().__init__()
        self._rope: Any = rope
        self._positions = positions
        self._axes = axes

    @override
    def __call__(self, x: mx.array, offset: int | mx.array = 0) -> mx.array:
        """Rotate the heads x, of shape (B, H, L, D). offset: the number of tokens before them."""
        first = offset + self._positions.shift
        if self._positions.grid is None:
            return self._rope(x, offset=first)
        angles = self._angles(first, self._positions.grid, x.shape[2])
        cos, sin = mx.cos(angles), mx.sin(angles)
        dims = self._rope.dims
        rotated, rest = x[..., :dims], x[..., dims:]
        a, b = mx.split(rotated.astype(mx.float32), 2, axis=-1)
        turned = mx.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
        return mx.concatenate([turned.astype(x.dtype), rest], axis=-1)

    def _angles(self, first: int | mx.array, grid: TokenGrid, num_tokens: int) -> mx.array:
        """Return the angles of tokens of a picture, of shape (tokens, dims / 2).

        first: the position of the first of these tokens in text of the same length.
        """
        token = mx.arange(grid.start, grid.start + num_tokens)
        row, column = token // grid.columns, token % grid.columns
        first = first - grid.start  # all tokens of a picture count from its first one
        places = (mx.zeros_like(row), row, column)
        dims = self._rope.dims
        exponents = mx.arange(0, dims, 2, dtype=mx.float32) / dims
        frequencies = self._rope.scale / self._rope.base**exponents
        positions = mx.stack([places[axis] + first for axis in self._axes], axis=-1)
        return positions.astype(mx.float32) * frequencies


def axes_in_turns(sections: Sequence[int], num_frequencies: int) -> list[int]:
    """Return the axis of each frequency: 0 time, 1 row, 2 column.

    The axes take turns, until the row and the column have as many frequencies as in `sections`.
    """
    axes = [0] * num_frequencies
    for axis in (1, 2):
        for index in range(axis, min(3 * sections[axis], num_frequencies), 3):
            axes[index] = axis
    return axes


def axes_in_blocks(sections: Sequence[int], _num_frequencies: int) -> list[int]:
    """Return the axis of each frequency, of which each axis has a block."""
    return [axis for axis, number in enumerate(sections) for _ in range(number)]


def replace_ropes(model: nn.Module, sections: Sequence[int], axes_of: AxesOf) -> PassPositions:
    """Replace the `rope` modules of a model, and return the positions that they share.

    Args:
        model: the model of mlx-lm.
        sections: numbers of frequencies for the time, the row and the column.
        axes_of: function that gives the axis of each frequency.
    """
    positions = PassPositions()
    for module in model.modules():
        rope: Any = getattr(module, "rope", None)
        if isinstance(rope, nn.RoPE):
            axes = axes_of(sections, rope.dims // 2)
            module.rope = PictureRope(rope, axes, positions)
    return positions
