"""Answers in several conversations at the same time, on the real engine."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.conversation.tree import Setup
from engine.types import ConversationId
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.real_window import RealWindow
from tests.fakes.tiny_model import Template

TOAST_MS = 60_000  # longer than all answers take

pytestmark = pytest.mark.slow


def test_several_conversations_answer_at_once(
    tiny_model: TinyModel, tmp_path: Path, qtbot: QtBot
) -> None:
    with closing(RealWindow(tmp_path)) as real:
        model = tiny_model("qwen3_5", Template.KEEPING)
        real.launch(model)
        real.limit_answers(model, Setup(max_tokens=100))
        turns, library = real.core.turns, real.core.library
        (until_hidden,) = real.window.toast.findChildren(QTimer)
        # Keep the toast visible until all answers have ended.
        until_hidden.setInterval(TOAST_MS)
        at_once: list[int] = []
        turns.rate_changed.connect(lambda: at_once.append(real.num_at_once))
        asked: list[ConversationId] = []
        # Random weights may end an answer early. Try again until three answers overlap.
        for attempt in range(20):
            asked = [real.ask(f"{name} {attempt}: tell me a story") for name in ("A", "B", "C")]
            qtbot.waitUntil(lambda: not turns.live)
            if max(at_once) == 3:
                break
        assert max(at_once) == 3
        assert library.current == asked[-1]
        assert {asked[0], asked[1]} <= library.unseen.ids
        assert library.current not in library.unseen.ids

        (button,) = [b for b in real.window.toast.findChildren(QPushButton) if b.isVisible()]
        assert button.text() == "Open"
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: library.current in asked[:2])
        assert library.current not in library.unseen.ids
