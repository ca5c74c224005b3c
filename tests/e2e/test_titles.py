"""Titles on the real engine: the chat is named, and its next turn restores everything."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.conversation.tree import shown_path
from engine.questions import NextPrompt
from engine.runner.title import TitleMaker
from engine.types import ForcedReply, Request
from engine.usage import PromptPlan
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.real_window import RealWindow
from tests.fakes.tiny_model import Template


@pytest.fixture
def real(
    tiny_model: TinyModel, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RealWindow]:
    """Return a window on a random model, which writes a given title."""
    requests = TitleMaker._requests  # pyright: ignore[reportPrivateUsage]

    def forced(maker: TitleMaker, task: NextPrompt) -> Iterator[Request]:
        for request in requests(maker, task):
            yield replace(request, forced=ForcedReply(text='"Trees for searching."'))

    monkeypatch.setattr(TitleMaker, "_requests", forced)
    with closing(RealWindow(tmp_path)) as real:
        real.launch(tiny_model("qwen3_5", Template.KEEPING))
        yield real


def ask(real: RealWindow, text: str) -> PromptPlan:
    real.type(text)
    QTest.keyClick(real.edit, Qt.Key.Key_Return)
    real.wait_until(lambda: bool(real.core.turns.live))
    real.wait_until(lambda: not real.core.turns.live)
    generation = shown_path(real.core.desk.get(real.current))[-1].generation
    assert generation is not None
    assert generation.usage is not None
    return generation.usage.plan


@pytest.mark.slow
def test_chat_is_named_by_the_model_and_its_next_turn_restores_everything(
    real: RealWindow,
) -> None:
    setup = replace(real.core.desk.get(real.current).setup, max_tokens=8)
    real.core.chat.set_setup(real.current, setup)
    ask(real, "Tell me about radix trees")
    real.wait_until(lambda: real.core.desk.get(real.current).title == "Trees for searching")
    plan = ask(real, "And about rope?")

    assert plan.replayed == 0
    assert plan.restored > 0
