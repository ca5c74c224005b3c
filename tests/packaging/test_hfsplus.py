"""Tests of appbundle.hfsplus with images that have no HFS+ volume.

test_archives.py tests that whole volumes are read.
"""

from __future__ import annotations

from io import BytesIO
from struct import pack

import pytest

from appbundle.hfsplus import Extent, HfsError, find_volume, read_volume


def partition(count: int, first: int, sectors: int, kind: bytes) -> bytes:
    return pack(">2s2xIII32s32s", b"PM", count, first, sectors, b"name", kind).ljust(512, b"\0")


def test_hfs_partition_is_found_behind_other_partitions() -> None:
    others = [partition(3, 1, 4, b"Apple_partition_map"), partition(3, 5, 9, b"ISO9660_data")]
    image = bytes(512) + b"".join(others) + partition(3, 14, 20, b"Apple_HFS")
    assert find_volume(BytesIO(image)) == Extent(14 * 512, 20 * 512)


@pytest.mark.parametrize("kind", [b"Apple_HFSX", b"ISO9660_data"])
def test_image_without_hfs_partition_is_refused(kind: bytes) -> None:
    image = bytes(512) + partition(1, 2, 8, kind) + bytes(512)
    with pytest.raises(HfsError, match="partition"):
        find_volume(BytesIO(image))


def test_image_without_partition_map_is_refused() -> None:
    with pytest.raises(HfsError, match="partition"):
        find_volume(BytesIO(bytes(4096)))


def test_volume_of_zeros_is_refused() -> None:
    with pytest.raises(HfsError, match="volume"):
        read_volume(BytesIO(bytes(4096)))
