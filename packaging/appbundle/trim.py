"""Selects files of installed wheels for a bundle, and restores symbolic links in Qt frameworks.

bundle.toml has the patterns for files, and the names of the needed Qt modules and plugins. Wheels
can't contain symbolic links, but codesign requires them in frameworks.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from appbundle.spec import Spec


class File(NamedTuple):
    """A file, and its path relative to the root of its file tree."""

    path: Path
    relative: PurePosixPath


Rule = Callable[[PurePosixPath], bool]

_FRAMEWORK = ".framework"
_BINDINGS = re.compile(r"(Qt\w+)\.abi3\.so")
_LINUX_LIBRARY = re.compile(r"libQt6(\w+)\.so\.6")


def copy_kept(files: Iterable[File], target: Path, is_kept: Rule) -> None:
    for path, relative in files:
        if is_kept(relative):
            (target / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, target / relative, follow_symlinks=False)


def files_below(folder: Path, skipped: Collection[str] = ()) -> Iterable[File]:
    """Yield a folder's files and symbolic links, except those in folders named in `skipped`."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in skipped)
        links = [name for name in folders if Path(parent, name).is_symlink()]
        at = PurePosixPath(Path(parent).relative_to(folder).as_posix())
        for name in sorted([*names, *links]):
            yield File(Path(parent, name), at / name)


def wheel_rule(spec: Spec, *, linux: bool = False) -> Rule:
    """Return the function that selects files of site-packages by path.

    Qt's libraries and plugins have other names on Linux than on macOS. Set `linux` to True to
    select files by their names on Linux.
    """
    drops, keeps = _matcher(spec.drop), _matcher(spec.keep)
    qt = _linux_qt_rule(spec) if linux else _macos_qt_rule(spec)

    def is_kept(path: PurePosixPath) -> bool:
        if drops(path) and not keeps(path):
            return False
        return qt(path) if path.parts[0] == "PySide6" else True

    return is_kept


def restore_framework_links(site_packages: Path) -> None:
    """Create the symbolic links in each Qt framework.

    The links are Versions/Current, Resources and the name of the framework's library.
    """
    for framework in sorted((site_packages / "PySide6" / "Qt" / "lib").glob(f"*{_FRAMEWORK}")):
        version = next(path for path in (framework / "Versions").iterdir() if path.is_dir())
        (framework / "Versions" / "Current").symlink_to(version.name)
        for name in (framework.stem, "Resources"):
            (framework / name).symlink_to(f"Versions/Current/{name}")


def _macos_qt_rule(spec: Spec) -> Rule:
    def is_kept(path: PurePosixPath) -> bool:
        match path.parts[1:]:
            case ["Qt", "lib", framework, "Versions", *rest]:
                return (
                    framework.removesuffix(_FRAMEWORK) in spec.qt_modules and "Headers" not in rest
                )
            case ["Qt", "plugins", *rest]:
                return "/".join(rest).removesuffix(".dylib") in spec.qt_plugins
            case [name]:
                return _is_binding(name, spec)
            case _:
                return False

    return is_kept


def _linux_qt_rule(spec: Spec) -> Rule:
    libraries = {module.removeprefix("Qt") for module in spec.qt_modules} | {"XcbQpa", "OpenGL"}

    def is_kept(path: PurePosixPath) -> bool:
        match path.parts[1:]:
            case ["Qt", "lib", name]:
                library = _LINUX_LIBRARY.fullmatch(name)
                return library is None or library[1] in libraries
            case ["Qt", "plugins", *rest]:
                return "/".join(rest).removesuffix(".so") in spec.qt_linux_plugins
            case [name]:
                return _is_binding(name, spec)
            case _:
                return False

    return is_kept


def _is_binding(name: str, spec: Spec) -> bool:
    """Return True for a needed file at the top of PySide6.

    These are the bindings of the needed Qt modules, the library libpyside6, and Python files.
    """
    binding = _BINDINGS.fullmatch(name)
    if binding is not None:
        return binding[1] in spec.qt_modules
    return name.startswith("libpyside6.abi3") or name.endswith((".py", ".typed"))


def _matcher(patterns: Iterable[str]) -> Rule:
    pattern = re.compile("|".join(_as_regex(each) for each in patterns) or r"(?!)")
    return lambda path: pattern.fullmatch(str(path)) is not None


def _as_regex(pattern: str) -> str:
    """Translate a shell pattern to a regular expression.

    `*` matches any characters except a slash. `**` matches any number of folders.
    """
    pieces = {"**/": r"(?:[^/]+/)*", "**": r".*", "*": r"[^/]*"}
    parts = re.split(r"(\*\*/|\*\*|\*)", pattern)
    return "".join(pieces.get(part, re.escape(part)) for part in parts)
