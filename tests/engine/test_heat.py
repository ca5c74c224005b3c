"""Tests of the detection of a hot machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from engine.events import Shutdown
from engine.heat import Heat
from tests.fakes.asking import ask, user
from tests.fakes.engine_fixtures import OpenTiny


@pytest.mark.parametrize(("level", "is_high"), [(0, False), (1, False), (2, True), (4, True)])
def test_heat_is_high_once_the_machine_slows_down(level: int, is_high: bool) -> None:
    assert Heat(lambda: level).is_high() is is_high


@pytest.mark.skipif(sys.platform != "darwin", reason="macOS only")
def test_macos_reports_its_heat() -> None:
    assert Heat().is_high() in (True, False)


def test_state_is_not_written_while_the_machine_is_hot(
    open_tiny: OpenTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    level = 3
    client = open_tiny("llama", disk_folder=tmp_path)
    monkeypatch.setattr(client.core, "_heat", Heat(lambda: level))
    ask(client, user("a question"))
    client.run_until_idle()
    assert not list(tmp_path.glob("*/*.safetensors"))
    level = 0
    client.run_until_idle()
    assert list(tmp_path.glob("*/*.safetensors"))
    client.send(Shutdown())
    client.core.run()
