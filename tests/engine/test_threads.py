"""mlx is called on the engine thread only, and only plain values leave that thread."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template


@pytest.mark.slow
def test_mlx_is_called_on_the_engine_thread_only(tiny_model: TinyModel) -> None:
    model = tiny_model("lfm2", Template.THINKING)
    command = [sys.executable, "-P", "-m", "tests.fakes.thread_watch", str(model)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)

    assert found["threads"] == ["engine"]
    assert set(found["types"]) <= {"str", "bytes", "int", "float", "bool", "NoneType"}
    # The watch works: it also saw the mlx call that the program made on the main thread at its end.
    assert found["seen"] == ["MainThread", "engine"]
