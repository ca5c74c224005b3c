"""The launcher of the bundle, with the Python of this machine and without the app."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from appbundle.launcher import compile_for_linux
from engine.worker.interpreter import own_program
from tests.packaging.test_twin import missing


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_launcher_with_the_command_of_our_programs_keeps_its_own_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = tmp_path / "Contents" / "MacOS" / "Rejoinder"
    home = tmp_path / "Contents" / "Resources" / "python"
    home.parent.mkdir(parents=True)
    home.symlink_to(sys.base_prefix)
    compile_for_linux(launcher, f"{sys.version_info.major}.{sys.version_info.minor}")
    monkeypatch.setattr(sys, "executable", str(launcher))
    _, option, *_ = own_program("module")
    (tmp_path / "json.py").write_text("raise SystemExit('the working folder has run')")
    for variable in ("PYTHONPATH", "PYTHONHOME"):
        monkeypatch.setenv(variable, str(tmp_path))

    ran = subprocess.run(
        [launcher, option, "-c", "import json, sys; print(sys.prefix, *sys.argv[1:])", "stage"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.stdout == f"{home} stage\n", ran.stderr
