"""Checks of MLX: its library (libmlx), its Metal code (mlx.metallib), and their versions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from appbundle.bundle import Bundle
from appbundle.reading import about, read_bytes, unpack
from appbundle.spec import version_of

_METALLIB_MACOS: Final = 0x81


def metal_library(bundle: Bundle) -> Iterator[str]:
    """Check that there is one libmlx and, in its folder, one mlx.metallib.

    MLX looks for its Metal code only in the folder of libmlx.
    """
    libraries = [path for path in bundle.files if path.name == "libmlx.dylib"]
    metallibs = [path for path in bundle.files if path.suffix == ".metallib"]
    if len(libraries) != 1:
        names = ", ".join(map(bundle.name, libraries)) or "none"
        yield f"there should be one libmlx.dylib, there is: {names}"
    if [path.name for path in metallibs] != ["mlx.metallib"]:
        names = ", ".join(map(bundle.name, metallibs)) or "none"
        yield f"there should be one mlx.metallib, there is: {names}"
    if len(libraries) != 1 or len(metallibs) != 1:
        return
    if libraries[0].parent != metallibs[0].parent:
        yield f"{bundle.name(metallibs[0])} is not beside {bundle.name(libraries[0])}"
    yield from _header_problems(bundle, metallibs[0])


def mlx_versions(bundle: Bundle) -> Iterator[str]:
    """Check that the packages mlx and mlx-metal have the same version.

    They are built together. Other combinations of versions fail in unexpected ways.
    """
    mlx, metal = (bundle.distributions.get(name) for name in ("mlx", "mlx_metal"))
    if mlx is None or metal is None or mlx != metal:
        yield f"mlx is {mlx or 'missing'}, mlx-metal is {metal or 'missing'}"


def _header_problems(bundle: Bundle, path: Path) -> Iterator[str]:
    name = bundle.name(path)
    with about(name):
        data = read_bytes(path)
        system, major, minor, size = unpack("<B2HQ", data, 11, "header")
    if data[:4] != b"MTLB":
        yield f"{name} is no Metal library"
        return
    if size != len(data):
        yield f"{name} has {len(data)} bytes, its header says {size}"
    if system != _METALLIB_MACOS or (major, minor) > version_of(bundle.spec.min_macos):
        target = f"macOS {major}.{minor}" if system == _METALLIB_MACOS else f"system {system:#x}"
        yield f"{name} is for {target}, the bundle promises {bundle.spec.min_macos}"
