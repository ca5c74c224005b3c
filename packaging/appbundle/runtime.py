"""Provides the Python interpreter of a bundle.

The bundle for Macs gets a relocatable CPython, which uv downloads. The twin, the bundle that tests
start on Linux, gets a copy of the interpreter that runs this code.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path, PurePosixPath

from appbundle.bytecode import copy_installed
from appbundle.spec import BundleLayout, Spec
from appbundle.trim import copy_kept, files_below

# Folders of the standard library that are not copied, because the app never imports them. The list
# does not include venv, because the command that downloads models imports venv.
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
# Name prefixes of extension modules that are not copied. Tk needs Tcl, which is not in the bundle.
# The other modules are only for CPython's tests.
_DROPPED_EXTENSIONS = ("_tkinter", "_test", "_ctypes_test", "_xxtest", "xxlimited")


class NoRuntimeError(Exception):
    """The error if no interpreter can be provided. The message has the reason."""


def fetch_macos(uv: Path, spec: Spec, cache: Path) -> Path:
    """Return the folder of a relocatable CPython for Macs. If it is not in `cache`, download it.

    Raises:
        NoRuntimeError: uv can't download the interpreter.
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
    """Return the patch number of the Python version in a folder name: 4 for cpython-3.12.4-..."""
    return int(folder.name.split("-")[1].split(".")[2].split("+")[0])


def copy_macos(runtime: Path, layout: BundleLayout) -> None:
    """Copy libpython and the standard library of a downloaded interpreter into the bundle."""
    lib = runtime / "lib"
    _copy(lib / layout.libpython.name, lib / f"python{layout.python}", layout)
    # uv writes the path of its download folder into these files. Other machines do not have this
    # folder, so replace the path.
    for file in layout.stdlib.glob("_sysconfigdata*.py"):
        text = file.read_text(encoding="utf-8").replace(str(runtime), "/install")
        file.write_text(text, encoding="utf-8")


def copy_own(layout: BundleLayout) -> None:
    """Copy the interpreter that runs this code into the bundle.

    Raises:
        NoRuntimeError: the interpreter has no shared library.
    """
    folder, library = sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("INSTSONAME")
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        raise NoRuntimeError(f"{sys.executable} has no shared libpython")
    stdlib = Path(sysconfig.get_path("stdlib"))
    _copy(Path(folder, library), stdlib, layout)
    copy_installed(files_below(stdlib, _DROPPED), layout.stdlib)


def _copy(library: Path, stdlib: Path, layout: BundleLayout) -> None:
    layout.stdlib.mkdir(parents=True)
    shutil.copy2(library, layout.python_home / "lib" / library.name)
    copy_kept(files_below(stdlib, _DROPPED), layout.stdlib, _is_kept)


def _is_kept(path: PurePosixPath) -> bool:
    is_development = path.parts[0].startswith("config-") or path.suffix in {".a", ".o"}
    is_extra = path.parts[0] == "lib-dynload" and path.name.startswith(_DROPPED_EXTENSIONS)
    return not is_development and not is_extra
