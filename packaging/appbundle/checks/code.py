"""Checks of the Mach-O files: their type, their architecture, and the libraries they load."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from appbundle.bundle import Bundle, Code
from appbundle.macho import EXECUTABLE, MACOS, Image, candidates, expand, is_system
from appbundle.spec import version_of

_LIBRARIES: Final = (".so", ".dylib")


def executable(bundle: Bundle) -> Iterator[str]:
    """Check that the executable of the bundle is a Mach-O program, not a script.

    A script has no signature, and macOS would show the process as its interpreter and not as this
    app.
    """
    path = bundle.layout.executable
    name = bundle.name(path)
    if path not in bundle.files:
        yield f"{name} is missing"
        return
    image = next((image for code, image in bundle.images if code.path == path), None)
    if image is None:
        yield f"{name} is no Mach-O file with arm64 code"
    elif image.file_type != EXECUTABLE:
        yield f"{name} is a Mach-O file of type {image.file_type}, not a program"
    if path.stat().st_mode & 0o111 != 0o111:
        yield f"{name} may not be executed by everyone"


def mach_o_files(bundle: Bundle) -> Iterator[str]:
    """Check that every library is a Mach-O file and that no Mach-O file is truncated."""
    for path, error in bundle.unreadable.items():
        yield f"{bundle.name(path)} {error}"
    readable = {code.path for code in bundle.codes}
    for path in bundle.files:
        if path.suffix in _LIBRARIES and path not in readable and path not in bundle.unreadable:
            yield f"{bundle.name(path)} is no Mach-O file"


def architecture(bundle: Bundle) -> Iterator[str]:
    """Check that every Mach-O file has code for arm64 and for no other architecture."""
    for code in bundle.codes:
        found = [piece.architecture for piece in code.slices]
        if found != ["arm64"]:
            yield f"{bundle.name(code.path)} is for {', '.join(found) or 'nothing'}, not arm64 alone"


def extension_modules(bundle: Bundle) -> Iterator[str]:
    """Check that extension modules are built for the bundle's Python version.

    Python ignores extension modules that are built for other versions.
    """
    ours = f"cpython-{bundle.spec.python.replace('.', '')}-darwin"
    for path in bundle.files:
        tags = [part for part in path.name.split(".")[1:] if part.startswith("cpython-")]
        if path.suffix == ".so" and tags not in ([], [ours]):
            yield f"{bundle.name(path)} is built for {tags[0]}, not for {ours}"


def dependencies(bundle: Bundle) -> Iterator[str]:
    """Check that every library that the code loads is in the bundle or is a part of macOS."""
    program = _program(bundle)
    for code, image in bundle.images:
        main = _main(bundle, code, image)
        rpaths = [*_rpaths(image, code.path, main), *program]
        for dependency in image.dependencies:
            if is_system(dependency.path):
                continue
            places = candidates(dependency.path, code.path, main, rpaths)
            # Path.exists can raise OSError
            found = next((place for place in places if os.path.exists(place)), None)  # noqa: PTH110
            if found is not None and bundle.holds(found):
                continue
            if not dependency.weak or not dependency.path.startswith("@"):
                yield f"{bundle.name(code.path)} needs {dependency.path}, which is neither in the bundle nor a part of macOS"


def search_paths(bundle: Bundle) -> Iterator[str]:
    """Check that all library search paths are inside the bundle.

    A folder outside the bundle could have another version of a library.
    """
    for code, image in bundle.images:
        for rpath in image.rpaths:
            folder = expand(rpath, code.path, _main(bundle, code, image))
            if folder is None or not folder.is_relative_to(bundle.layout.app):
                yield f"{bundle.name(code.path)} looks for libraries in {rpath}, outside the bundle"


def system_version(bundle: Bundle) -> Iterator[str]:
    """Check that no code needs a newer macOS than the bundle declares."""
    for code, image in bundle.images:
        oldest = [build.oldest for build in image.builds if build.platform == MACOS]
        if not oldest:
            yield f"{bundle.name(code.path)} is not built for macOS"
        elif max(oldest) > version_of(bundle.spec.min_macos):
            newest = ".".join(map(str, max(oldest)))
            yield f"{bundle.name(code.path)} needs macOS {newest}, the bundle promises {bundle.spec.min_macos}"


def _main(bundle: Bundle, code: Code, image: Image) -> Path:
    """Return the program that dyld uses to resolve @executable_path in the paths of `code`.

    If `code` is a program, return `code` itself. Otherwise return the bundle's executable.
    """
    return code.path if image.file_type == EXECUTABLE else bundle.layout.executable


def _program(bundle: Bundle) -> Sequence[Path]:
    """Return the search paths of the bundle's executable. dyld uses them for every library."""
    path = bundle.layout.executable
    for code, image in bundle.images:
        if code.path == path:
            return _rpaths(image, path, path)
    return ()


def _rpaths(image: Image, loader: Path, executable_path: Path) -> Sequence[Path]:
    folders = (expand(rpath, loader, executable_path) for rpath in image.rpaths)
    return [folder for folder in folders if folder is not None]
