"""The division of large pictures into tiles, as LFM2-VL's image processor does it. No mlx.

A picture that is too large for one pass of the tower is scaled and divided into square tiles. The
whole picture in a small size follows them. The sizes are those of transformers
(image_processing_lfm2_vl.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from engine.catalog.model_config import Settings
from engine.errors import PictureError
from engine.vision.image_settings import image_processor_settings, processor_settings

# The values of transformers, where the settings have none
_SIZES: Final[Mapping[str, int]] = {
    "downsample_factor": 2,
    "encoder_patch_size": 16,
    "tile_size": 512,
    "min_image_tokens": 64,
    "max_image_tokens": 256,
    "min_tiles": 2,
    "max_tiles": 10,
}
_TOLERANCE: Final = 2.0
# Bounds of what a folder may ask for. Published models have 10 tiles of 512 x 512 pixels, which are
# 1,024 patches.
_MAX_TILES: Final = 64
_MAX_PATCHES: Final = 1 << 14  # in one pass of the tower, whose attention is quadratic
_MAX_PIXELS: Final = 1 << 24  # of all tiles


@dataclass(frozen=True, slots=True)
class TileLayout:
    """The division of a picture."""

    rows: int  # of tiles; 1 if the picture is not divided
    columns: int
    whole: tuple[int, int]  # rows and columns of tokens of the whole picture in one pass

    @property
    def is_divided(self) -> bool:
        return self.rows * self.columns > 1


@dataclass(frozen=True, slots=True)
class PictureView:
    """A tile of a picture, or the whole picture in one pass."""

    marker: str  # text of the control token before its tokens; "" if there is none
    rows: int  # of tokens
    columns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TileSettings:
    """The settings of an image processor that decide on tiles."""

    patch_side: int  # pixels
    side: int  # pixels of a token
    tile_side: int  # pixels
    min_tokens: int  # of the whole picture in one pass
    max_tokens: int
    min_tiles: int  # both are 1 if no picture is divided
    max_tiles: int
    tolerance: float  # a picture is divided if it has more pixels than max_tokens times this
    has_whole: bool  # True if the whole picture follows its tiles
    has_markers: bool  # True if control tokens stand around a picture and before each view

    @classmethod
    def read(cls, folder: Path, config: Mapping[str, Any]) -> TileSettings:
        """Read the settings of a model folder.

        config: its config.json.

        Raises:
            PictureError: they are missing, contradict config.json, or exceed a limit.
        """
        found = image_processor_settings(folder)
        if not found:
            raise PictureError.of_folder("no")
        sizes = _sizes(found)
        patch_side, factor = sizes["encoder_patch_size"], sizes["downsample_factor"]
        is_divided = found.get("do_image_splitting") is not False
        tolerance = found.get("max_pixels_tolerance", _TOLERANCE)
        settings = cls(
            patch_side=patch_side,
            side=patch_side * factor,
            tile_side=sizes["tile_size"],
            min_tokens=sizes["min_image_tokens"],
            max_tokens=sizes["max_image_tokens"],
            min_tiles=sizes["min_tiles"] if is_divided else 1,
            max_tiles=sizes["max_tiles"] if is_divided else 1,
            tolerance=tolerance if isinstance(tolerance, (int, float)) else _TOLERANCE,
            has_whole=found.get("use_thumbnail") is not False,
            has_markers=processor_settings(folder).get("use_image_special_tokens") is not False,
        )
        of_model = config["vision_config"]["patch_size"], config.get("downsample_factor", 2)
        if (patch_side, factor) != of_model or not settings.is_possible:
            raise PictureError.of_folder("wrong")
        return settings

    @property
    def is_possible(self) -> bool:
        """True if the settings are not contradictory, and do not exceed a limit."""
        is_divided = (self.min_tiles, self.max_tiles) != (1, 1)
        return (
            self.min_tokens <= self.max_tokens
            and self.max_tokens * self.side**2 <= _MAX_PIXELS
            and (not is_divided or 1 < self.min_tiles <= self.max_tiles <= _MAX_TILES)
            and self.max_tiles * self.tile_side**2 <= _MAX_PIXELS
            and not self.tile_side % self.side
            and self.max_view_tokens * (self.side // self.patch_side) ** 2 <= _MAX_PATCHES
        )

    @property
    def form(self) -> dict[str, object]:
        """All settings, for the identity of pictures."""
        return asdict(self)

    @property
    def max_view_tokens(self) -> int:
        """Highest number of tokens of one view."""
        per_side = self.tile_side // self.side if self.max_tiles > 1 else 0
        return max(self.max_tokens, per_side**2)

    @property
    def markers(self) -> set[str]:
        """The texts of all control tokens that may stand in a picture."""
        if not self.has_markers:
            return set()
        layouts = (TileLayout(*grid, (1, 1)) for grid in _grids(self.min_tiles, self.max_tiles))
        return {view.marker for layout in layouts for view in self.views(layout)} - {""}

    def layout(self, width: int, height: int) -> TileLayout:
        """Return the division of a picture of a size in pixels.

        Raises:
            PictureError: the picture is too narrow.
        """
        rows, columns = 1, 1
        if self.max_tiles > 1 and self._is_large(width, height):
            rows, columns = self._grid(width, height)
        layout = TileLayout(rows, columns, self._whole(width, height))
        if any(view.rows * view.columns > self.max_view_tokens for view in self.views(layout)):
            raise PictureError.of_narrow_picture(width, height)
        return layout

    def views(self, layout: TileLayout) -> Sequence[PictureView]:
        """Return what the tower reads of a picture, in the order of the tokens."""
        if not layout.is_divided:
            return (PictureView("", *layout.whole),)
        per_side = self.tile_side // self.side
        views = [
            PictureView(f"<|img_row_{row}_col_{column}|>", per_side, per_side)
            for row in range(1, layout.rows + 1)
            for column in range(1, layout.columns + 1)
        ]
        if self.has_whole:
            views.append(PictureView("<|img_thumbnail|>", *layout.whole))
        if not self.has_markers:
            return [PictureView("", view.rows, view.columns) for view in views]
        return views

    def _whole(self, width: int, height: int) -> tuple[int, int]:
        """Return the rows and columns of tokens of the whole picture in one pass."""
        rows, columns = (max(1, round(one / self.side)) for one in (height, width))
        max_pixels, min_pixels = (one * self.side**2 for one in (self.max_tokens, self.min_tokens))
        if rows * columns > self.max_tokens:
            shrink = math.sqrt(height * width / max_pixels)
            rows = max(1, math.floor(height / shrink / self.side))
            columns = max(1, math.floor(width / shrink / self.side))
        elif rows * columns < self.min_tokens:
            stretch = math.sqrt(min_pixels / (height * width))
            rows = math.ceil(height * stretch / self.side)
            columns = math.ceil(width * stretch / self.side)
        return rows, columns

    def _is_large(self, width: int, height: int) -> bool:
        sides = (
            max(self.patch_side, round(one / self.side) * self.side) for one in (width, height)
        )
        return math.prod(sides) > self.max_tokens * self.side**2 * self.tolerance

    def _grid(self, width: int, height: int) -> tuple[int, int]:
        """Return the rows and columns of tiles whose form is nearest to that of the picture."""
        best, smallest = (1, 1), math.inf
        for rows, columns in _grids(self.min_tiles, self.max_tiles):
            difference = abs(width / height - columns / rows)
            num_pixels = self.tile_side**2 * rows * columns
            if difference < smallest or (
                difference == smallest and width * height > 0.5 * num_pixels
            ):
                best, smallest = (rows, columns), difference
        return best


@cache
def _grids(min_tiles: int, max_tiles: int) -> Sequence[tuple[int, int]]:
    """Return the rows and columns of all grids, in the order of transformers.

    Of two grids that are equally near, the picture gets the later one if it is large enough. Grids
    with the same number of tiles have the order of a set of (columns, rows).
    """
    grids = {
        (columns, rows)
        for most in range(min_tiles, max_tiles + 1)
        for columns in range(1, most + 1)
        for rows in range(1, most + 1)
        if min_tiles <= columns * rows <= max_tiles
    }
    return [(rows, columns) for columns, rows in sorted(grids, key=math.prod)]


def _sizes(settings: Settings) -> dict[str, int]:
    """Return the values for the keys of _SIZES. Raise PictureError if one is no size."""
    sizes: dict[str, int] = {}
    for key, usual in _SIZES.items():
        value = settings.get(key)
        size = usual if value is None else value
        if not isinstance(size, int) or size < 1:
            raise PictureError.of_folder("wrong")
        sizes[key] = size
    return sizes
