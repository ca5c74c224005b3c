"""The libraries of the bundle, as site-packages: installed for a Mac, or copied from this interpreter."""

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
    """Install the locked wheels for a Mac, on any system. The oldest macOS decides which wheel of mlx it is."""
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
    """The files of the same libraries as this interpreter has them."""
    for name in sorted(set(_REQUIREMENT.findall(LOCK.read_text(encoding="utf-8")))):
        try:
            files = distribution(name).files or []
        except PackageNotFoundError:  # a Mac's
            continue
        for file in files:
            path = Path(str(file.locate()))
            if ".." not in file.parts and path.is_file():
                yield File(path, file)
