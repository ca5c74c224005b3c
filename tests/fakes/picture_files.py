"""Generated pictures for tests, with metadata of every kind, and damaged ones."""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from PIL import Image, ImageCms, PngImagePlugin

# Words that stand in the metadata of the pictures and must not be in a stored one.
SECRETS = (b"SecretCamera", b"SecretPlace", b"SecretWords", b"SecretTail", b"SecretPreview")


def scene(width: int = 64, height: int = 48, mode: str = "RGB", *, seed: int = 1) -> Image.Image:
    """Return a picture whose four corners differ, with some noise."""
    image = Image.new("RGB", (width, height), (200, 40, 40))
    image.paste((40, 180, 60), (width // 2, 0, width, height // 2))
    image.paste((30, 60, 220), (0, height // 2, width // 2, height))
    image.paste((90, 90, 90), (width // 2, height // 2, width, height))
    chance = random.Random(seed)
    for _ in range(50):
        at = chance.randrange(width), chance.randrange(height)
        image.putpixel(at, tuple(chance.randrange(256) for _ in range(3)))
    return image.convert(mode)


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def exif(orientation: int = 1) -> bytes:
    """Return an EXIF part with a camera, a place and an orientation."""
    tags = Image.Exif()
    tags[0x010F] = "SecretCamera"
    tags[0x0112] = orientation
    tags.get_ifd(0x8825)[29] = "SecretPlace"
    return tags.tobytes()


@cache  # a profile has the time at which it was made
def swapped_profile() -> bytes:
    """Return a colour profile in which red and green are exchanged, so that its use can be seen."""
    made = ImageCms.createProfile("sRGB")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    profile = bytearray(ImageCms.ImageCmsProfile(made).tobytes())  # pyright: ignore[reportUnknownArgumentType]
    (number,) = struct.unpack_from(">I", profile, 128)
    for index in range(number):
        at = 132 + 12 * index
        name = bytes(profile[at : at + 4])
        if name in (b"rXYZ", b"gXYZ"):
            profile[at : at + 4] = b"gXYZ" if name == b"rXYZ" else b"rXYZ"
    return bytes(profile)


def with_metadata(kind: str, orientation: int = 1, **options: Any) -> bytes:
    """Return a picture with metadata in every place of its format, and bytes after its end."""
    xmp = b"<x:xmpmeta>SecretWords</x:xmpmeta>"
    if kind == "PNG":
        info = PngImagePlugin.PngInfo()
        info.add_text("Author", "SecretWords")
        info.add_itxt("XML:com.adobe.xmp", "SecretWords")
        data = saved(scene(), kind, exif=exif(orientation), pnginfo=info, **options)
        return data + b"SecretTail"
    if kind == "JPEG":
        data = saved(
            scene(), kind, quality=90, exif=exif(orientation), xmp=xmp, comment=b"SecretWords", **options
        )  # fmt: skip
        photoshop = _jpeg_segment(0xED, b"Photoshop 3.0\0SecretWords")
        pictures = _jpeg_segment(0xE2, b"MPF\0SecretPreview")
        preview = _jpeg_segment(0xE0, b"JFXX\0\x10SecretPreview")
        other = _jpeg_segment(0xE5, b"SecretWords")
        return data[:2] + photoshop + pictures + preview + other + data[2:] + b"SecretTail"
    if kind == "WEBP":
        data = saved(scene(), kind, exif=exif(orientation), xmp=xmp, **options)
        body = data[8:] + b"XTRA" + struct.pack("<I", 11) + b"SecretWords\0"
        return b"RIFF" + struct.pack("<I", len(body)) + body + b"SecretTail"
    if kind == "GIF":
        return saved(scene(mode="P"), kind, comment=b"SecretWords", **options) + b"SecretTail"
    if kind == "TIFF":
        tags = {270: "SecretWords", 271: "SecretCamera", 274: orientation}
        return saved(scene(), kind, tiffinfo=tags, **options) + b"SecretTail"
    return saved(scene(), kind, **options) + b"SecretTail"


def _jpeg_segment(marker: int, content: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(content) + 2) + content


def png_header(width: int, height: int) -> bytes:
    """Return a PNG file of a size, with the data of no pixel."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )  # fmt: skip


def mutated(number: int, *, seed: int = 7) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of damaged pictures: the same in every run."""
    profile = {"icc_profile": swapped_profile()}
    whole = [
        ("png", with_metadata("PNG", 6, **profile)),
        ("jpg", with_metadata("JPEG", 6, **profile)),
        ("jpg", saved(scene(300, 200), "JPEG", progressive=True)),
        ("jpg", saved(scene(mode="CMYK"), "JPEG")),
        ("webp", with_metadata("WEBP", 6, **profile)),
        ("webp", saved(scene(), "WEBP", lossless=True)),
        ("gif", with_metadata("GIF")),
        ("bmp", saved(scene(), "BMP")),
        ("tiff", with_metadata("TIFF", 6)),
        ("tiff", saved(scene(), "TIFF", compression="tiff_lzw")),
        ("tiff", saved(scene(mode="1"), "TIFF", compression="group4")),
        ("tiff", saved(scene(), "TIFF", compression="jpeg")),
        ("png", saved(scene(mode="P"), "PNG", transparency=0)),
        ("png", saved(Image.new("I;16", (40, 30), 40_000), "PNG")),
        ("gif", saved(scene(mode="P"), "GIF", save_all=True, append_images=[scene(mode="P", seed=2)])),
    ]  # fmt: skip
    for index in range(number):
        chance = random.Random(f"{seed} {index}")
        extension, data = whole[index % len(whole)]
        damaged = _damaged(bytearray(data), chance)
        yield f"{index}.{extension}", _with_checksums(damaged) if index % 2 else damaged


def _damaged(data: bytearray, chance: random.Random) -> bytes:
    """Return a file with changed bytes, a cut, or a length that lies."""
    way = chance.randrange(5)
    for _ in range(chance.choice((1, 1, 2, 8))):
        at = chance.randrange(8, len(data))
        if way == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif way == 1:
            at = chance.randrange(8, min(len(data), 200))
            data[at] = chance.randrange(256)
        elif way == 2:
            value = chance.choice((0, 1, 0x7FFFFFFF, 0xFFFFFFFF, 65_000, 30_000))
            at = chance.randrange(8, min(len(data) - 4, 200))
            struct.pack_into(chance.choice(("<I", ">I")), data, at, value)
        elif way == 3 and len(data) > 100:
            del data[at : at + chance.randrange(1, 40)]
        elif way == 4 and len(data) > 100:
            del data[chance.randrange(60, len(data)) :]
    return bytes(data)


def _with_checksums(data: bytes) -> bytes:
    """Return a PNG file with the checksums that its damaged chunks need. Other files do not change."""
    fixed = bytearray(data)
    position = 8
    while data.startswith(b"\x89PNG") and position + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, position)
        end = position + 8 + length
        if end + 4 > len(data):
            break
        struct.pack_into(">I", fixed, end, zlib.crc32(data[position + 4 : end]))
        position = end + 4
    return bytes(fixed)
