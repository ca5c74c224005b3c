"""Vision towers: pixels to embeddings. The interface of all kinds of towers, and what they share.

The modules beside this one have the kinds. The layers come from mlx-vlm. Engine thread only.
"""

# mlx.nn and mlx-vlm have few type annotations.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import mlx.core as mx
import numpy as np
from mlx import nn
from typing_extensions import override

from engine.chat.pictures import PictureTokens
from engine.vision.tower_module import import_part

# Highest number of scores (queries x keys x heads) in one block. Two CPU cores compute a block of
# this size in about 50 ms.
_MAX_SCORES_CPU = 1 << 19
_MAX_SCORES_GPU = 1 << 30
# A block of a tower holds arrays of this many hidden sizes at a time: queries, keys and values
# twice, the layer between of the MLP, sums and norms. In numbers of 4 bytes.
_WIDTHS = 20
_NUMBER_BYTES = 4
# The pixels of a patch: two frames of 16 x 16 pixels with three colours, held three times while the
# first layer reads them. Measured with 7,600 patches and a narrow tower
# (tests.benchmarks.picture_memory).
_PIXELS = 3 * 2 * 3 * 16**2
_PART_LEN = 256  # number of tokens of a picture in one pass, as in a chunk of text


@dataclass(frozen=True, slots=True)
class PictureLength:
    """The length of a picture in a prompt."""

    num_tokens: int
    num_positions: int = 0  # positions that the picture takes; 0 for one a token


@dataclass(frozen=True, slots=True)
class Patches:
    """A picture as the tower gets it."""

    values: np.ndarray  # its shape depends on the tower
    grid: tuple[int, ...]  # rows and columns of patches or tiles, as the tower needs them


class TokenGrid(NamedTuple):
    """The rows and columns of a picture's tokens, and the place of the first token of a part."""

    rows: int
    columns: int
    start: int = 0  # number of tokens of the picture before the part


@dataclass(frozen=True, slots=True)
class EncodedPicture:
    """A picture as a model gets it, or a part of it that is fed in a pass of its own."""

    embeddings: mx.array  # lazy, of shape (1, tokens, hidden size)
    grid: TokenGrid
    # Features that are added behind the first layers of the language model: lazy, (tokens, hidden
    # size)
    features: tuple[mx.array, ...] = ()
    # For each token the id of a control token, whose embedding is that of the language model, or
    # -1. () if there are none.
    control_ids: tuple[int, ...] = ()
    # True if the tokens see those behind them too, so that all must be fed in one pass.
    sees_ahead: bool = False

    @property
    def num_tokens(self) -> int:
        return self.embeddings.shape[1]

    def parts(self) -> Iterator[EncodedPicture]:
        """Yield the parts that are fed in passes of their own, of about _PART_LEN tokens.

        Other answers get their next tokens between two layers of a pass. With all tokens of a large
        picture, a layer would take as long as a whole chunk of text.
        """
        count = 1 if self.sees_ahead else max(1, round(self.num_tokens / _PART_LEN))
        ends = [self.num_tokens * part // count for part in range(count + 1)]
        for start, end in pairwise(ends):
            yield replace(
                self,
                embeddings=self.embeddings[:, start:end],
                grid=self.grid._replace(start=start),
                features=tuple(one[start:end] for one in self.features),
                control_ids=self.control_ids[start:end],
            )

    def all_embeddings(self, model: nn.Module) -> mx.array:
        """Return the embeddings with those of the control tokens, lazily.

        model: the language model, or the part of it that has the embedding of tokens.
        """
        if max(self.control_ids, default=-1) < 0:
            return self.embeddings
        named = cast("list[tuple[str, Any]]", model.named_modules())
        embed = next(module for name, module in named if name.endswith("embed_tokens"))
        ids = mx.array([self.control_ids])
        own = embed(mx.maximum(ids, 0)).astype(self.embeddings.dtype)
        return mx.where((ids >= 0)[..., None], own, self.embeddings)


# Returns a context in which a pass is built that follows pictures, or that reads one. The first
# argument is the shift of positions by the pictures before the pass, the second the picture or None
# for text.
PassContext = Callable[[int, EncodedPicture | None], AbstractContextManager[None]]


Rotate = Callable[[mx.array, mx.array], tuple[mx.array, mx.array]]


class Tower(Protocol):
    """The tower and the image processor of a model."""

    form: str  # the settings by which pixels become patches, as text
    # Text that the model's processor writes before and after a picture, beside that of the template
    opening: str
    closing: str

    def __init__(self, folder: Path, config: Mapping[str, Any], tokens: PictureTokens) -> None:
        """Read the settings of the image processor. The weights are read later.

        Args:
            folder: the folder of the model.
            config: its config.json.
            tokens: the control tokens of its pictures.

        Raises:
            PictureError: the settings are missing or wrong, or the tower is not known.
        """
        ...

    def length(self, width: int, height: int) -> PictureLength:
        """Return the length of a picture of a size in pixels.

        Raises:
            PictureError: the model accepts no picture of this form.
        """
        ...

    def patches(self, pixels: np.ndarray) -> Patches:
        """Divide a picture into patches. Any thread.

        pixels: RGB values from 0 to 255, of shape (3, height, width).
        """
        ...

    def encode(self, patches: Patches) -> tuple[EncodedPicture, Sequence[mx.array]]:
        """Return the embeddings of a picture, and the parts of the work of the tower, all lazily.

        A part depends only on those before it.
        """
        ...

    def pass_bytes(self, num_tokens: int) -> int:
        """Return an estimate of the memory for computing the embeddings of a picture, in bytes."""
        ...

    def release(self) -> None:
        """Drop the weights. The next picture reads them again."""
        ...

    @staticmethod
    def adapt(model: nn.Module, config: Mapping[str, Any]) -> PassContext:
        """Replace the parts of a language model that read pictures in another way than text.

        In all other passes the replacements give the bits of the original parts. A part of a model
        that has no tower is adapted too.

        Args:
            model: the language model, or a stage of it.
            config: its config.json.
        """
        ...


class AttentionInBlocks:
    """Attention of a tower over a range of patches at a time, each a part of the work.

    Without that, the scores of one screenshot take gigabytes, and nothing else runs for seconds.
    """

    def __init__(self) -> None:
        is_cpu = mx.default_device() == mx.Device(mx.cpu)
        # mlx-vlm's function is for GPUs: it pads the heads.
        self._attend: Any = _attend_on_cpu if is_cpu else import_part("base").ensure_fused_sdpa
        self._max_scores = _MAX_SCORES_CPU if is_cpu else _MAX_SCORES_GPU
        self.results: list[mx.array] = []  # the blocks of all calls

    def __call__(
        self, queries: mx.array, keys: mx.array, values: mx.array, scale: float
    ) -> mx.array:
        """Return the attention of queries (B, H, L, D) to all keys and values of their window.

        A window is one of B: a picture, or a part of it.
        """
        num_windows, num_heads, num_patches, _ = queries.shape
        block_len = max(1, self._max_scores // (num_heads * num_patches))
        if num_windows == 1:
            parts, axis = _slices(num_patches, block_len), 2
            blocks = [self._attend(queries[:, :, part], keys, values, scale) for part in parts]
        else:
            parts, axis = _slices(num_windows, max(1, block_len // num_patches)), 0
            blocks = [
                self._attend(queries[part], keys[part], values[part], scale) for part in parts
            ]
        self.results += blocks
        return blocks[0] if len(blocks) == 1 else mx.concatenate(blocks, axis=axis)


def _slices(length: int, step: int) -> Iterator[slice]:
    return (slice(start, start + step) for start in range(0, length, step))


class BlockAttention(nn.Module):
    """A tower's attention to one picture, computed in blocks by `attend`, which the tower sets."""

    def __init__(self, width: int, num_heads: int, *, bias: bool) -> None:
        super().__init__()
        self._num_heads = num_heads
        self.q_proj = nn.Linear(width, width, bias=bias)
        self.k_proj = nn.Linear(width, width, bias=bias)
        self.v_proj = nn.Linear(width, width, bias=bias)
        self.attend: Any = None

    def attended(self, x: mx.array, rotate: Rotate | None = None) -> mx.array:
        """Return the attended values of all patches, of shape (1, patches, width).

        rotate: function that rotates the queries and keys, of shape (1, heads, patches, D).
        """
        _, num_patches, width = x.shape

        def heads(y: mx.array) -> mx.array:
            return y.reshape(1, num_patches, self._num_heads, -1).transpose(0, 2, 1, 3)

        queries, keys, values = (heads(one(x)) for one in (self.q_proj, self.k_proj, self.v_proj))
        if rotate is not None:
            queries, keys = rotate(queries, keys)
        output = self.attend(queries, keys, values, (width // self._num_heads) ** -0.5)
        return output.transpose(0, 2, 1, 3).reshape(1, num_patches, width)


class SiglipAttention(BlockAttention):
    """The attention of SigLIP."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__(width, num_heads, bias=True)
        self.out_proj = nn.Linear(width, width)

    @override
    def __call__(self, x: mx.array, _mask: None = None) -> mx.array:
        return self.out_proj(self.attended(x))


def _attend_on_cpu(queries: mx.array, keys: mx.array, values: mx.array, scale: float) -> mx.array:
    return mx.fast.scaled_dot_product_attention(queries, keys, values, scale=scale)


def like_text(_shift: int, _picture: EncodedPicture | None) -> AbstractContextManager[None]:
    """Return the context of a pass of a model that reads pictures like text."""
    return nullcontext()


def patch_bytes(num_patches: int, hidden_size: int) -> int:
    """Return an estimate of the memory for a pass of a tower, in bytes."""
    return num_patches * (_WIDTHS * hidden_size + _PIXELS) * _NUMBER_BYTES
