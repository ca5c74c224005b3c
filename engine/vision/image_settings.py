"""Settings by which a model's image processor scales pixels: preprocessor_config.json. No mlx."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

import numpy as np
from PIL import Image

from engine.catalog.model_config import Settings, as_settings, read_settings
from engine.errors import ModelFolderError

Triple = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class ImageSettings:
    """The values of an image processor."""

    resample: int  # PIL's number of the filter
    factor: float  # by which values from 0 to 255 are multiplied
    mean: Triple  # of the red, green and blue values that follow
    std: Triple
    longest: int = 0  # highest number of pixels of a side; 0 if it is not limited
    max_tokens: int = 0  # highest number of tokens of a picture; 0 if it is not set
    max_tiles: int = 0  # highest number of tiles of a picture; 0 if it is not set

    @classmethod
    def read(
        cls,
        folder: Path,
        resample: Image.Resampling,
        mean: Triple = (0.5, 0.5, 0.5),
        std: Triple = (0.5, 0.5, 0.5),
    ) -> ImageSettings:
        """Read the settings of a model folder. The other arguments hold where it has none."""
        settings = image_processor_settings(folder)
        size = as_settings(settings.get("size"))
        kind, factor = settings.get("resample"), settings.get("rescale_factor")
        longest, max_tokens = size.get("longest_edge"), settings.get("max_soft_tokens")
        max_tiles = settings.get("max_patches")
        if settings.get("do_normalize") is False:
            settings = {**settings, "image_mean": [0.0] * 3, "image_std": [1.0] * 3}
        return cls(
            resample=kind if isinstance(kind, int) and kind in set(Image.Resampling) else resample,
            factor=factor if isinstance(factor, float) else 1 / 255,
            mean=_triple(settings.get("image_mean")) or mean,
            std=_triple(settings.get("image_std")) or std,
            longest=longest if isinstance(longest, int) else 0,
            max_tokens=max_tokens if isinstance(max_tokens, int) else 0,
            max_tiles=max(0, max_tiles) if isinstance(max_tiles, int) else 0,
        )

    @property
    def form(self) -> str:
        """The settings as text."""
        return json.dumps(asdict(self), sort_keys=True)

    def of_black(self) -> np.ndarray:
        """Return the values of a black pixel, of shape (3,)."""
        return -np.array(self.mean, np.float32) / np.array(self.std, np.float32)

    def scaled(self, pixels: np.ndarray, width: int, height: int) -> np.ndarray:
        """Return a picture in another size, with scaled values. Any thread.

        Args:
            pixels: RGB values from 0 to 255, of shape (3, height, width).
            width: pixels of the result.
            height: pixels of the result.

        Returns:
            float32 of shape (height, width, 3).
        """
        image = Image.fromarray(np.ascontiguousarray(pixels.transpose(1, 2, 0)))
        resized = image.resize((width, height), Image.Resampling(self.resample))
        values = np.asarray(resized).astype(np.float32) * np.float32(self.factor)
        return (values - np.array(self.mean, np.float32)) / np.array(self.std, np.float32)


def image_processor_settings(folder: Path) -> Settings:
    """Return the settings of a folder's image processor, or an empty object.

    processor_config.json, which is newer, comes before preprocessor_config.json.
    """
    own = as_settings(processor_settings(folder).get("image_processor"))
    return own or _read(folder / "preprocessor_config.json")


def processor_settings(folder: Path) -> Settings:
    """Return the content of processor_config.json, or an empty object."""
    return _read(folder / "processor_config.json")


def _read(path: Path) -> Settings:
    try:
        return read_settings(path)
    except ModelFolderError:
        return {}


def _triple(value: object) -> Triple | None:
    items = cast("list[object]", value) if isinstance(value, list) else []
    numbers = [float(one) for one in items if isinstance(one, (int, float))]
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None
