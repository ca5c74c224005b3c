"""Each hostile model folder gives an answer or one honest sentence, and no bug of Rejoinder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template
from tests.hostile.folders import FOLDERS, damaged, is_honest, trial

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("kind", FOLDERS)
def test_hostile_folder_gives_an_answer_or_an_honest_sentence(
    tiny_model: TinyModel, tmp_path: Path, kind: str
) -> None:
    folder = damaged(tiny_model("llama", Template.KEEPING), tmp_path, kind)

    problem = trial(folder)

    assert is_honest(problem), problem
