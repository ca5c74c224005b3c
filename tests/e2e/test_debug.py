"""The window in debug mode (`--debug`), on the real engine."""

from __future__ import annotations

import logging
from contextlib import closing
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.conversation.tree import Setup
from app.widgets.statistics_bar import StatisticsBar
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.real_window import RealWindow
from tests.fakes.tiny_model import Template

pytestmark = pytest.mark.slow


def test_debug_window_shows_checked_statistics_after_an_answer(
    tiny_model: TinyModel, tmp_path: Path, qtbot: QtBot, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "app.controllers.statistics")
    with closing(RealWindow(tmp_path, debug=True)) as real:
        model = tiny_model("qwen3_5", Template.KEEPING)
        real.launch(model)
        real.limit_answers(model, Setup(max_tokens=24))
        (bar,) = real.window.findChildren(StatisticsBar)
        qtbot.waitUntil(lambda: "nodes 0" in bar.text())
        real.ask("What is a boat?")
        qtbot.waitUntil(lambda: bool(bar.text()) and "nodes 0" not in bar.text())
        assert bar.isVisible()
        assert bar.text().endswith("faults 0 · audits 0 · invariants hold")
        assert bar.text() in caplog.text


def test_window_without_debug_has_no_statistics(
    tiny_model: TinyModel, tmp_path: Path, qtbot: QtBot
) -> None:
    with closing(RealWindow(tmp_path)) as real:
        real.launch(tiny_model("qwen3_5", Template.KEEPING))
        qtbot.waitUntil(lambda: real.core.models.status.facts is not None)
        assert real.window.findChildren(StatisticsBar) == []
