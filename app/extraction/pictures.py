"""Pictures: a copy without metadata, the version of it that a model gets, and a thumbnail.

The extraction process decodes pictures with Pillow. The user's file is first copied without
metadata, or written as PNG, and only this copy is decoded. So the same version is made of the
stored copy at any later time.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator
from typing import Final

from PIL import Image, ImageCms, ImageOps, TiffImagePlugin

from app.conversation.attachments import MAX_PICTURE_BYTES, MAX_PIXELS, size_for, view_size
from app.extraction.picture_metadata import UnknownStructureError, orientation_of, without_metadata
from app.extraction.refusal import Refused, RefusedFileError
from app.settings import PictureSize
from engine.types import picture_digest
from engine.worker.frames import Frame

MAX_SIDE = 30_000
THUMBNAIL_SIDE = 640
_NUM_STEPS = 3
_STRIP_PIXELS = 2_000_000  # of a strip that is converted at once
_GAP = 2.0  # a picture is first made smaller by averages, to at least this many times the view
# Level 6 took three times as long as level 3 for a view of 6 million pixels, and its file was no
# smaller.
_COMPRESSION = 3
_EXTENSIONS = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp"}
_PNG_MODES = frozenset({"1", "L", "LA", "P", "RGB", "RGBA", "I;16"})
_WIDE_MODES = frozenset({"I;16", "I;16B", "I;16L", "I;16N"})
_TURNS: Final = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_TAG_SUBFILE, _TAG_DNG = 254, 50706
_REDUCED = 1  # flag of _TAG_SUBFILE: a preview of another picture in the file

# Pillow warns of a larger picture, and refuses one of twice as many pixels.
Image.MAX_IMAGE_PIXELS = MAX_PIXELS // 2
warnings.simplefilter("ignore", Image.DecompressionBombWarning)


def picture_steps(data: bytes, size: PictureSize) -> Iterator[Frame]:
    """Decode the file of a picture that the user attaches. Yield the progress, then the result.

    Args:
        data: content of the file, at most MAX_PICTURE_BYTES.
        size: size of the view. A picture that is no larger gets the full size.
    """
    yield from _guarded(data, size, is_stored=False)


def view_steps(data: bytes, size: PictureSize) -> Iterator[Frame]:
    """Make another view of the file of a stored picture. Yield the progress, then the result."""
    yield from _guarded(data, size, is_stored=True)


def _guarded(data: bytes, size: PictureSize, *, is_stored: bool) -> Iterator[Frame]:
    yield Frame({"done": 0, "total": _NUM_STEPS, "is_picture": True})
    try:
        yield from _steps(data, _kind(data), size, is_stored=is_stored)
    except RefusedFileError:
        raise
    except Image.DecompressionBombError:
        raise RefusedFileError(Refused.PICTURE_TOO_LARGE) from None
    except (MemoryError, RecursionError):
        raise RefusedFileError(Refused.PICTURE_TOO_COMPLEX) from None
    except Exception:  # noqa: BLE001 - Pillow raises errors of every kind for damaged files
        raise RefusedFileError(Refused.DAMAGED) from None


def _kind(data: bytes) -> str:
    """Return Pillow's name of the format of a file, by its first bytes."""
    return next((kind for start, kind in _STARTS.items() if data.startswith(start)), "WEBP")


def _steps(data: bytes, kind: str, size: PictureSize, *, is_stored: bool) -> Iterator[Frame]:
    _check_bounds(_opened(data, kind))
    try:
        original, orientation = without_metadata(kind, data)
    except UnknownStructureError:
        original, orientation, kind = _as_png(data, kind), 1, "PNG"
    if len(original) > MAX_PICTURE_BYTES:
        raise RefusedFileError(Refused.PICTURE_TOO_LARGE)
    yield Frame({"done": 1, "total": _NUM_STEPS})
    image = _opened(original, kind)
    _check_bounds(image)
    width, height = image.size
    if orientation >= 5:
        width, height = height, width
    if not is_stored:
        size = size_for(width, height, size)
    view = _view(image, orientation, view_size(width, height, size))
    yield Frame({"done": 2, "total": _NUM_STEPS})
    png = _png_of(view)
    thumbnail = b"" if is_stored else _thumbnail(view)
    original = b"" if is_stored else original
    header = {
        "picture": {
            "extension": _EXTENSIONS[kind],
            "width": width,
            "height": height,
            "size": size.value,
            "view": {
                "digest": picture_digest(view.width, view.height, view.tobytes()),
                "width": view.width,
                "height": view.height,
            },
        },
        "lengths": [len(original), len(png), len(thumbnail)],
    }
    yield Frame(header, original + png + thumbnail)


def _opened(data: bytes, kind: str) -> Image.Image:
    return Image.open(io.BytesIO(data), formats=[kind])


def _check_bounds(image: Image.Image) -> None:
    width, height = image.size
    if max(width, height) > MAX_SIDE or width * height > MAX_PIXELS:
        raise RefusedFileError(Refused.PICTURE_TOO_LARGE)


def _as_png(data: bytes, kind: str) -> bytes:
    """Return the first picture of a file as upright PNG. Pixels in a form of PNG are unchanged."""
    image = _opened(data, kind)
    if isinstance(image, TiffImagePlugin.TiffImageFile):
        _check_pages(image)
        orientation = 1  # Pillow turns pictures of this format itself
    else:
        orientation = orientation_of(image.info.get("exif", b""))
    image.load()
    _check_bounds(image)
    profile = image.info.get("icc_profile")
    if image.mode not in _PNG_MODES:
        image = _srgb(_smaller(image, 1), profile)
        profile = None
    image = _turned(image, orientation)
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=_COMPRESSION, icc_profile=profile)
    # Pillow may add some of the file's metadata.
    return without_metadata("PNG", file.getvalue()).content


def _check_pages(image: TiffImagePlugin.TiffImageFile) -> None:
    """Refuse a raw photo, whose first picture is a preview, and a file with several pages."""
    tags = image.tag_v2
    if _TAG_DNG in tags or _is_preview(image):
        raise RefusedFileError(Refused.IMAGE)
    try:
        image.seek(1)
    except EOFError:
        return
    if not _is_preview(image):
        raise RefusedFileError(Refused.PICTURE_PAGES)
    image.seek(0)


def _is_preview(image: TiffImagePlugin.TiffImageFile) -> bool:
    flags = image.tag_v2.get(_TAG_SUBFILE, 0)
    return isinstance(flags, int) and bool(flags & _REDUCED)


def _view(image: Image.Image, orientation: int, size: tuple[int, int]) -> Image.Image:
    """Return a picture upright, in sRGB and without transparency."""
    width, height = size if orientation < 5 else size[::-1]
    # JPEG can be decoded at a half, a quarter or an eighth of its size.
    image.draft(None, (math.ceil(width * _GAP), math.ceil(height * _GAP)))
    image.load()
    profile = image.info.get("icc_profile")
    factor = max(1, int(min(image.width / width, image.height / height) / _GAP))
    small = _turned(_smaller(image, factor), orientation)
    if small.size != size:
        small = small.resize(size, Image.Resampling.LANCZOS)
    return _srgb(small, profile)


def _smaller(image: Image.Image, factor: int) -> Image.Image:
    """Return a picture in mode L, RGB or CMYK, each pixel the mean of factor x factor pixels.

    It is converted in strips, because a second copy of a large picture would take too much memory.
    """
    width, height = image.size
    rows = max(1, _STRIP_PIXELS // width // factor) * factor
    found: Image.Image | None = None
    for top in range(0, height, rows):
        strip = _opaque(image.crop((0, top, width, min(top + rows, height))))
        if factor > 1:
            strip = strip.reduce(factor)
        if found is None:
            found = Image.new(strip.mode, (strip.width, math.ceil(height / factor)))
        found.paste(strip, (0, top // factor))
    assert found is not None
    return found


def _opaque(image: Image.Image) -> Image.Image:
    """Return a picture in the mode L, RGB or CMYK. Transparent pixels become white."""
    if image.mode in _WIDE_MODES:
        return image.convert("I").point(lambda value: value * (1 / 256) + 0).convert("L")
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGB", image.size, "white")
        white.paste(image, mask=image.getchannel("A"))
        return white
    if image.mode in ("L", "RGB", "CMYK"):
        return image
    if image.mode == "1":
        return image.convert("L")
    if image.mode in ("P", "YCbCr", "RGBX"):
        return image.convert("RGB")
    raise RefusedFileError(Refused.IMAGE)


def _turned(image: Image.Image, orientation: int) -> Image.Image:
    turn = _TURNS.get(orientation)
    return image if turn is None else image.transpose(turn)


def _srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Return a picture as RGB with the colours of sRGB. A profile that does not fit is ignored."""
    if profile:
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            target = ImageCms.createProfile("sRGB")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
            converted = ImageCms.profileToProfile(image, source, target, outputMode="RGB")  # pyright: ignore[reportUnknownArgumentType]
        except (ImageCms.PyCMSError, OSError, TypeError, ValueError):
            pass
        else:
            assert converted is not None
            return converted
    return image.convert("RGB")


def _thumbnail(view: Image.Image) -> bytes:
    side = max(view.size)
    if side > THUMBNAIL_SIDE:
        view = ImageOps.contain(view, (THUMBNAIL_SIDE, THUMBNAIL_SIDE), Image.Resampling.LANCZOS)
    return _png_of(view)


def _png_of(image: Image.Image) -> bytes:
    """Return a PNG file with the pixels only."""
    bare = Image.frombytes("RGB", image.size, image.tobytes())
    file = io.BytesIO()
    bare.save(file, "PNG", compress_level=_COMPRESSION)
    return file.getvalue()


_STARTS: Final = {
    b"\x89PNG\r\n\x1a\n": "PNG",
    b"\xff\xd8\xff": "JPEG",
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"BM": "BMP",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
}
