"""Tests of appbundle.udif, which writes and reads compressed disk images.

An image must be read back unchanged, damage must be reported, and the fields that macOS needs must
exist.
"""

from __future__ import annotations

import os
import plistlib
import struct
from io import BytesIO
from pathlib import Path

import pytest

from appbundle.udif import UdifError, read_udif, write_udif

MB = 1 << 20


def raw_volume() -> bytes:
    """Return a volume of noise (which cannot be compressed), zeros and text, in several chunks."""
    return os.urandom(MB + MB // 2) + bytes(2 * MB) + b"words, words. " * 512 * 9 + bytes(512)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    volume = raw_volume()
    write_udif(BytesIO(volume), len(volume), tmp_path / "image.dmg")
    (tmp_path / "raw").write_bytes(volume)
    return tmp_path / "image.dmg"


def trailer(image: Path) -> bytes:
    return image.read_bytes()[-512:]


def property_list(image: Path) -> bytes:
    at, length = struct.unpack(">QQ", trailer(image)[216:232])
    return image.read_bytes()[at : at + length]


def test_read_udif_gives_back_every_byte(image: Path, tmp_path: Path) -> None:
    read_udif(image, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == (tmp_path / "raw").read_bytes()
    assert image.stat().st_size < 1.7 * MB


def test_write_udif_reads_only_the_given_size(tmp_path: Path) -> None:
    volume = raw_volume()
    write_udif(BytesIO(volume), MB, tmp_path / "image.dmg")
    read_udif(tmp_path / "image.dmg", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == volume[:MB]


def test_same_volume_makes_the_same_image(image: Path, tmp_path: Path) -> None:
    with (tmp_path / "raw").open("rb") as volume:
        write_udif(volume, (tmp_path / "raw").stat().st_size, tmp_path / "again.dmg")
    assert (tmp_path / "again.dmg").read_bytes() == image.read_bytes()


def test_image_describes_one_volume_without_partition_map(image: Path, tmp_path: Path) -> None:
    """For an image without partition map, hdiutil requires these fields (found by experiments)."""
    end = trailer(image)
    assert end[:4] == b"koly"
    assert struct.unpack(">I", end[488:492]) == (2,)  # image variant 2: no partition map
    assert struct.unpack(">Q", end[492:500]) == ((tmp_path / "raw").stat().st_size // 512,)
    (block,) = plistlib.loads(property_list(image))["resource-fork"]["blkx"]
    table = block["Data"]
    assert block["Name"] == "whole disk (Apple_HFS : 0)"
    assert table[:4] == b"mish"
    buffer_sectors, descriptor = struct.unpack(">II", table[32:40])
    assert descriptor == 0xFFFFFFFE
    (runs,) = struct.unpack(">I", table[200:204])
    assert len(table) == 204 + 40 * runs
    kinds = {table[204 + 40 * i : 208 + 40 * i].hex() for i in range(runs)}
    assert kinds == {"80000005", "00000001", "ffffffff"}  # the three kinds of runs: zlib, raw, end
    assert buffer_sectors >= MB // 512


@pytest.mark.parametrize("where", ["data", "list", "trailer", "end"])
def test_damaged_image_is_refused(image: Path, tmp_path: Path, where: str) -> None:
    content = bytearray(image.read_bytes())
    match where:
        case "data":
            content[MB] ^= 1
        case "list":
            at = content.index(b"<data>") + 300  # an offset inside the table of runs
            content[at] = ord("A") if content[at] != ord("A") else ord("B")
        case "trailer":
            content[-512 + 80 + 8] ^= 1  # damage the checksum of the data
        case _:
            del content[-1]
    image.write_bytes(content)
    with pytest.raises(UdifError):
        read_udif(image, tmp_path / "back")


def test_volume_with_half_a_sector_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UdifError, match="sectors"):
        write_udif(BytesIO(bytes(700)), 700, tmp_path / "image.dmg")
