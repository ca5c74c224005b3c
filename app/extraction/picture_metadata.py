"""Copies of PNG, JPEG and WebP files without metadata. The coded pixels are copied as they are.

Everything is dropped but the pixels, the colour profile, and the orientation, which gets a minimal
EXIF part of its own. So places, cameras, comments, previews, further pictures and bytes after the
end of the picture are gone.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

_PNG_HEAD = b"\x89PNG\r\n\x1a\n"
# Without acTL, fcTL and fdAT: only the first picture of an animation is kept.
_PNG_KEPT = frozenset(
    [b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"cHRM", b"gAMA", b"iCCP", b"sBIT", b"sRGB",
     b"cICP"]
)  # fmt: skip
_WEBP_KEPT = frozenset([b"VP8X", b"VP8 ", b"VP8L", b"ALPH", b"ICCP"])
_WEBP_EXIF, _WEBP_XMP, _WEBP_ANIMATED = 0x08, 0x04, 0x02  # flags of VP8X
_APP0, _APP2, _APP14 = 0xE0, 0xE2, 0xEE
_SCAN, _END = 0xDA, 0xD9
# Frames and tables. A decoder refuses the segments that are neither these nor parts for
# applications.
_JPEG_KEPT = frozenset((*range(0xC0, 0xD0), _SCAN, 0xDB, 0xDC, 0xDD))
_TAG_ORIENTATION, _SHORT = 0x0112, 3


class Stripped(NamedTuple):
    """A file without metadata."""

    content: bytes
    orientation: int  # as in EXIF, 1 to 8


class UnknownStructureError(ValueError):
    """The parts of a file are not as the format demands, or the file is animated."""


def without_metadata(kind: str, data: bytes) -> Stripped:
    """Return a picture file without metadata.

    Args:
        kind: "PNG", "JPEG" or "WEBP".
        data: the file.

    Raises:
        UnknownStructureError: the file cannot be copied part by part.
    """
    try:
        return _STRIP[kind](data)
    except (KeyError, IndexError, struct.error):
        raise UnknownStructureError(kind) from None


def orientation_of(exif: bytes) -> int:
    """Return the orientation in an EXIF part, 1 if it has none."""
    exif = exif.removeprefix(b"Exif\0\0")
    order = {b"II*\0": "<", b"MM\0*": ">"}.get(exif[:4])
    if order is None:
        return 1
    try:
        (start,) = struct.unpack_from(f"{order}I", exif, 4)
        (number,) = struct.unpack_from(f"{order}H", exif, start)
        for index in range(number):
            tag, kind, _, value = struct.unpack_from(f"{order}HHIH", exif, start + 2 + 12 * index)
            if tag == _TAG_ORIENTATION:
                return value if kind == _SHORT and 1 <= value <= 8 else 1
    except struct.error:
        pass
    return 1


def _exif_of(orientation: int) -> bytes:
    """Return an EXIF part that has an orientation only."""
    entry = struct.pack(">HHIHH", _TAG_ORIENTATION, _SHORT, 1, orientation, 0)
    return b"MM\0*" + struct.pack(">IH", 8, 1) + entry + bytes(4)


def _strip_png(data: bytes) -> Stripped:
    if not data.startswith(_PNG_HEAD):
        raise UnknownStructureError
    orientation = 1
    kept: list[bytes] = []
    end = b""
    for name, chunk in _png_chunks(data):
        if name == b"eXIf":
            orientation = orientation_of(chunk[8:-4])
        elif name == b"IEND":
            end = chunk
        elif name in _PNG_KEPT:
            kept.append(chunk)
    if orientation != 1:
        kept.insert(1, _png_chunk(b"eXIf", _exif_of(orientation)))  # after IHDR
    return Stripped(b"".join((_PNG_HEAD, *kept, end)), orientation)


def _png_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name and the bytes of each chunk, up to IEND."""
    position, name = len(_PNG_HEAD), b""
    while name != b"IEND":
        length, name = struct.unpack_from(">I4s", data, position)
        end = position + 12 + length
        if end > len(data):
            raise UnknownStructureError
        yield name, data[position:end]
        position = end


def _png_chunk(name: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(name + content)
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", checksum)


def _strip_webp(data: bytes) -> Stripped:
    (size,) = struct.unpack_from("<I", data, 4)
    end = min(8 + size, len(data))
    orientation = 1
    kept: list[tuple[bytes, bytes]] = []
    position = 12
    while position + 8 <= end:
        name, length = struct.unpack_from("<4sI", data, position)
        content = data[position + 8 : position + 8 + length]
        if position + 8 + length > end:
            raise UnknownStructureError
        if name == b"EXIF":
            orientation = orientation_of(content)
        elif name in _WEBP_KEPT:
            kept.append((name, content))
        position += 8 + length + length % 2
    if not kept:
        raise UnknownStructureError
    name, content = kept[0]
    if name == b"VP8X":
        flags = content[0]
        if flags & _WEBP_ANIMATED:
            raise UnknownStructureError
        flags &= ~(_WEBP_EXIF | _WEBP_XMP)
        if orientation != 1:
            flags |= _WEBP_EXIF
            kept.append((b"EXIF", _exif_of(orientation)))
        kept[0] = (name, bytes([flags]) + content[1:])
    else:
        orientation = 1  # a file in the simple format has no metadata
    body = b"WEBP" + b"".join(
        name + struct.pack("<I", len(content)) + content + bytes(len(content) % 2)
        for name, content in kept
    )
    return Stripped(b"RIFF" + struct.pack("<I", len(body)) + body, orientation)


def _strip_jpeg(data: bytes) -> Stripped:
    if not data.startswith(b"\xff\xd8"):
        raise UnknownStructureError
    kept: list[bytes] = []
    orientation, has_orientation = 1, False
    position = 2
    while True:
        position, marker = _next_marker(data, position)
        if marker == _END:
            break
        (length,) = struct.unpack_from(">H", data, position)
        content = data[position + 2 : position + length]
        if length < 2 or position + length > len(data):
            raise UnknownStructureError
        if content.startswith(b"Exif\0\0") and not has_orientation:
            orientation, has_orientation = orientation_of(content), True
        content = _kept_of_segment(marker, content)
        position += length
        if content is not None:
            kept.append(struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content)
        if marker == _SCAN:
            end = _end_of_scan(data, position)
            kept.append(data[position:end])
            position = end
    if orientation != 1:
        exif = b"Exif\0\0" + _exif_of(orientation)
        has_jfif = bool(kept) and kept[0].startswith(b"\xff\xe0")
        kept.insert(has_jfif, struct.pack(">BBH", 0xFF, 0xE1, len(exif) + 2) + exif)
    return Stripped(b"".join((b"\xff\xd8", *kept, b"\xff\xd9")), orientation)


def _next_marker(data: bytes, position: int) -> tuple[int, int]:
    """Return the position behind the marker at a position, and the marker."""
    if data[position] != 0xFF:
        raise UnknownStructureError
    while data[position] == 0xFF:  # a marker may have several of these bytes
        position += 1
    marker = data[position]
    if marker in (0x00, 0x01) or 0xD0 <= marker <= 0xD8:
        raise UnknownStructureError
    return position + 1, marker


def _kept_of_segment(marker: int, content: bytes) -> bytes | None:
    """Return what is kept of a segment, or None."""
    if marker in _JPEG_KEPT:
        return content
    if marker == _APP0 and content.startswith(b"JFIF\0") and len(content) >= 14:
        return content[:12] + b"\0\0"  # without its preview
    if marker == _APP2 and content.startswith(b"ICC_PROFILE\0"):
        return content
    if marker == _APP14 and content.startswith(b"Adobe"):
        return content[:12]
    return None


def _end_of_scan(data: bytes, position: int) -> int:
    """Return the position of the marker after the coded pixels of a scan."""
    while (position := data.find(b"\xff", position)) >= 0:
        following = data[position + 1]
        if following == 0xFF:
            position += 1
        elif following and not 0xD0 <= following <= 0xD7:
            return position
        else:
            position += 2
    raise UnknownStructureError


_STRIP: Final[dict[str, Callable[[bytes], Stripped]]] = {
    "PNG": _strip_png,
    "JPEG": _strip_jpeg,
    "WEBP": _strip_webp,
}
