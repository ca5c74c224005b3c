"""A program `ssh` for tests: it runs the command on this machine, or fails as ssh does.

The name of the host decides: "refuses" wants a password, "asleep" never answers, "elsewhere" sees
other paths (the file `elsewhere` beside the program has the script for sed). Any other name runs the
command.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

_SSH = """#!/bin/bash
while [ "${1:0:1}" = "-" ]; do
    case "$1" in -o) shift 2 ;; *) shift ;; esac
done
host=$1
shift
case "$host" in
refuses) echo "nobody@refuses: Permission denied (publickey)." >&2; exit 255 ;;
asleep) exec sleep 60 ;;
elsewhere) sed -u -f "$(dirname "$0")/elsewhere" | bash -c "exec $*"; exit ;;
esac
exec bash -c "exec $*"
"""


def install_ssh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the program first on PATH."""
    program = folder / "ssh"
    program.write_text(_SSH, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
