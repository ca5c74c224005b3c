"""A person at the window: hands, a clipboard, and a memory of what was entrusted to the app."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from random import Random
from typing import TypeVar

from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from app.controllers.core import Core
from app.conversation.tree import Conversation
from app.store.conversations import ConversationStore
from app.viewmodels.models import ModelPhase
from app.viewmodels.transcript import TranscriptItem
from app.widgets.chat_pane import ChatPane
from app.widgets.commands import CommandId
from app.widgets.composer_edit import ComposerEdit
from app.widgets.main_window import MainWindow
from app.widgets.transcript.rows.row import RowAction
from engine.catalog.card import ModelCard
from engine.types import ConversationId
from tests.fakes.ask_store import PATIENCE_S, ask_store
from tests.fakes.real_window import RealWindow, open_real_window
from tests.fakes.rig import FakeCatalog
from tests.person.words import some_text

T = TypeVar("T")

MARKER = re.compile(r"m\d+;")

GRID = 12  # pixels; every target in the transcript is larger
LEFT = Qt.MouseButton.LeftButton
CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


class Person:
    """Sees what is on the screen; knows which texts the app has taken."""

    def __init__(self, data_dir: Path, cards: tuple[ModelCard, ...], random: Random) -> None:
        self.random = random
        self.cards = cards
        self.entrusted: dict[str, ConversationId] = {}  # marker of a message, where it was sent
        self._data_dir = data_dir
        self._numbers = count(1)
        self._opened: AbstractContextManager[RealWindow] | None = None
        self._real: RealWindow | None = None

    # Starting and ending the app.

    def launch(self) -> None:
        path = self.cards[0].path if self._real is None else None
        self._opened = open_real_window(self._data_dir, path, FakeCatalog(self.cards))
        self._real = self._opened.__enter__()
        self.wait_until(lambda: self.core.models.status.phase is ModelPhase.READY)
        self.settle()

    def leave(self) -> None:
        assert self._opened is not None
        self._opened.__exit__(None, None, None)
        QTest.qWait(1)
        self._opened = None

    @property
    def is_at_the_window(self) -> bool:
        return self._opened is not None

    # What there is to see.

    @property
    def real(self) -> RealWindow:
        assert self._real is not None
        return self._real

    @property
    def core(self) -> Core:
        return self.real.core

    @property
    def window(self) -> MainWindow:
        return self.real.window

    @property
    def pane(self) -> ChatPane:
        return self.window.pane

    @property
    def edit(self) -> ComposerEdit:
        return self.pane.composer.edit

    @property
    def current(self) -> ConversationId:
        return self.core.library.current

    @property
    def conversation(self) -> Conversation:
        return self.core.desk.get(self.current)

    @property
    def items(self) -> tuple[TranscriptItem, ...]:
        return self.pane.transcript.items

    @property
    def texts(self) -> list[str]:
        return [item.text for item in self.items]

    @property
    def shown_texts(self) -> list[str]:
        """As Markdown takes them: random weights write any character."""
        return [
            text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
            for text in self.texts
        ]

    @property
    def answers(self) -> bool:
        """Whether an answer is on its way in the chat on show."""
        return self.core.turns.live_in(self.current) is not None

    @property
    def listed(self) -> list[ConversationId]:
        return [one.conversation_id for one in self.core.library.summaries]

    @property
    def clipboard(self) -> str:
        return QGuiApplication.clipboard().text()

    # Hands.

    def some_text(self) -> str:
        return some_text(self.random, f"m{next(self._numbers)};")

    def entrust(self, text: str) -> None:
        """A message was sent: from now on it may not be lost."""
        (marker,) = MARKER.findall(text)
        self.entrusted[marker] = self.current

    def let_go(self, text: str) -> None:
        """What came back into the composer is taken out of it."""
        for marker in MARKER.findall(text):
            if not any(marker in node.content for node in self.conversation.nodes.values()):
                self.entrusted.pop(marker, None)

    def press(
        self, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
    ) -> None:
        """A key, for whatever has the focus."""
        widget = QApplication.focusWidget() or self.window
        QTest.keyClick(widget, key, modifiers)
        self.settle()

    def write(self, text: str) -> None:
        """Into the composer, with Shift-Return for new lines; long texts are pasted.

        So is what QTest has no keys for.
        """
        self.edit.setFocus()
        if len(text) > 100 or not text.isascii():
            QGuiApplication.clipboard().setText(text)
            QTest.keyClick(self.edit, Qt.Key.Key_V, CTRL)
            return
        for number, line in enumerate(text.split("\n")):
            if number:
                QTest.keyClick(self.edit, Qt.Key.Key_Return, SHIFT)
            QTest.keyClicks(self.edit, line)

    def click(self, widget: QWidget, at: QPoint | None = None) -> None:
        QTest.mouseClick(widget, LEFT, pos=at or widget.rect().center())
        self.settle()

    def click_in_transcript(self, action: RowAction) -> bool:
        """One of the visible targets; whether there is one."""
        targets = self.targets(action)
        if targets:
            self.click(self.pane.view.viewport(), self.random.choice(targets))
        return bool(targets)

    def targets(self, action: RowAction) -> list[QPoint]:
        """Middles of what a click would act on, without what is hidden below another widget."""
        view = self.pane.view
        if not view.isVisible():
            return []
        found: list[QPoint] = []
        for y in range(0, view.viewport().height(), GRID):
            for x in range(0, view.viewport().width(), GRID):
                target = view.target_at(QPointF(x, y))
                if target is None or target.action is not action:
                    continue
                point = QPoint(x, y)
                is_new = all((point - other).manhattanLength() > 60 for other in found)
                if is_new and view.viewport().childAt(point) is None:
                    found.append(point)
        return found

    def run(self, command: CommandId) -> bool:
        """From the menu; whether it is not grey."""
        action = self.window.commands[command]
        can = action.isEnabled()
        if can:
            action.trigger()
            self.settle()
        return can

    # Time.

    def settle(self) -> None:
        """Let what is on its way between threads arrive."""
        self.stored(lambda store: store.summaries())
        QTest.qWait(1)
        if QApplication.activeWindow() is None:
            self.window.activateWindow()  # as a window manager does when a dialog closes

    def stored(self, call: Callable[[ConversationStore], T]) -> T:
        """Ask the store on its own thread and wait for the answer."""
        return ask_store(self.core.store, call)

    def wait_until(self, is_true: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not is_true():
            assert time.monotonic() < until, "it does not come to an end"
            QTest.qWait(2)

    def wait_for_answers(self) -> None:
        self.wait_until(lambda: not self.core.turns.live)
        self.settle()
