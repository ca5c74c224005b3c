"""The window's composition root: makes every object once and hands it down."""

from __future__ import annotations

import logging
import socket
import sys
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt

from app.bridge.callers import Callers
from app.bridge.garbage import GarbageSearch
from app.bridge.quit_signals import QuitSignals
from app.bridge.reports import catch_unexpected, log_qt_messages, start_log
from app.controllers.core import Core, Seams
from app.controllers.origin import SystemOrigin
from app.options import Options
from app.paths import Paths
from app.settings import Settings, load_settings
from app.store.conversations import open_store
from app.theme.icons import app_icon
from app.theme.palette import Theme
from app.widgets.application import Application
from app.widgets.dialogs import show_problem
from app.widgets.main_window import MainWindow
from app.widgets.transcript.accessibility.canvas import install_accessibility
from app.widgets.window_frame import bring_to_front
from app.words import window as words
from engine.config import EngineConfig
from engine.engine import Engine
from engine.local_models import LocalModels
from engine.types import Problem

log = logging.getLogger(__name__)

# Seconds after which a busy thread lets another one run. A frame asks for the interpreter at every call into
# Qt, and with Python's own 5 ms each could wait as long for the thread that sets formulas or writes tokens:
# the longest gap of the main thread in an answer with formulas was 127 ms, with this it is 39.
SWITCH_S = 0.0002


def open_window(
    paths: Paths, options: Options, *, listener: socket.socket | None, last_crash: Path | None
) -> int:
    """Run the app until it is closed; return the exit status.

    Raises:
        DiskError: the log or the settings can't be used.
    """
    start_log(paths.logs_dir, debug=options.debug)
    loaded = load_settings(paths.settings)
    log_qt_messages()
    switch_threads_often()
    app = make_application()
    garbage = GarbageSearch(app)
    theme = Theme(app, loaded.settings.appearance)
    origin = SystemOrigin()
    core = Core(make_seams(paths, options, loaded.settings, origin))
    window = MainWindow(theme, core, origin)
    catch_unexpected(window.show_problem)
    window.painted.connect(garbage.spare_all)
    window.painted.connect(partial(core.opening.open, options.files))
    window.painted.connect(core.start)
    window.painted.connect(lambda: log.info("the window is open"))
    if options.selftest is not None:
        # No other start waits for it.
        from app.selftest import SelfTest  # noqa: PLC0415

        SelfTest(window, core, options.selftest)
    core.open()
    window.show()
    if loaded.problem is not None:
        window.show_problem(loaded.problem)
    if last_crash is not None:
        window.pane.app_notice.show_crash(last_crash)
    signals = QuitSignals()
    signals.received.connect(lambda: app.exit(0))  # asks nobody
    callers = listener and Callers(listener)
    listen_to_others(app, callers, window, core)
    status = app.exec()
    if callers is not None:
        callers.close()
    end(window, core)
    signals.close()
    garbage.close()
    return status


def make_seams(paths: Paths, options: Options, settings: Settings, origin: SystemOrigin) -> Seams:
    """Return the real engine, store, catalog and clocks."""
    config = EngineConfig(on_cpu=options.selftest is not None and options.selftest.on_cpu)
    return Seams(
        make_engine=lambda on_event: Engine(config, on_event),
        open_store=lambda: open_store(paths.database, now=origin.now()),
        catalog=LocalModels(paths),
        origin=origin,
        settings=settings,
        settings_path=paths.settings,
        model=options.model,
        debug=options.debug,
    )


def tell(problem: Problem) -> None:
    """Why there will be no window."""
    _application = make_application()  # as long as the box is shown
    show_problem(problem)


def make_application() -> Application:
    """With what is true of the app before it has a window."""
    app = Application(sys.argv)  # Qt looks there which files the system names a second time
    app.setApplicationName(words.APP_NAME)
    app.setApplicationDisplayName(words.APP_NAME)
    app.setQuitOnLastWindowClosed(sys.platform != "darwin")
    app.setWindowIcon(app_icon())
    install_accessibility()
    return app


def switch_threads_often() -> None:
    """The main thread need not wait long for the others."""
    sys.setswitchinterval(SWITCH_S)


def end(window: MainWindow, core: Core) -> None:
    """Keep what is written, stop what runs."""
    core.read_ahead.stop()  # what the window hands over now is for the next start
    window.flush()
    window.hide()
    core.close()


def listen_to_others(
    app: Application, callers: Callers | None, window: MainWindow, core: Core
) -> None:
    """The system and a second Rejoinder bring the window to the front, and files to open."""

    def on_called(files: tuple[Path, ...]) -> None:
        bring_to_front(window)
        core.opening.open(files)

    def on_state_changed(state: Qt.ApplicationState) -> None:
        if state == Qt.ApplicationState.ApplicationActive and not window.isVisible():
            window.show()

    app.files_opened.connect(on_called)
    if callers is not None:
        callers.called.connect(on_called)
    if sys.platform == "darwin":  # a closed window comes back with a click in the Dock
        app.applicationStateChanged.connect(on_state_changed)
