"""The main window in this process, and the actions of a user on it.

A test opens a WindowDriver, types and runs menu commands, waits with `settle` or `wait_until` until
the threads of the store and the engine have finished, and reads the shown messages (`items`,
`texts`). No other code in tests/ makes a MainWindow. The two subclasses differ in the engine:

    Stage       stage.py        a fake engine, played by a test  widgets, screenshots, bench_switch
    RealWindow  real_window.py  the real engine on its thread    tests.person, many_chats, e2e

Helpers without a MainWindow: TranscriptStage shows a transcript alone; Rig holds the controllers;
streaming_app.py runs the controllers in a process of its own, which a test kills; app_process.py
starts `python -m app` as a process, to which tests send only signals.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.controllers.core import Core
from app.controllers.origin import Origin
from app.main import end
from app.settings import Appearance
from app.store.conversations import ConversationStore
from app.theme.palette import Theme
from app.viewmodels.transcript import TranscriptItem
from app.widgets.chat_pane import ChatPane
from app.widgets.commands import CommandId
from app.widgets.composer_edit import ComposerEdit
from app.widgets.main_window import MainWindow
from engine.types import ConversationId
from tests.fakes.ask_store import PATIENCE_S, ask_store

T = TypeVar("T")

LOOK_MS = 2  # pause between two checks in wait_until


class WindowDriver:
    """A main window with a real or fake engine, and methods for user actions on the window."""

    core: Core
    theme: Theme
    window: MainWindow
    is_open = False

    def open(
        self,
        core: Core,
        origin: Origin,
        appearance: Appearance,
        size: tuple[int, int] | None = None,
    ) -> None:
        """Show a main window for these controllers and start them."""
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        # Delete an earlier window first: a new Theme would style it too, which takes 0.2 s.
        self.wait(0)
        self.core = core
        self.theme = Theme(app, appearance)
        self.window = MainWindow(self.theme, core, origin)
        if size is not None:
            self.window.resize(*size)
        self.is_open = True
        core.open()
        self.window.show()
        self.window.activateWindow()
        core.start()

    def close(self) -> None:
        """Close the window and its controllers, as when the app quits. May be called twice."""
        if not self.is_open:
            return
        self.is_open = False
        end(self.window, self.core)
        self.window.deleteLater()
        self.theme.deleteLater()

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
    def items(self) -> tuple[TranscriptItem, ...]:
        return self.pane.transcript.items

    @property
    def texts(self) -> list[str]:
        return [item.text for item in self.items]

    def type(self, text: str) -> None:
        """Type a text into the composer."""
        QTest.keyClicks(self.edit, text)

    def run(self, command: CommandId) -> None:
        """Trigger an enabled menu command, and wait for its effects."""
        action = self.window.commands[command]
        assert action.isEnabled(), command
        action.trigger()
        self.settle()

    def settle(self) -> None:
        """Wait until the store has run its queued calls and Qt has delivered the queued signals.

        Then lay out the widgets that the signals have changed.
        """
        self.stored(lambda store: store.summaries())
        self.wait(1)
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)

    def stored(self, call: Callable[[ConversationStore], T]) -> T:
        """Run a call on the store's thread and return its result."""
        return ask_store(self.core.store, call)

    def wait(self, milliseconds: int) -> None:
        QTest.qWait(milliseconds)

    def wait_until(self, is_true: Callable[[], bool], timeout_s: float = PATIENCE_S) -> None:
        until = time.monotonic() + timeout_s
        while not is_true():
            assert time.monotonic() < until, "the condition was not true within the time limit"
            self.wait(LOOK_MS)
