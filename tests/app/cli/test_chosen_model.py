"""The model folder of the command line, as `rejoinder chat` and `bench` get it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import pytest

from app.cli import chat
from app.cli.main import run


@pytest.mark.parametrize("typed", [".", "~"])
def test_model_folder_of_the_command_line_is_absolute(
    typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Path] = []

    def note(_args: Namespace, model: Path) -> int:
        given.append(model)
        return 0

    monkeypatch.setattr(chat, "run", note)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    status = run(["--data-dir", str(tmp_path / "app"), "chat", "hi", "--model", typed])

    assert status == 0
    assert given == [tmp_path]
