"""The window's composition root: makes every object once and hands it down."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from app.bridge.garbage import GarbageSearch
from app.bridge.quit_signals import QuitSignals
from app.bridge.reports import catch_unexpected, log_qt_messages, start_log
from app.controllers.core import Core, Seams
from app.controllers.origin import SystemOrigin
from app.local_models import LocalModels
from app.paths import Paths, make_paths
from app.selftest import SelfTest, SelfTestOptions
from app.settings import LoadedSettings, load_settings
from app.store.conversations import open_store
from app.store.lock import InstanceLock
from app.theme.icons import app_icon
from app.theme.palette import Theme
from app.widgets.main_window import MainWindow
from app.widgets.transcript.access import install_accessibility
from app.words import window as words
from engine.config import EngineConfig
from engine.engine import Engine
from engine.errors import EngineError

log = logging.getLogger(__name__)

# Seconds after which a busy thread lets another one run. A frame asks for the interpreter at every call into
# Qt, and with Python's own 5 ms each could wait as long for the thread that sets formulas or writes tokens:
# the longest gap of the main thread in an answer with formulas was 127 ms, with this it is 39.
SWITCH_S = 0.0002


def open_window(
    *, data_dir: Path | None, model: Path | None, selftest: SelfTestOptions | None = None
) -> int:
    """Run the app until it is closed; return the exit status."""
    try:
        paths = make_paths(data_dir)
        with InstanceLock(paths.data_dir):
            start_log(paths.logs_dir)
            return _run(paths, load_settings(paths.settings), model, selftest)
    except EngineError as error:
        sys.stderr.write(f"{error.problem}\n")
        return 1


def switch_threads_often() -> None:
    """The main thread need not wait long for the others."""
    sys.setswitchinterval(SWITCH_S)


def _run(
    paths: Paths, loaded: LoadedSettings, model: Path | None, selftest: SelfTestOptions | None
) -> int:
    log_qt_messages()
    switch_threads_often()
    app = QApplication(sys.argv[:1])
    garbage = GarbageSearch(app)
    app.setApplicationName(words.APP_NAME)
    app.setApplicationDisplayName(words.APP_NAME)
    app.setQuitOnLastWindowClosed(sys.platform != "darwin")
    app.setWindowIcon(app_icon())
    install_accessibility()
    theme = Theme(app, loaded.settings.appearance)
    config = EngineConfig(on_cpu=selftest is not None and selftest.on_cpu)
    origin = SystemOrigin()
    core = Core(
        Seams(
            make_engine=lambda on_event: Engine(config, on_event),
            open_store=lambda: open_store(paths.database, now=origin.now()),
            catalog=LocalModels(paths.data_dir),
            origin=origin,
            settings=loaded.settings,
            settings_path=paths.settings,
            model=model and model.expanduser().absolute(),
        )
    )
    window = MainWindow(theme, core, origin)
    catch_unexpected(window.say_problem)
    window.painted.connect(garbage.spare_all)
    window.painted.connect(core.start)
    window.painted.connect(lambda: log.info("the window is open"))
    if selftest is not None:
        SelfTest(window, core, selftest)
    core.open()
    window.show()
    if loaded.problem is not None:
        window.say_problem(loaded.problem)
    signals = QuitSignals()
    signals.received.connect(lambda: app.exit(0))  # asks nobody
    _reopen_when_activated(app, window)
    status = app.exec()
    end(window, core)
    signals.close()
    garbage.close()
    return status


def end(window: MainWindow, core: Core) -> None:
    """Keep what is written, stop what runs."""
    core.read_ahead.stop()  # what the window hands over now is for the next start
    window.flush()
    window.hide()
    core.close()


def _reopen_when_activated(app: QApplication, window: MainWindow) -> None:
    """On a Mac a closed window comes back with a click in the Dock."""

    def on_state_changed(state: Qt.ApplicationState) -> None:
        if state == Qt.ApplicationState.ApplicationActive and not window.isVisible():
            window.show()

    if sys.platform == "darwin":
        app.applicationStateChanged.connect(on_state_changed)
