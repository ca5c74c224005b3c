"""Test of the twin: a bundle for Linux with the layout and the launcher of the Mac's bundle.

The twin is made and started like the bundle for Macs, but contains the Python of this machine.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from app.selftest import LIMIT_MS
from appbundle.spec import ROOT, read_spec
from tests.fakes.seeing_model import build_seeing, write_picture
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template, build_tiny

NAME = "Rejoinder.app"
MODULES = re.compile(r"^\| `(\w+)` .* \| exact \|", re.MULTILINE)
TOWERS = ("qwen3_5", "qwen2_vl", "qwen2_5_vl", "gemma3", "gemma4", "llama4", "mistral3", "lfm2-vl")
ASK_VERSION = "from importlib.metadata import version; print(version('rejoinder'))"
IMPORT_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module("mlx_lm.models." + name)
print(len(sys.argv) - 1, sys.executable)
"""
# One process for all models: the imports of each would take a second.
ASK_SEEING = """
import sys
from app.__main__ import main
from engine.vision.tower_module import import_part
import_part("gemma3n.config")  # only the tests know a tiny model of this type
import_part("gemma3n.vision")
picture, *models = sys.argv[1:]
for model in models:
    status = main(["chat", "--model", model, "--attach", picture, "--max-tokens", "2", "What?"])
    assert status == 0, model
"""


def missing() -> str:
    """Return the reason why the twin cannot be built, or an empty string."""
    if sys.platform != "linux":
        return "the Mac's own bundle is tried there"
    if not sysconfig.get_config_var("Py_ENABLE_SHARED"):
        return f"{sys.executable} has no shared libpython"
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        return "there is no C compiler"
    return ""


def run(executable: Path, home: Path, *arguments: str) -> str:
    """Run the app in the folder /, with no environment variable but HOME and PATH. Return its output.

    On Linux, mlx compiles kernels, and the compiler finds its linker in PATH.
    """
    environment = {"HOME": str(home), "PATH": os.defpath}
    done = subprocess.run(
        [str(executable), *arguments],
        check=False,
        capture_output=True,
        text=True,
        cwd="/",
        env=environment,
        timeout=LIMIT_MS / 1000 + 60,  # the app itself then gives the reason
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def states(app: Path) -> dict[Path, tuple[int, int, int]]:
    """Return each path's mode, number of bytes and time of the last change, which no program can set."""
    found = {path: path.lstat() for path in app.rglob("*")}
    return {path: (it.st_mode, it.st_size, it.st_ctime_ns) for path, it in found.items()}


@pytest.mark.slow
@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("model", rest_in_soak(("tiny", "starter"), "tiny"))
def test_linux_bundle_answers_and_restores_without_changing_its_files(
    tmp_path: Path, model: str
) -> None:
    """The starter model needs 10 s to load and 5 s to answer. tests/engine/gguf asks it once too."""
    subprocess.run(
        [sys.executable, "packaging/build.py", "--twin", "--out", str(tmp_path)],
        check=True,
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )
    app, home = tmp_path / NAME, tmp_path / "home"
    home.mkdir()
    starter = app / "Contents" / "Resources" / "models" / "SmolLM2-135M-Instruct"
    assert (starter / "model.safetensors").stat().st_size > 70e6
    if model == "tiny":
        shutil.rmtree(starter)
        build_tiny("llama", starter, Template.KEEPING)
    for folder in (app, *filter(Path.is_dir, app.rglob("*"))):
        folder.chmod(0o555)
    before = states(app)
    executable = app / "Contents" / "MacOS" / "Rejoinder"

    data, report = home / "data", home / "report.json"
    for chats_found in (0,) if model == "tiny" else (0, 2):
        run(executable, home, "--data-dir", str(data), "--selftest-file", str(report))
        findings = json.loads(report.read_text(encoding="utf-8"))
        assert findings["problems"] == []
        assert findings["chats_found"] == chats_found
        assert findings["home"] == str(app / "Contents" / "Resources" / "python")
        assert findings["model"] == str(starter)
        if model == "starter":
            assert findings["answers"][0].startswith("The capital of France is Paris")
        assert findings["restored"] > 0
        assert findings["replayed"] == 0

    table = (ROOT / "tests" / "architectures" / "README.md").read_text(encoding="utf-8")
    exact = sorted(set(MODULES.findall(table)))
    assert len(exact) > 100
    if model == "tiny":
        exact = exact[::8]  # the row of the starter model imports all
    said = run(executable, home, "-c", IMPORT_ALL, *exact)
    assert said == f"{len(exact)} {executable}\n"

    picture = write_picture(tmp_path / "pictures", 96, 64)
    file = str(tmp_path / "pictures" / f"{picture.digest}.png")
    towers = TOWERS if model == "tiny" else TOWERS[:1]
    seeing = [str(build_seeing(tmp_path / tower, tower)) for tower in towers]
    assert len(run(executable, home, "-c", ASK_SEEING, file, *seeing).splitlines()) >= len(towers)

    said = run(executable, home, "-c", ASK_VERSION)
    assert said == f"{read_spec().version}\n"
    said = run(executable, home, "-m", "huggingface_hub.cli.hf", "download", "--help")
    assert "REPO_ID" in said

    assert states(app) == before
    for folder in (app, *filter(Path.is_dir, app.rglob("*"))):
        folder.chmod(0o755)  # let pytest remove the folder
