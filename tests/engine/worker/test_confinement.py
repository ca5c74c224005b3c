"""Acts that a confined process can no longer do. Each is tried in one process of its own."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CONNECTING = (
    "socket.create_connection(('127.0.0.1', 9))",
    "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "socket.getaddrinfo('localhost', 9)",
)
STARTING = (
    "os.system('true')",
    "os.popen('true')",
    "os.fork()",
    "os.execv('/bin/true', ['true'])",
    "os.posix_spawn('/bin/true', ['true'], {})",
    "subprocess.run(['true'])",
)
CHANGING = (
    "open('new', 'w')",
    "open('old', 'a')",
    "open('old', 'r+')",
    "os.open('new', os.O_CREAT)",
    "os.truncate('old', 0)",
    "os.symlink('old', 'new')",
    "os.link('old', 'new')",
    "os.mkdir('new')",
    "os.rename('old', 'new')",
    "os.replace('old', 'new')",
    "os.remove('old')",
    "os.rmdir('folder')",
    "os.chmod('old', 0)",
    "os.utime('old', (0, 0))",
    "os.chdir('folder')",
    "os.kill(os.getppid(), 0)",
    "shutil.copyfile('old', 'new')",
    "sqlite3.connect('new')",
    "ctypes.CDLL(None)",
    "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))",
)
PROGRAM = """
import ctypes, json, os, resource, shutil, socket, sqlite3, subprocess, sys
from engine.worker.confinement import only_compute, stay_offline
opened = os.open("old", os.O_RDWR)
getattr(sys.modules["engine.worker.confinement"], sys.argv[1])()
allowed = []
for act in json.load(sys.stdin):
    try:
        eval(act)
    except PermissionError:
        continue
    allowed.append(act)
try:
    os.write(opened, b"x")
except OSError as error:
    allowed.append(error.strerror)
os.listdir("folder"), open("old").close()
print(json.dumps(allowed))
"""


def allowed(function: str, acts: tuple[str, ...], folder: Path) -> list[str]:
    """Call a function of the module in a process. Return the acts that the process can still do.

    The last item is the error of a write to a file that was open before.
    """
    (folder / "folder").mkdir()
    (folder / "old").touch()
    ended = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, function],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        input=json.dumps(acts),
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[str] = json.loads(ended.stdout)
    return found


# The first act of each program. Its imports are over then, and no call has come.
PROGRAMS = {
    "app/extraction/program.py": "only_compute()",
    "app/viewmodels/helper_program.py": "only_compute()",
    "engine/models/worker.py": "only_compute(has_threads=True)",
    "engine/models/measuring.py": "stay_offline()",
    "engine/models/copying.py": "stay_offline()",
}


@pytest.fixture(scope="module")
def only_computing(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return allowed(
        "only_compute", STARTING + CONNECTING + CHANGING, tmp_path_factory.mktemp("computing")
    )


@pytest.fixture(scope="module")
def offline(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return allowed(
        "stay_offline", STARTING + CONNECTING + CHANGING[:2], tmp_path_factory.mktemp("offline")
    )


@pytest.mark.parametrize("act", STARTING + CONNECTING + CHANGING)
def test_process_that_only_computes_is_refused(act: str, only_computing: list[str]) -> None:
    assert act not in only_computing


def test_process_that_only_computes_enlarges_no_open_file(only_computing: list[str]) -> None:
    assert only_computing == ["File too large"]


def test_process_that_stays_offline_only_writes_files(offline: list[str]) -> None:
    assert offline == ["open('new', 'w')", "open('old', 'a')"]


@pytest.mark.parametrize("file", PROGRAMS)
def test_program_gives_up_its_rights_first(file: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    (main,) = [
        node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main"
    ]

    assert ast.unparse(main.body[1]) == PROGRAMS[file]
