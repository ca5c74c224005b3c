"""The app as tests.benchmarks.rest measures it, in a process of its own.

    python -m tests.benchmarks.resting_window DATA_DIR MODEL_DIR

Sends one message, and prints "rests" once the answer is complete, its state is on disk and no idle
work is left. Then it carries out the orders on standard input, one a line, and prints a line of JSON
after each:

    caret    show the window and give the composer the focus
    minimise, hide
    names    the names of Python's threads, by their ids
    timers   the timers that fire within TIMERS_MS, by their receivers
    quit
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QEvent, QObject, QSocketNotifier, QTimer
from PySide6.QtWidgets import QApplication
from typing_extensions import override

from app.controllers.core import Core
from app.conversation.tree import Setup
from app.launch import launch
from app.options import Options
from app.widgets.main_window import MainWindow
from engine.config import EngineConfig
from engine.early_reading import EarlyReading
from engine.events import Event
from engine.hosts.hostfile import Hosts
from engine.hosts.switched_engine import SwitchedEngine

TIMERS_MS = 10_000
_MESSAGE = "Name a colour."
_SETTLE_MS = 1000


class TimerCounts(QObject):
    """The number of timer events by receiver."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counter[str]()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Timer:
            owner = watched.parent() if isinstance(watched, QTimer) else watched
            self.counts[
                f"{type(owner).__name__} {owner.objectName() if owner else ''}".strip()
            ] += 1
        return False


class Orders(QObject):
    """The orders on standard input. Qt's event loop reads them, without a thread or a timer."""

    def __init__(self) -> None:
        super().__init__()
        self._notifier = QSocketNotifier(sys.stdin.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._obey)
        self._timers = TimerCounts()

    @property
    def _window(self) -> MainWindow:
        tops = QApplication.topLevelWidgets()
        return next(one for one in tops if isinstance(one, MainWindow))

    def begin(self, core: Core) -> None:
        """Send the message, and report when the engine has nothing left to do."""

        def await_idle() -> None:
            if not core.turns.live:
                core.turns.activity_changed.disconnect(await_idle)
                # Read-ahead and titles are queued after the answer.
                QTimer.singleShot(_SETTLE_MS, report_idle)

        def report_idle() -> None:
            asked = core.bridge.engine.await_idle()
            core.bridge.when_answered(asked, lambda _: report("rests"))

        core.turns.activity_changed.connect(await_idle)
        core.chat.set_setup(core.library.current, Setup(max_tokens=16))
        core.chat.send(core.library.current, _MESSAGE)

    def _obey(self) -> None:
        match sys.stdin.readline().strip():
            case "caret":
                self._window.showNormal()
                self._window.activateWindow()
                self._window.pane.composer.edit.setFocus()
                self._later(_SETTLE_MS, self._report_window)
            case "minimise":
                self._window.showMinimized()
                self._later(_SETTLE_MS, self._report_window)
            case "hide":
                self._window.hide()
                self._later(_SETTLE_MS, self._report_window)
            case "names":
                report({str(one.native_id): one.name for one in threading.enumerate()})
            case "timers":
                self._count_timers()
            case _:
                QCoreApplication.quit()

    def _later(self, milliseconds: int, call: Callable[[], None]) -> None:
        QTimer.singleShot(milliseconds, self, call)

    def _report_window(self) -> None:
        window = self._window
        report(
            {
                "visible": window.isVisible(),
                "minimised": window.isMinimized(),
                "active": window.isActiveWindow(),
                "caret": window.pane.composer.edit.hasFocus(),
            }
        )

    def _count_timers(self) -> None:
        app = QApplication.instance()
        assert app is not None

        def end() -> None:
            app.removeEventFilter(self._timers)
            report(dict(self._timers.counts))

        self._timers.counts.clear()
        app.installEventFilter(self._timers)
        self._later(TIMERS_MS, end)


def report(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def main() -> int:
    data, model = map(Path, sys.argv[1:])
    orders: list[Orders] = []
    init, start = SwitchedEngine.__init__, Core.start

    def hooked(
        self: SwitchedEngine,
        config: EngineConfig,
        on_event: Callable[[Event], None],
        early_reading: EarlyReading | None = None,
        hosts: Hosts | None = None,
    ) -> None:
        # State is written at once, which otherwise begins after a minute.
        init(self, replace(config, disk_rest_s=0.0), on_event, early_reading, hosts)

    def start_and_begin(self: Core) -> None:
        start(self)
        orders.append(Orders())
        orders[0].begin(self)

    SwitchedEngine.__init__, Core.start = hooked, start_and_begin
    return launch(data, Options(model=model))


if __name__ == "__main__":
    sys.exit(main())
