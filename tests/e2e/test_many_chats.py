"""The real window on the real engine: people write in several conversations at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from app.controllers.core import Core, Seams
from app.controllers.origin import SystemOrigin
from app.local_models import LocalModels
from app.main import end
from app.settings import Appearance, Settings
from app.store.conversations import open_store
from app.theme.palette import Theme
from app.widgets.commands import CommandId
from app.widgets.main_window import MainWindow
from engine.config import EngineConfig
from engine.engine import Engine
from engine.types import ConversationId
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tiny_model import Template

PATIENCE_MS = 60_000


class Desk:
    """The window, hands at it, and what they see."""

    def __init__(self, core: Core, window: MainWindow, qtbot: QtBot) -> None:
        self.window = window
        self._core = core
        self._qtbot = qtbot
        self.most_at_once = 0
        core.turns.rate_changed.connect(self._count)

    def ask(self, text: str) -> ConversationId:
        """In a new conversation; the answer is not waited for."""
        self.window.commands[CommandId.NEW_CHAT].trigger()
        QTest.keyClicks(self.window.pane.composer.edit, text)
        QTest.keyClick(self.window.pane.composer.edit, Qt.Key.Key_Return)
        return self.shown

    def wait_for_answers(self) -> None:
        self._qtbot.waitUntil(lambda: not self._core.turns.live, timeout=PATIENCE_MS)

    def open_finished(self) -> None:
        """Follow the offer to show an answer that has ended elsewhere."""
        (button,) = [b for b in self.window.toast.findChildren(QPushButton) if b.isVisible()]
        assert button.text() == "Open"
        before = self.shown
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)
        self._qtbot.waitUntil(lambda: self.shown != before, timeout=PATIENCE_MS)

    @property
    def shown(self) -> ConversationId:
        return self._core.library.current

    @property
    def unseen(self) -> frozenset[ConversationId]:
        return self._core.library.unseen

    def _count(self) -> None:
        """Answers of which the list says how fast they are written."""
        library = self._core.library
        rates = [library.activity(one.conversation_id) for one in library.summaries]
        self.most_at_once = max(self.most_at_once, sum("tok/s" in rate for rate in rates))


@pytest.fixture
def desk(tiny_model: TinyModel, tmp_path: Path, qapp: QApplication, qtbot: QtBot) -> Iterator[Desk]:
    model = tiny_model("qwen3_5", Template.KEEPING)
    origin = SystemOrigin()
    core = Core(
        Seams(
            make_engine=lambda on_event: Engine(EngineConfig(use_openblas=False), on_event),
            open_store=lambda: open_store(tmp_path / "conversations.db", now=origin.now()),
            catalog=LocalModels(tmp_path),
            origin=origin,
            settings=Settings(),
            settings_path=tmp_path / "settings.json",
            model=model,
        )
    )
    theme = Theme(qapp, Appearance.LIGHT)
    window = MainWindow(theme, core, origin)
    core.open()
    window.show()
    window.activateWindow()
    core.start()
    yield Desk(core, window, qtbot)
    end(window, core)
    window.deleteLater()
    theme.deleteLater()


def test_several_conversations_answer_at_once(desk: Desk) -> None:
    # Random weights end an answer when they like: until three were long enough.
    asked: list[ConversationId] = []
    for attempt in range(20):
        asked = [desk.ask(f"{name} {attempt}: tell me a story") for name in ("A", "B", "C")]
        desk.wait_for_answers()
        if desk.most_at_once == 3:
            break
    assert desk.most_at_once == 3
    assert desk.shown == asked[-1]
    assert {asked[0], asked[1]} <= desk.unseen
    assert desk.shown not in desk.unseen

    desk.open_finished()
    assert desk.shown in asked[:2]
    assert desk.shown not in desk.unseen
