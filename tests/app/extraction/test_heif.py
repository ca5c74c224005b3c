"""HEIC pictures are converted by a program of macOS. Elsewhere another program stands in for it."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.extraction.extractor import Extractor
from app.extraction.heif import SIPS, HeifConverter
from app.extraction.refusal import Refused, RefusedFileError
from app.settings import PictureSize
from tests.fakes.picture_files import SECRETS, saved, scene, with_metadata

HEIC = b"\0\0\0\x20ftypheic\0\0\0\0 the rest of the file"
SIZE = "photo.heic\n  pixelWidth: {}\n  pixelHeight: {}\n"

MakeProgram = Callable[[str], Path]


@pytest.fixture
def make_program(tmp_path: Path) -> MakeProgram:
    """Return a function that writes a program, whose arguments are `arguments`."""

    def make(source: str) -> Path:
        path = tmp_path / "sips"
        path.write_text(
            f"#!{sys.executable}\nimport os, sys, time\narguments = sys.argv[1:]\n{source}"
        )
        path.chmod(0o755)
        return path

    return make


@pytest.fixture
def photo(tmp_path: Path) -> Path:
    path = tmp_path / "photo.heic"
    path.write_bytes(HEIC)
    return path


def converter(make_program: MakeProgram, tmp_path: Path, jpeg: bytes, size: str) -> HeifConverter:
    """Return a converter whose program tells a size, and copies a JPEG file that was made before."""
    (tmp_path / "made.jpg").write_bytes(jpeg)
    return HeifConverter(
        make_program(
            f"assert open('photo.heic', 'rb').read() == {HEIC!r}\n"
            "assert not set(os.environ) - {'LC_CTYPE', '__CF_USER_TEXT_ENCODING'}, os.environ\n"
            "if '-g' in arguments:\n"
            f"    print({size!r})\n"
            "else:\n"
            f"    made = open({str(tmp_path / 'made.jpg')!r}, 'rb').read()\n"
            "    open(arguments[arguments.index('--out') + 1], 'wb').write(made)\n"
        )
    )


@pytest.fixture
def closed() -> Iterator[list[Extractor]]:
    opened: list[Extractor] = []
    yield opened
    for extractor in opened:
        extractor.close()


def test_photo_becomes_an_upright_picture_without_its_metadata(
    make_program: MakeProgram, tmp_path: Path, photo: Path, closed: list[Extractor]
) -> None:
    jpeg = with_metadata("JPEG", 6)
    extractor = Extractor(heif=converter(make_program, tmp_path, jpeg, SIZE.format(64, 48)))
    closed.append(extractor)

    read = extractor.read(photo)

    assert read.attachment.picture is not None
    assert read.attachment.name == "photo.heic"
    assert read.attachment.source == str(photo)
    assert read.content is not None
    assert not any(secret in read.content.original for secret in SECRETS)
    assert read.attachment.picture.extension == "jpg"
    pasted = extractor.decode("pasted", HEIC, PictureSize.MEDIUM)
    assert pasted.attachment.picture == read.attachment.picture


@pytest.mark.parametrize(
    ("told", "jpeg", "why"),
    [
        (SIZE.format(20_000, 20_000), b"", Refused.PICTURE_TOO_LARGE),
        ("Error: cannot open the file", b"", Refused.HEIF),
        (SIZE.format(64, 48), b"no picture", Refused.IMAGE),
    ],
)
def test_program_that_tells_or_writes_something_else_is_a_refusal(
    make_program: MakeProgram,
    tmp_path: Path,
    photo: Path,
    closed: list[Extractor],
    told: str,
    jpeg: bytes,
    why: Refused,
) -> None:
    extractor = Extractor(heif=converter(make_program, tmp_path, jpeg, told))
    closed.append(extractor)
    with pytest.raises(RefusedFileError) as refused:
        extractor.read(photo)
    assert refused.value.why is why


def test_program_that_writes_no_file_is_a_refusal(make_program: MakeProgram) -> None:
    program = make_program(f"print({SIZE.format(64, 48)!r})")
    with pytest.raises(RefusedFileError) as refused:
        HeifConverter(program).jpeg(HEIC)
    assert refused.value.why is Refused.HEIF


def test_picture_without_the_program_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RefusedFileError) as refused:
        HeifConverter(tmp_path / "none").jpeg(HEIC)
    assert refused.value.why is Refused.HEIF


def test_program_without_end_is_ended(make_program: MakeProgram) -> None:
    program = make_program("time.sleep(600)")
    with pytest.raises(RefusedFileError) as refused:
        HeifConverter(program, wait_s=0.2).jpeg(HEIC)
    assert refused.value.why is Refused.PICTURE_TOO_COMPLEX


def test_closed_extractor_ends_the_program(make_program: MakeProgram, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    program = make_program(f"open({str(begun)!r}, 'w').close()\ntime.sleep(600)")
    found: list[Refused] = []
    extractor = Extractor(heif=HeifConverter(program))

    def decode() -> None:
        try:
            extractor.decode("photo", HEIC, PictureSize.SMALL)
        except RefusedFileError as refusal:
            found.append(refusal.why)

    thread = threading.Thread(target=decode)
    thread.start()
    while not begun.exists():
        assert thread.is_alive()
    extractor.close()
    thread.join()
    assert found == [Refused.STOPPED]


@pytest.mark.skipif(not SIPS.is_file(), reason="needs sips, a program of macOS")
def test_photo_of_this_mac_is_read(tmp_path: Path) -> None:
    png, heic = tmp_path / "scene.png", tmp_path / "scene.heic"
    png.write_bytes(saved(scene(320, 200), "PNG"))
    subprocess.run([SIPS, "-s", "format", "heic", png, "--out", heic], check=True)
    with closing(Extractor()) as extractor:
        picture = extractor.read(heic).attachment.picture
    assert picture is not None
    assert (picture.width, picture.height) == (320, 200)
