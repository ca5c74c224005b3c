"""Checks of Qt: all needed files, no other files, and the symbolic links in its frameworks."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from appbundle.bundle import Bundle

# Patterns of all files that may be in the folder PySide6, except modules, frameworks and plugins.
_OTHER = (
    "*.py",
    "py.typed",
    "libpyside6.abi3*.dylib",
    "__pycache__/*",
)


def qt_modules(bundle: Bundle) -> Iterator[str]:
    """Check that the bundle has every needed Qt module: its Python binding and its framework."""
    for module in sorted(bundle.spec.qt_modules):
        for path in (_root(bundle) / f"{module}.abi3.so", _binary(bundle, module)):
            if path not in bundle.files:
                yield f"{bundle.name(path)} is missing"


def qt_plugins(bundle: Bundle) -> Iterator[str]:
    """Check that the bundle has every needed Qt plugin.

    Without the platform plugin Qt ends the process. Without the other plugins, icons and the macOS
    style are missing.
    """
    for plugin in sorted(bundle.spec.qt_plugins):
        path = _plugins(bundle) / f"{plugin}.dylib"
        if path not in bundle.files:
            yield f"{bundle.name(path)} is missing"


def qt_leftovers(bundle: Bundle) -> Iterator[str]:
    """Check that the bundle has no Qt files that it does not need.

    Qt is large, and some of its modules load libraries that are not in the bundle.
    """
    spec, root = bundle.spec, _root(bundle)
    patterns = (
        *_OTHER,
        *(f"{module}.abi3.so" for module in spec.qt_modules),
        *(f"Qt/lib/{module}.framework/*" for module in spec.qt_modules),
        *(f"Qt/plugins/{plugin}.dylib" for plugin in spec.qt_plugins),
    )
    for inner, path in bundle.below(root).items():
        if not any(fnmatchcase(inner, pattern) for pattern in patterns):
            yield f"{bundle.name(path)} is not needed"


def qt_frameworks(bundle: Bundle) -> Iterator[str]:
    """Check the symbolic links in frameworks, which codesign and Qt need.

    Wheels can't contain symbolic links, so the build has to create them.
    """
    folders = [path for path in bundle.folders if path.suffix == ".framework"]
    for folder in folders:
        links = {
            folder / "Versions" / "Current": "A",
            folder / folder.stem: f"Versions/Current/{folder.stem}",
            folder / "Resources": "Versions/Current/Resources",
        }
        for path, target in links.items():
            if path not in bundle.links:
                yield f"{bundle.name(path)} is no link to {target}"
            elif str(path.readlink()) != target:
                yield f"{bundle.name(path)} is a link to {path.readlink()}, not to {target}"
        if folder / "Versions" / "A" / "Resources" / "Info.plist" not in bundle.files:
            yield f"{bundle.name(folder)} has no Info.plist"


def _root(bundle: Bundle) -> Path:
    return bundle.layout.site_packages / "PySide6"


def _plugins(bundle: Bundle) -> Path:
    return _root(bundle) / "Qt" / "plugins"


def _binary(bundle: Bundle, module: str) -> Path:
    return _root(bundle) / "Qt" / "lib" / f"{module}.framework" / "Versions" / "A" / module
