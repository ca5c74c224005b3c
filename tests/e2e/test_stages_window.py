"""The main window on a model in two stages, as a user sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.stages_window import answer_in_window
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("qtbot")
def test_window_on_two_stages_answers_stops_and_leaves_no_process(
    tiny_model: TinyModel, tmp_path: Path
) -> None:
    model = tiny_model("qwen3_5", Template.KEEPING)
    answer_in_window(tmp_path, model, num_kills=0, max_tokens=24)
