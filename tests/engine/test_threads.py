"""mlx is called on the engine thread alone, and nothing but plain values leaves it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template


@pytest.mark.slow
def test_mlx_stays_on_the_engine_thread(tiny_model: TinyModel) -> None:
    model = tiny_model("lfm2", Template.THINKING)
    command = [sys.executable, "-m", "tests.fakes.thread_watch", str(model)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)

    assert found["threads"] == ["engine"]
    assert set(found["types"]) <= {"str", "bytes", "int", "float", "bool", "NoneType"}
    # The watch is not blind: a call on the main thread was seen afterwards.
    assert found["seen"] == ["MainThread", "engine"]
