"""Contract of all processes that the app starts: none runs a file of the working folder.

Every start is listed here. Our own programs start with the command of `own_program`, which is run in
a folder of modules that have the names of Python's own.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from engine.hosts.hostfile import Host
from engine.hosts.process import stage_command
from engine.worker.interpreter import own_program
from tests.contracts.sources import ROOT

COMMAND = Path(sysconfig.get_path("scripts"), "rejoinder")
INTERPRETER = "engine/worker/interpreter.py"
# Each start of a process: the file, the function, and the command.
STARTS = {
    ("app/hub/process.py", "_start", "own_program('app.hub.program')"),
    ("engine/worker/child.py", "start", "own_program(self._module)"),
    ("engine/hosts/process.py", "__init__", "command"),  # of stage_command
    ("engine/hosts/group.py", "_end_unreachable", "command"),  # of stage_command
    # Programs of macOS
    ("app/extraction/heif.py", "_run", "[str(self._program), …]"),
    ("engine/cache/disk/folder.py", "_mark_as_cache", "command"),
    ("engine/hosts/checking.py", "_hardware_ports", "['/usr/sbin/networksetup', …]"),
    ("engine/hosts/stage.py", "_chip", "command"),
    ("engine/hosts/stage.py", "_keep_awake", "['/usr/bin/caffeinate', …]"),
}
# Other ways to start a process, which no file uses.
OTHER_WAYS = (
    "os.exec",
    "os.fork",
    "os.popen",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "asyncio.create_subprocess",
    "from subprocess",
    "subprocess as",
    "multiprocessing",
    "ProcessPoolExecutor",
    "import pty",
    "QProcess",
)
HOSTILE = 'import os\nopen(os.environ["MARKER"], "a").write(__name__ + "\\n")\n'
NAMES = (*sys.stdlib_module_names, "app", "engine", "mlx", "psutil", "sitecustomize")
PATH_VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR")


@cache
def sources() -> dict[str, str]:
    paths = [path for name in ("app", "engine") for path in (ROOT / name).rglob("*.py")]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in paths}


def starts(text: str) -> Iterator[tuple[str, str]]:
    """Yield the function and the command of each call of the module subprocess."""
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="subprocess")), args=[command, *_]
                ):
                    yield function.name, command_text(command)
                case _:
                    pass


def command_text(command: ast.expr) -> str:
    if isinstance(command, ast.List):
        return f"[{ast.unparse(command.elts[0])}, …]"
    return ast.unparse(command)


def run_in(folder: Path, command: list[str]) -> str:
    """Run a command in a folder of hostile modules. Return the names of those that ran."""
    marker = folder / "marker"
    marker.unlink(missing_ok=True)
    variables = dict.fromkeys(PATH_VARIABLES, str(folder)) | {
        "PYTHONSTARTUP": str(folder / "json.py"),
        "PYTHONINSPECT": "1",
        "PYTHONWARNINGS": "error::json.Hostile",
        "MARKER": str(marker),
    }
    ended = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    ran = marker.read_text() if marker.exists() else ""
    assert ended.returncode == 0, ran + ended.stderr
    return ran


@pytest.fixture(scope="module")
def hostile_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    for name in NAMES:
        (folder / f"{name}.py").write_text(HOSTILE)
    return folder


def test_every_start_of_a_process_is_listed() -> None:
    texts = {file: text for file, text in sources().items() if "subprocess" in text}

    assert {(file, *start) for file, text in texts.items() for start in starts(text)} == STARTS


def test_no_file_starts_a_process_in_another_way() -> None:
    # The extraction process has names of audit events, in quotation marks.
    used = {
        (file, way)
        for file, text in sources().items()
        for way in (*OTHER_WAYS, "sys.executable")
        if way in text and any(way in line and f'"{way}' not in line for line in text.splitlines())
    }

    assert used == {(INTERPRETER, "sys.executable")}


def test_every_python_of_the_build_leaves_out_the_working_folder() -> None:
    lists = [
        [ast.unparse(item) for item in node.elts]
        for path in (ROOT / "packaging").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.List)
    ]
    commands = [items for items in lists if {"'-m'", "'-c'"} & set(items)]

    assert len(commands) == 3
    assert all(items[1] == "'-EP'" for items in commands), commands


# The other programs of ChildProcess have the same command, and import mlx for a second.
@pytest.mark.parametrize("module", ["app.extraction.program", "app.viewmodels.helper_program"])
def test_program_in_a_folder_of_hostile_modules_runs_none(
    module: str, hostile_folder: Path
) -> None:
    assert run_in(hostile_folder, own_program(module)) == ""


@pytest.mark.parametrize("is_local", [True, False], ids=["here", "over ssh"])
def test_stage_in_a_folder_of_hostile_modules_runs_none(
    is_local: bool, hostile_folder: Path
) -> None:
    host = Host(name="studio", ips=("127.0.0.1",), is_local=is_local)
    command = stage_command(host, ("MLX_A=b",))
    if not is_local:
        command = ["/bin/sh", "-c", command[-1]]  # as sshd runs it, in the home folder

    assert run_in(hostile_folder, command) == ""


@pytest.mark.skipif(not COMMAND.exists(), reason="the command `rejoinder` is not installed")
def test_command_in_a_folder_of_hostile_modules_runs_none(
    tmp_path: Path, hostile_folder: Path
) -> None:
    marker = tmp_path / "marker"

    subprocess.run(
        [str(COMMAND), "models", "--data-dir", str(tmp_path / "data")],
        cwd=hostile_folder,
        env=os.environ | {"MARKER": str(marker)},
        capture_output=True,
        check=True,
        timeout=100,
    )

    assert not marker.exists()
