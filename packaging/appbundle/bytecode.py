"""Compiles every Python source of the bundle while it is built.

Otherwise Python would write bytecode into the bundle at run time, which breaks the seal.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from appbundle.spec import BundleLayout


def compile_all(layout: BundleLayout, python: list[str]) -> None:
    """Compile the sources with `python`, a command for an interpreter of the bundle's version.

    The bytecode has unchecked hashes: Python does not compare it with the sources, whose time
    stamps change when the bundle is copied.
    """
    home = str(layout.python_home)
    options = ["-q", "-j", "0", "--invalidation-mode", "unchecked-hash", "-s", home, "-p", "/"]
    folder = [str(layout.stdlib)]
    done = subprocess.run([*python, "-m", "compileall", *options, *folder], check=False)
    if done.returncode != 0:  # the check `bytecode` reports what is missing
        print(f"could not compile with {' '.join(python)}")


def interpreter(uv: Path, version: str) -> list[str]:
    """Return a command that starts Python `version`: the running one, or one that uv finds."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        return [sys.executable]
    return [str(uv), "run", "--no-project", "--no-config", "--python", version, "python"]
