"""The pictures of one loaded model: the ids that stand for them, and the passes that read them."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import mlx.core as mx
from mlx import nn

from engine.cache.trees import tree_bytes
from engine.chat.pictures import PictureTokens
from engine.errors import PictureError
from engine.picture_ids import MAX_POSITIONS, picture_ids
from engine.types import Picture
from engine.vision.gemma import GemmaTower
from engine.vision.gemma3n import Gemma3nTower
from engine.vision.gemma4 import Gemma4Tower
from engine.vision.lfm2 import Lfm2Tower
from engine.vision.llama4 import Llama4Tower
from engine.vision.mistral import MistralTower
from engine.vision.pixels import beside, read_pixels
from engine.vision.qwen import QwenTower
from engine.vision.qwen2 import Qwen2Tower
from engine.vision.tower import EncodedPicture, PassContext, Patches, Tower
from engine.vision.tower_module import tower_weights

# Highest number of pictures that are remembered. Each takes 1 kB.
_MAX_KNOWN = 1024
_MAX_TOKENS = 1 << 20  # highest number of tokens of a picture
# The towers of all types of models in SEEING_TYPES
TOWERS: Final[Mapping[str, type[Tower]]] = {
    "gemma3": GemmaTower,
    "gemma3n": Gemma3nTower,
    "gemma4": Gemma4Tower,
    "lfm2-vl": Lfm2Tower,
    "llama4": Llama4Tower,
    "mistral3": MistralTower,
    "qwen2_vl": Qwen2Tower,
    "qwen2_5_vl": Qwen2Tower,
    "qwen3_5": QwenTower,
    "qwen3_5_moe": QwenTower,
    "qwen3_vl": QwenTower,
    "qwen3_vl_moe": QwenTower,
}


class Vision:
    """The eyes of one loaded model. Nothing is imported or read before the first picture."""

    def __init__(
        self,
        model: nn.Module,
        folder: Path,
        config: Mapping[str, Any],
        tokens: PictureTokens,
        picture_folder: Path | None,
    ) -> None:
        """Create the eyes of a model.

        Args:
            model: the model of mlx-lm.
            folder: its folder.
            config: its config.json.
            tokens: the control tokens of its pictures.
            picture_folder: the folder with the files of pictures.
        """
        self.placeholder = tokens.placeholder
        self._tokens = tokens
        self._model = model
        self._folder = folder
        self._config = config
        self._tower_type = TOWERS[config["model_type"]]
        self.picture_folder = picture_folder
        # Keys: hashes of the ids. The ids of a picture of 6,000 tokens take 240 kB.
        self._known: OrderedDict[bytes, Picture] = OrderedDict()
        self._context: PassContext | None = None  # None before the first picture
        # The ids and the patches of the picture whose file is being read.
        self._reading: tuple[tuple[int, ...], Future[Patches]] | None = None
        # The ids and the embeddings of the picture that is read next. The newest of an unfinished
        # read-ahead stay, because the request may follow.
        self._encoded_ids: tuple[int, ...] = ()
        self._encoded: EncodedPicture | None = None

    def ids(self, picture: Picture) -> tuple[int, ...]:
        """Return the ids that stand for a picture. See PictureRules.ids."""
        length = self._tower.length(picture.width, picture.height)
        if length.num_positions > MAX_POSITIONS or length.num_tokens > _MAX_TOKENS:
            raise PictureError(
                f"A picture takes {length.num_tokens:,} tokens.",
                advice="Attach it again in a smaller size.",
            )
        identity = f"{picture.digest} {self._tower.form}"
        token_ids = picture_ids(identity, length.num_tokens, length.num_positions)
        key = _hash(token_ids)
        self._known[key] = picture
        self._known.move_to_end(key)
        if len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)
        return token_ids

    @cached_property
    def weight_bytes(self) -> int:
        """Bytes of the tower's weights, whether or not they are in memory."""
        return tree_bytes(tower_weights(self._folder))

    def pass_bytes(self, num_tokens: int) -> int:
        """Return an estimate of the memory for computing the embeddings of a picture, in bytes."""
        return self._tower.pass_bytes(num_tokens)

    def num_tokens(self, width: int, height: int) -> int:
        """Return the number of tokens of a picture.

        Raises:
            PictureError: the model accepts no picture of this form.
        """
        return self._tower.length(width, height).num_tokens

    def encode(
        self, token_ids: Sequence[int], seconds: float = math.inf
    ) -> Sequence[mx.array] | None:
        """Begin with the embeddings of a picture, which the next pass over its ids uses.

        Args:
            token_ids: the ids that stand for the picture.
            seconds: longest time to wait for the file, which another thread reads.

        Returns:
            Lazy arrays, each of which depends only on those before it: parts of the work of the
            tower, then the embeddings. The parts are not kept, because all together they take much
            memory. None if the file is not read yet.

        Raises:
            PictureError: the picture is not known, or its file is missing or damaged.
        """
        ids = tuple(token_ids)
        if ids == self._encoded_ids and self._encoded is not None:
            return (self._encoded.embeddings,)
        picture = self._known.get(_hash(ids))
        if picture is None or self.picture_folder is None:
            raise PictureError("A picture of this chat is not known.")
        if self._reading is None or self._reading[0] != ids:
            path = self.picture_folder / f"{picture.digest}.png"
            self._reading = (ids, beside(partial(self._read, path, picture)))
        reading = self._reading[1]
        wait([reading], None if seconds == math.inf else seconds)
        if not reading.done():
            return None
        self._reading = None
        self._encoded, parts = self._tower.encode(reading.result())
        self._encoded_ids = ids
        return (*parts, self._encoded.embeddings)

    def _read(self, path: Path, picture: Picture) -> Patches:
        return self._tower.patches(read_pixels(path, picture))

    def take(self, token_ids: Sequence[int]) -> EncodedPicture:
        """Remove and return the embeddings of a picture. Raise the errors of `encode`."""
        self.encode(token_ids)
        encoded, self._encoded = self._encoded, None
        assert encoded is not None
        return encoded

    def knows(self, token_ids: Sequence[int]) -> bool:
        """Return True if the ids stand for a picture that can be read."""
        return _hash(token_ids) in self._known

    def placed(
        self, shift: int, picture: EncodedPicture | None = None
    ) -> AbstractContextManager[None]:
        """Return a context in which a pass is built that follows pictures, or that reads one.

        Args:
            shift: the shift of positions by the pictures before the pass.
            picture: the picture that the pass reads; None for text.
        """
        if self._context is None:
            if not shift and picture is None:
                return nullcontext()
            self._context = self._tower_type.adapt(self._model, self._config)
        return self._context(shift, picture)

    def release(self) -> None:
        """Return the memory of the tower. The next picture reads its weights again."""
        self._encoded = None
        if "_tower" in vars(self):
            self._tower.release()

    @property
    def opening(self) -> str:
        """Text that stands before each picture, beside that of the template."""
        return self._tower.opening

    @property
    def closing(self) -> str:
        """Text that stands behind each picture."""
        return self._tower.closing

    @cached_property
    def _tower(self) -> Tower:
        return self._tower_type(self._folder, self._config, self._tokens)


def _hash(token_ids: Sequence[int]) -> bytes:
    return hashlib.sha256(array("I", token_ids).tobytes()).digest()
