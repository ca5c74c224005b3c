"""Compiles every source in the bundle, once and for all: nothing is written at run time, which would break the seal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from appbundle.spec import BundleLayout


def compile_all(layout: BundleLayout, python: list[str]) -> None:
    """Python is a command that starts an interpreter of the bundle's version, on this machine.

    Unchecked hashes: no source is looked at again, whatever the times of the files are after copying.
    """
    home = str(layout.python_home)
    options = ["-q", "-j", "0", "--invalidation-mode", "unchecked-hash", "-s", home, "-p", "/"]
    folder = [str(layout.stdlib)]
    done = subprocess.run([*python, "-m", "compileall", *options, *folder], check=False)
    if done.returncode != 0:  # a check of the bundle says what is missing
        print(f"could not compile with {' '.join(python)}")


def interpreter(uv: Path, version: str) -> list[str]:
    """Such a command: this interpreter, or one that uv finds or fetches."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return [sys.executable]
    return [str(uv), "run", "--no-project", "--no-config", "--python", version, "python"]
