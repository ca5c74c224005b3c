"""Provides the Python libraries of a bundle.

The bundle for Macs gets wheels that are downloaded. The twin, the bundle that tests start on Linux,
gets copies of the libraries that are installed for the running interpreter.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from appbundle.spec import ROOT, Spec
from appbundle.trim import File

LOCK = ROOT / "packaging" / "requirements.lock"
_REQUIREMENT = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)


def install_macos(uv: Path, spec: Spec, target: Path) -> None:
    """Install the wheels of requirements.lock for arm64 Macs in a folder. Works on any system.

    mlx has wheels for several macOS versions. `spec.min_macos` decides which one is installed.
    """
    shutil.rmtree(target, ignore_errors=True)
    command = [
        str(uv),
        "pip",
        "install",
        "--quiet",
        "--no-config",
        "--no-deps",
        "--require-hashes",
        "--only-binary",
        ":all:",
        "--python-version",
        spec.python,
        "--python-platform",
        "aarch64-apple-darwin",
        "--target",
        str(target),
        "-r",
        str(LOCK),
    ]
    environment = {**os.environ, "MACOSX_DEPLOYMENT_TARGET": spec.min_macos}
    subprocess.run(command, check=True, env=environment)


def installed() -> Iterator[File]:
    """Yield the files of the installed libraries that requirements.lock lists."""
    for name in sorted(set(_REQUIREMENT.findall(LOCK.read_text(encoding="utf-8")))):
        try:
            files = distribution(name).files or []
        # Skip libraries that are not installed: requirements.lock also lists those for Macs only.
        except PackageNotFoundError:
            continue
        for file in files:
            path = Path(str(file.locate()))
            if ".." not in file.parts and path.is_file():
                yield File(path, file)
