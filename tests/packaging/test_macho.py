"""Tests of appbundle.macho: read files as dyld does, thin them to arm64, refuse damaged ones."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from appbundle.macho import (
    Build,
    Dependency,
    Image,
    Slice,
    candidates,
    expand,
    is_macho,
    is_system,
    read_image,
    read_slices,
    thin,
)
from appbundle.reading import BundleError
from tests.packaging.damaging import for_x86
from tests.packaging.machofile import PAGE, MachO, fat
from tests.packaging.signing import rehashed

LOADER = Path("/a.app/Contents/lib/libx.dylib")
EXECUTABLE = Path("/a.app/Contents/MacOS/a")


def test_load_commands_are_read() -> None:
    written = MachO(
        name="@rpath/libx.dylib",
        needs=("@rpath/liby.dylib",),
        needs_weakly=("@rpath/libz.dylib",),
        reexports=("@loader_path/liba.dylib",),
        rpaths=("@loader_path/lib", "@loader_path/../lib"),
        oldest=(14, 4),
    ).written()

    image = read_image(written)

    assert image.install_name == "@rpath/libx.dylib"
    assert image.dependencies == (
        Dependency("@rpath/liby.dylib", weak=False),
        Dependency("@rpath/libz.dylib", weak=True),
        Dependency("@loader_path/liba.dylib", weak=False),
    )
    assert image.rpaths == ("@loader_path/lib", "@loader_path/../lib")
    assert image.builds == (Build(1, (14, 4)),)
    assert image.signature is not None
    assert image.signature.offset + image.signature.size == len(written)


def test_minimum_version_in_the_old_load_command_is_read() -> None:
    written = bytearray(MachO().written())
    struct.pack_into("<3I", written, 32, 0x24, 24, 10 << 16 | 9 << 8)

    assert read_image(bytes(written)).builds == (Build(1, (10, 9)),)


def test_image_of_an_unsigned_file_has_no_signature() -> None:
    image: Image = read_image(MachO().unsigned().written())

    assert image.signature is None


def test_universal_file_is_thinned_to_arm64(tmp_path: Path) -> None:
    arm = rehashed(MachO().written())
    path = tmp_path / "libx.dylib"
    path.write_bytes(fat(for_x86(arm), arm))
    path.chmod(0o755)
    before = path.stat().st_size

    saved = thin(path)

    assert path.read_bytes() == arm
    assert saved == before - len(arm)
    assert path.stat().st_mode & 0o777 == 0o755
    assert thin(path) == 0
    assert path.read_bytes() == arm


def test_file_without_arm64_code_is_refused_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "libx.dylib"
    path.write_bytes(fat(for_x86(MachO().written())))
    before = path.read_bytes()

    with pytest.raises(BundleError, match="holds no arm64 code"):
        thin(path)
    assert path.read_bytes() == before


def test_slices_of_a_universal_file_have_their_architectures() -> None:
    arm = MachO().written()
    arm64e = arm[:8] + struct.pack("<I", 2) + arm[12:]

    assert read_slices(fat(arm, arm64e, for_x86(arm))) == (
        Slice("arm64", PAGE, len(arm)),
        Slice("arm64e", 3 * PAGE, len(arm)),
        Slice("x86_64", 5 * PAGE, len(arm)),
    )


@pytest.mark.parametrize(
    "data",
    [b"", b"\xca\xfe", b"\xca\xfe\xba\xbe\0\0\0\x34", b"\x7fELF\2\1\1\0", b"#!/bin/sh\n"],
    ids=["empty", "short", "Java class", "ELF", "script"],
)
def test_file_of_another_type_is_refused(data: bytes) -> None:
    assert not is_macho(data)
    with pytest.raises(BundleError, match="is no Mach-O file"):
        read_slices(data)


def test_file_truncated_at_any_length_is_refused() -> None:
    thin_file = MachO(name="@rpath/libx.dylib", rpaths=("@loader_path",)).written()
    universal = fat(thin_file, for_x86(thin_file))

    for size in range(8, len(thin_file), 7):
        with pytest.raises(BundleError, match=r"truncated|is no"):
            read_image(thin_file[:size])
    for size in range(8, len(universal), 1009):
        with pytest.raises(BundleError, match="truncated"):
            read_slices(universal[:size])


@pytest.mark.parametrize(
    ("path", "places"),
    [
        ("@rpath/liby.dylib", ("/one/liby.dylib", "/two/liby.dylib")),
        ("@loader_path/../liby.dylib", ("/a.app/Contents/liby.dylib",)),
        ("@executable_path/../lib/liby.dylib", ("/a.app/Contents/lib/liby.dylib",)),
        ("/opt/lib/../liby.dylib", ("/opt/liby.dylib",)),
        ("liby.dylib", ()),
    ],
)
def test_candidates_are_the_paths_that_dyld_tries(path: str, places: tuple[str, ...]) -> None:
    found = candidates(path, LOADER, EXECUTABLE, [Path("/one"), Path("/two")])

    assert found == tuple(map(Path, places))


def test_expand_resolves_loader_path_and_executable_path() -> None:
    assert expand("@loader_path/", LOADER, EXECUTABLE) == LOADER.parent
    assert expand("@loader_path", LOADER, EXECUTABLE) == LOADER.parent
    assert expand("@executable_path/../Resources", LOADER, EXECUTABLE) == Path(
        "/a.app/Contents/Resources"
    )
    assert expand("@rpath/x", LOADER, EXECUTABLE) is None


def test_is_system_is_true_only_for_libraries_of_macos() -> None:
    assert is_system("/usr/lib/libSystem.B.dylib")
    assert is_system("/System/Library/Frameworks/Metal.framework/Versions/A/Metal")
    assert not is_system("/usr/local/lib/libx.dylib")
    assert not is_system("/usr/lib/../local/lib/libx.dylib")
    assert not is_system("@rpath/usr/lib/libx.dylib")
