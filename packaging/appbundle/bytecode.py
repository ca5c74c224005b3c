"""Compiles all Python sources of the bundle to bytecode during the build.

Without this step, Python would write bytecode into the bundle at run time and so break the seal.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.util import cache_from_source
from pathlib import Path

from appbundle.spec import BundleLayout
from appbundle.trim import File


def copy_installed(sources: Iterable[File], target: Path) -> None:
    """Copy the bytecode of installed sources that were copied to `target` with their times.

    compile_all() can skip these sources. Python compares such bytecode with the time of its source,
    so this is of use only in a bundle that stays where it was made.
    """
    for path, relative in sources:
        compiled, source = Path(cache_from_source(str(path))), target / relative
        if path.suffix == ".py" and compiled.is_file() and source.is_file():
            copied = Path(cache_from_source(str(source)))
            copied.parent.mkdir(exist_ok=True)
            shutil.copyfile(compiled, copied)


def compile_all(
    layout: BundleLayout, python: list[str], folders: Sequence[Path] | None = None
) -> None:
    """Compile all sources, or those of some folders of the bundle.

    `python` is a command that starts Python in the bundle's version.

    The bytecode has unchecked hashes, so that Python does not compare the bytecode with the
    sources. A comparison of time stamps would fail after the bundle is copied.
    """
    home = str(layout.python_home)
    options = ["-q", "-j", "0", "--invalidation-mode", "unchecked-hash", "-s", home, "-p", "/"]
    paths = map(str, [layout.stdlib] if folders is None else folders)
    done = subprocess.run([*python, "-EP", "-m", "compileall", *options, *paths], check=False)
    # No error here, because the check `bytecode` reports missing files later.
    if done.returncode != 0:
        print(f"could not compile with {' '.join(python)}")


def interpreter(uv: Path, version: str) -> list[str]:
    """Return a command that starts the given version of Python.

    Use the running interpreter if its version is the given one. Otherwise let uv find an
    interpreter.
    """
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return [sys.executable]
    return [str(uv), "run", "--no-project", "--no-config", "--python", version, "python"]
