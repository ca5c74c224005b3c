"""Tests that few Python objects remain after conversations were answered and deleted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.left_objects import NUM_CHATS
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template

# Highest number of objects that a deleted conversation may leave: its entry in the undo list, its
# summary, its scroll position and a part of the measurements of a round.
NUM_KEPT = 10


@pytest.mark.slow
def test_deleted_conversations_leave_no_objects(tiny_model: TinyModel, tmp_path: Path) -> None:
    model = tiny_model("lfm2", Template.KEEPING)
    command = [sys.executable, "-P", "-m", "tests.e2e.left_objects", model, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["cached"]
    assert not found["left"]
    assert sum(found["grown"].values()) <= NUM_KEPT * NUM_CHATS, found["grown"]
