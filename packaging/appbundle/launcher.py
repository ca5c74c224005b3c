"""Compiles launcher.c, the executable of the bundle.

zig compiles it for Macs, on any system. The system's C compiler compiles it for the twin, the
bundle that tests start on Linux.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from appbundle.spec import ROOT, Spec

SOURCE = ROOT / "packaging" / "launcher.c"
MODULE = "app"


def compile_for_macos(target: Path, spec: Spec, tools_python: Path) -> None:
    """Compile for arm64 Macs. The interpreter `tools_python` must have the package ziglang."""
    zig = [
        str(tools_python),
        "-EP",
        "-m",
        "ziglang",
        "cc",
        "-target",
        f"aarch64-macos.{spec.min_macos}",
    ]
    _compile(zig, target, spec.python)


def compile_for_linux(target: Path, python: str) -> None:
    """Compile for this machine, with the system's C compiler.

    Raises:
        FileNotFoundError: no compiler is installed.
    """
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        raise FileNotFoundError("no C compiler: install gcc or clang")
    _compile([compiler], target, python, "-ldl")


def _compile(compiler: list[str], target: Path, python: str, *libraries: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    names = [f'-DPYTHON_VERSION="{python}"', f'-DMODULE="{MODULE}"']
    command = [*compiler, "-O2", "-Wall", "-s", *names, "-o", str(target), str(SOURCE), *libraries]
    subprocess.run(command, check=True)
