"""The interpreter of the bundle: a relocatable CPython for macOS, or for the twin the one that runs this."""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path, PurePosixPath

from appbundle.spec import BundleLayout, Spec
from appbundle.trim import copy_kept, files_below

# Development files, the installer and the windows of the standard library: nothing of it is imported. venv is, by
# the command that downloads models.
_DROPPED = frozenset(
    {
        "ensurepip",
        "idlelib",
        "lib2to3",
        "pydoc_data",
        "site-packages",
        "test",
        "tests",
        "tkinter",
        "turtledemo",
        "__pycache__",
    }
)
# Of the windows, which would need Tcl, and of CPython's own tests.
_DROPPED_EXTENSIONS = ("_tkinter", "_test", "_ctypes_test", "_xxtest", "xxlimited")


class NoRuntimeError(Exception):
    """There is no interpreter to be had; the message says why."""


def fetch_macos(uv: Path, spec: Spec, cache: Path) -> Path:
    """The folder of a relocatable CPython for a Mac, fetched once.

    Raises:
        NoRuntimeError: it can't be fetched.
    """
    version = f"cpython-{spec.python}-macos-aarch64-none"
    command = [
        str(uv),
        "python",
        "install",
        "--no-config",
        "--no-bin",
        "--install-dir",
        str(cache),
        version,
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    found = sorted(cache.glob(f"cpython-{spec.python}.*-macos-aarch64-none"), key=_patch)
    if done.returncode != 0 or not found:
        reasons = done.stderr.strip().splitlines() or ["uv gave no reason"]
        raise NoRuntimeError(reasons[-1].strip().removeprefix("cause: "))
    return found[-1]


def _patch(folder: Path) -> int:
    """The last number of its version."""
    return int(folder.name.split("-")[1].split(".")[2].split("+")[0])


def copy_macos(runtime: Path, layout: BundleLayout) -> None:
    """Put a fetched interpreter into the bundle: library and standard library, no programs."""
    lib = runtime / "lib"
    _copy(lib / layout.libpython.name, lib / f"python{layout.python}", layout)
    for file in layout.stdlib.glob("_sysconfigdata*.py"):  # uv wrote there where it unpacked
        text = file.read_text(encoding="utf-8").replace(str(runtime), "/install")
        file.write_text(text, encoding="utf-8")


def copy_own(layout: BundleLayout) -> None:
    """Put the interpreter that runs this into the twin.

    Raises:
        NoRuntimeError: it has no shared library.
    """
    folder, library = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        raise NoRuntimeError(f"{sys.executable} has no shared libpython")
    _copy(Path(folder, library), Path(sysconfig.get_path("stdlib")), layout)


def _copy(library: Path, stdlib: Path, layout: BundleLayout) -> None:
    layout.stdlib.mkdir(parents=True)
    shutil.copy2(library, layout.python_home / "lib" / library.name)
    copy_kept(files_below(stdlib), layout.stdlib, _is_kept)


def _is_kept(path: PurePosixPath) -> bool:
    is_development = path.parts[0].startswith("config-") or path.suffix in {".a", ".o"}
    is_extra = path.parts[0] == "lib-dynload" and path.name.startswith(_DROPPED_EXTENSIONS)
    return not is_development and not is_extra and _DROPPED.isdisjoint(path.parts[:-1])
