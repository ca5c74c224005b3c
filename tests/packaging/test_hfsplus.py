"""What is no HFS+ volume is said to be none. Volumes are read in test_archives.py."""

from __future__ import annotations

from io import BytesIO
from struct import pack

import pytest

from appbundle.hfsplus import Extent, HfsError, find_volume, read_volume


def partition(count: int, first: int, sectors: int, kind: bytes) -> bytes:
    return pack(">2s2xIII32s32s", b"PM", count, first, sectors, b"name", kind).ljust(512, b"\0")


def test_the_hfs_partition_is_found_behind_others() -> None:
    others = [partition(3, 1, 4, b"Apple_partition_map"), partition(3, 5, 9, b"ISO9660_data")]
    image = bytes(512) + b"".join(others) + partition(3, 14, 20, b"Apple_HFS")
    assert find_volume(BytesIO(image)) == Extent(14 * 512, 20 * 512)


@pytest.mark.parametrize("kind", [b"Apple_HFSX", b"ISO9660_data"])
def test_another_kind_of_partition_is_none(kind: bytes) -> None:
    image = bytes(512) + partition(1, 2, 8, kind) + bytes(512)
    with pytest.raises(HfsError, match="partition"):
        find_volume(BytesIO(image))


def test_an_image_without_a_map_has_no_partition() -> None:
    with pytest.raises(HfsError, match="partition"):
        find_volume(BytesIO(bytes(4096)))


def test_zeros_are_no_volume() -> None:
    with pytest.raises(HfsError, match="volume"):
        read_volume(BytesIO(bytes(4096)))
