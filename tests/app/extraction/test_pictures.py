"""Pictures: every kind of file, metadata, orientation, colours, sizes, and files that are refused."""

from __future__ import annotations

import io
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageOps

from app.conversation.attachments import PICTURE_AREAS
from app.extraction.extractor import Extracted, Extractor
from app.extraction.pictures import THUMBNAIL_SIDE
from app.extraction.refusal import Refused, RefusedFileError
from app.settings import PictureSize
from app.words import attachments as words
from engine.types import picture_digest
from tests.fakes import picture_files as pictures
from tests.fakes.picture_files import SECRETS, saved, scene, with_metadata
from tests.fakes.tables import rest_in_soak


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    extractor = Extractor()
    yield extractor
    extractor.close()


def read(
    extractor: Extractor, path: Path, data: bytes, size: PictureSize = PictureSize.MEDIUM
) -> Extracted:
    path.write_bytes(data)
    return extractor.read(path, size=size)


def why(extractor: Extractor, path: Path, data: bytes) -> Refused:
    path.write_bytes(data)
    with pytest.raises(RefusedFileError) as refused:
        extractor.read(path)
    return refused.value.why


def view_of(result: Extracted) -> Image.Image:
    """Return the view of a picture, after a check of its file."""
    assert result.content is not None
    assert result.attachment.picture is not None
    view = result.attachment.picture.view
    image = Image.open(io.BytesIO(result.content.view))
    image.load()
    assert (image.format, image.mode, image.size) == ("PNG", "RGB", (view.width, view.height))
    assert view.digest == picture_digest(*image.size, image.tobytes())
    assert result.attachment.digest == view.digest
    return image


def original_of(result: Extracted) -> Image.Image:
    assert result.content is not None
    image = Image.open(io.BytesIO(result.content.original))
    image.load()
    return image


def difference(one: Image.Image, other: Image.Image) -> int:
    """Return the largest difference of a channel of two pictures."""
    assert one.size == other.size
    return max(ImageChops.difference(one.convert("RGB"), other.convert("RGB")).tobytes())


@pytest.mark.filterwarnings("ignore:Image appears to be a malformed MPO file")
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_stored_picture_has_no_metadata_and_the_same_pixels(
    extractor: Extractor, tmp_path: Path, kind: str
) -> None:
    data = with_metadata(kind)
    result = read(extractor, tmp_path / "a.png", data)  # the bytes decide, not the name

    assert result.content is not None
    assert any(secret in data for secret in SECRETS)
    assert not any(secret in part for secret in SECRETS for part in _files(result))
    stored, given = original_of(result), Image.open(io.BytesIO(data))
    given.load()
    assert (stored.mode, stored.size, stored.tobytes()) == (given.mode, given.size, given.tobytes())
    assert not stored.getexif()
    assert difference(view_of(result), given) == 0
    attachment = result.attachment
    assert (attachment.kind, attachment.text, attachment.name) == ("picture", "", "a.png")
    assert attachment.picture is not None
    assert attachment.picture.size is PictureSize.FULL
    extension = {"JPEG": "jpg", "WEBP": "webp"}.get(kind, "png")
    assert attachment.picture.extension == extension


def _files(result: Extracted) -> tuple[bytes, bytes, bytes]:
    assert result.content is not None
    return result.content.original, result.content.view, result.content.thumbnail


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF"])
def test_picture_is_upright_and_its_stored_copy_too(
    extractor: Extractor, tmp_path: Path, kind: str, orientation: int
) -> None:
    options = {} if kind in ("JPEG", "TIFF", "PNG") else {"lossless": True}
    result = read(extractor, tmp_path / "a", with_metadata(kind, orientation, **options))

    shown = ImageOps.exif_transpose(original_of(result))
    view = view_of(result)
    assert result.attachment.picture is not None
    size = result.attachment.picture.width, result.attachment.picture.height
    assert view.size == size == ((64, 48) if orientation < 5 else (48, 64))
    assert difference(view, shown) == 0
    first = {1: "r", 2: "g", 3: "x", 4: "b", 5: "r", 6: "b", 7: "x", 8: "g"}
    assert _corner(view, 3, 3) == first[orientation]


def _corner(image: Image.Image, left: int, top: int) -> str:
    """Return r, g or b for the strongest channel at a place, or x if none is."""
    box = image.crop((left, top, left + 9, top + 9)).resize((1, 1), Image.Resampling.BOX)
    pixel = box.getpixel((0, 0))
    assert isinstance(pixel, tuple)
    red, green, blue = (value > 130 for value in pixel)
    return {(1, 0, 0): "r", (0, 1, 0): "g", (0, 0, 1): "b"}.get((red, green, blue), "x")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF"])
def test_colours_of_a_profile_become_those_of_srgb(
    extractor: Extractor, tmp_path: Path, kind: str
) -> None:
    red = Image.new("RGB", (20, 20), (230, 20, 20))
    swapped = saved(red, kind, icc_profile=pictures.swapped_profile())
    result = read(extractor, tmp_path / "a", swapped)

    pixel = view_of(result).getpixel((5, 5))
    assert isinstance(pixel, tuple)
    assert pixel[1] > 200 > 60 > pixel[0]
    assert original_of(result).info["icc_profile"] == pictures.swapped_profile()


def test_profile_that_does_not_fit_is_ignored(extractor: Extractor, tmp_path: Path) -> None:
    for number, profile in enumerate((b"no profile" * 20, pictures.swapped_profile()[:300])):
        data = saved(scene(), "JPEG", icc_profile=profile)
        result = read(extractor, tmp_path / str(number), data)
        assert difference(view_of(result), Image.open(io.BytesIO(data))) == 0


def test_forms_of_pixels_become_rgb_on_white(extractor: Extractor, tmp_path: Path) -> None:
    clear = scene(mode="RGBA")
    clear.paste((0, 0, 0, 0), (0, 0, 10, 10))
    grey = Image.new("I;16", (30, 20), 0x8000)
    palette = Image.new("P", (30, 20), 1)
    palette.putpalette([0, 0, 0, 10, 200, 30])
    bit = Image.new("1", (30, 20), 1)
    ink = Image.new("CMYK", (30, 20), (255, 0, 0, 0))
    cases = {
        "RGBA": (saved(clear, "PNG"), (255, 255, 255)),
        "16 bit": (saved(grey, "PNG"), (128, 128, 128)),
        "palette": (saved(palette, "PNG"), (10, 200, 30)),
        "clear colour": (saved(palette, "GIF", transparency=1), (255, 255, 255)),
        "bits": (saved(bit, "PNG"), (255, 255, 255)),
        "CMYK": (saved(ink, "TIFF"), (0, 255, 255)),
        "grey and alpha": (saved(Image.new("LA", (30, 20), (0, 127)), "PNG"), (128, 128, 128)),
        "WebP": (saved(clear, "WEBP", lossless=True), (255, 255, 255)),
    }
    for name, (data, expected) in cases.items():
        assert view_of(read(extractor, tmp_path / "a", data)).getpixel((4, 4)) == expected, name


def test_adobe_picture_of_inks_is_not_inverted(extractor: Extractor, tmp_path: Path) -> None:
    data = saved(Image.new("CMYK", (32, 32), (0, 0, 0, 0)), "JPEG")

    result = read(extractor, tmp_path / "a", data)

    assert view_of(result).getpixel((4, 4)) == (255, 255, 255)
    assert b"Adobe" in _files(result)[0]


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP"])
def test_only_the_first_picture_of_an_animation_is_kept(
    extractor: Extractor, tmp_path: Path, kind: str
) -> None:
    first, second = Image.new("RGB", (20, 20), "red"), Image.new("RGB", (20, 20), "blue")
    options = {"lossless": True} if kind == "WEBP" else {}
    data = saved(first, kind, save_all=True, append_images=[second], duration=50, **options)

    result = read(extractor, tmp_path / "a", data)

    assert view_of(result).getpixel((5, 5)) == (255, 0, 0)
    assert getattr(original_of(result), "n_frames", 1) == 1


def test_large_picture_is_made_smaller_with_its_proportions(
    extractor: Extractor, tmp_path: Path
) -> None:
    image = scene(2600, 2000)
    for kind in ("PNG", "JPEG"):
        data = saved(image, kind)
        for size in PictureSize:
            result = read(extractor, tmp_path / "a", data, size)
            view, picture = view_of(result), result.attachment.picture
            assert picture is not None
            assert (picture.width, picture.height) == image.size
            assert picture.size is size
            area = min(PICTURE_AREAS[size], 2600 * 2000)
            assert 0.99 * area < view.width * view.height <= area
            assert view.width / view.height == pytest.approx(1.3, rel=0.01)
            # The same picture as by Pillow's own way from the whole picture.
            exact = image.resize(view.size, Image.Resampling.LANCZOS)
            box = (20, 20, view.width // 2 - 20, view.height // 2 - 20)
            mean = (part.crop(box).resize((1, 1), Image.Resampling.BOX) for part in (view, exact))
            assert difference(*mean) <= 2
            thumbnail = Image.open(io.BytesIO(_files(result)[2]))
            assert max(thumbnail.size) == min(THUMBNAIL_SIDE, max(view.size))


def test_view_of_a_stored_picture_is_the_same_as_when_it_was_attached(
    extractor: Extractor, tmp_path: Path
) -> None:
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "TIFF"):
        image = scene(1500, 1100, "P" if kind == "GIF" else "RGB")
        options = {"exif": pictures.exif(6)} if kind in ("PNG", "JPEG", "WEBP") else {}
        small = read(extractor, tmp_path / "a", saved(image, kind, **options), PictureSize.SMALL)
        assert small.attachment.picture is not None
        stored = tmp_path / "stored"
        stored.write_bytes(_files(small)[0])

        view, png = extractor.view(stored, PictureSize.SMALL)

        assert (view, png) == (small.attachment.picture.view, _files(small)[1]), kind


def test_picture_with_too_many_pixels_is_refused_by_its_header(
    extractor: Extractor, tmp_path: Path
) -> None:
    path = tmp_path / "a"
    webp = bytearray(saved(scene(), "WEBP", exif=pictures.exif()))
    webp[24:30] = b"\xff\x3f\0\xff\x3f\0"  # 16,384 x 16,384
    gif = bytearray(saved(scene(mode="P"), "GIF"))
    gif[6:10] = struct.pack("<HH", 60_000, 60_000)
    for data in (
        pictures.png_header(65_000, 65_000),
        pictures.png_header(10_001, 10_000),
        pictures.png_header(30_001, 1),
        bytes(webp),
        bytes(gif),
    ):
        assert why(extractor, path, data) is Refused.PICTURE_TOO_LARGE
    text = words.refused("a.png", Refused.PICTURE_TOO_LARGE)
    assert "50 MB, 100 million pixels and 30,000 pixels a side" in text


def test_picture_file_of_more_than_50_mb_is_refused(extractor: Extractor, tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(saved(scene(), "PNG"))
    with path.open("ab") as file:
        file.truncate((50 << 20) + 1)

    with pytest.raises(RefusedFileError) as refused:
        extractor.read(path)

    assert refused.value.why is Refused.PICTURE_TOO_LARGE


def test_other_kinds_of_pictures_are_refused(extractor: Extractor, tmp_path: Path) -> None:
    raw = saved(scene(), "TIFF", tiffinfo={50706: b"\1\4\0\0"})
    preview = saved(scene(), "TIFF", tiffinfo={254: 1})
    pages = saved(scene(), "TIFF", save_all=True, append_images=[scene(seed=2)])
    cases = {
        b"\0\0\0\x20ftypheic\0\0\0\0": Refused.HEIF,
        b"\0\0\0\x20ftypavif\0\0\0\0": Refused.HEIF,
        b"\0\0\1\0\1\0\x10\x10": Refused.IMAGE,
        saved(Image.new("F", (8, 8), 0.5), "TIFF"): Refused.IMAGE,
        raw: Refused.IMAGE,
        preview: Refused.IMAGE,
        pages: Refused.PICTURE_PAGES,
    }
    for data, expected in cases.items():
        assert why(extractor, tmp_path / "a", data) is expected
        assert words.refused("a", expected)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"])
def test_truncated_picture_is_refused_as_damaged(
    extractor: Extractor, tmp_path: Path, kind: str
) -> None:
    data = saved(scene(200, 100), kind)
    for share in (0.1, 0.5, 0.8):
        cut = data[: int(len(data) * share)]
        assert why(extractor, tmp_path / "a", cut) is Refused.DAMAGED, share


def test_picture_that_takes_too_long_is_refused_as_a_picture(tmp_path: Path) -> None:
    extractor = Extractor(step_s=0.1)
    rows = (b"\0" + bytes(6_000 * 3)) * 6_000
    header = pictures.png_header(6_000, 6_000)
    packed = zlib.compress(rows, 1)
    data = header.replace(
        struct.pack(">I", len(zlib.compress(b""))) + b"IDAT" + zlib.compress(b""),
        struct.pack(">I", len(packed)) + b"IDAT" + packed,
    )
    start = data.index(packed) + len(packed)
    data = data[:start] + struct.pack(">I", zlib.crc32(b"IDAT" + packed)) + data[start + 4 :]

    assert why(extractor, tmp_path / "a", data) is Refused.PICTURE_TOO_COMPLEX
    assert extractor.read(_written(tmp_path / "b.txt", b"text")).attachment.text == "text"
    extractor.close()


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("number", rest_in_soak([40, 500], 40))
def test_mutated_pictures_do_no_harm(extractor: Extractor, tmp_path: Path, number: int) -> None:
    outcomes: dict[str, int] = {}
    slowest = 0.0
    for name, data in pictures.mutated(number):
        path = _written(tmp_path / name, data)
        started = time.monotonic()
        try:
            result = extractor.read(path)
        except RefusedFileError as refusal:
            outcome = words.refused("", refusal.why)
        else:
            outcome = result.attachment.kind
            if result.content is not None:
                view_of(result)
        slowest = max(slowest, time.monotonic() - started)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        path.unlink()
    print(f"{outcomes}, slowest {slowest:.2f} s")
    assert sum(outcomes.values()) == number
    assert outcomes["picture"] > 0
    assert outcomes[words.refused("", Refused.DAMAGED)] > 0
    assert slowest <= 5.0
    assert extractor.read(_written(tmp_path / "b.txt", b"text")).attachment.text == "text"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.txt"]
