"""The window's composition root: creates every object once and passes it to its users.

app.launch calls `open_window` once it holds the lock on the data folder. `open_window` starts the
log, loads the settings, and builds the Core and the MainWindow. The Core has the controllers, the
engine and the store. Then `open_window` runs Qt's event loop, and closes everything at the end.
Main thread. The order in time:

    read_early()      begin to read the model's files, on another thread
    core.open()       load the list of conversations, which needs no engine
    window.show()     first paint; the window then emits `painted`, once
    core.start()      start the engine, because importing its libraries takes seconds
    app.exec()        run until the app quits
    on_end()          report to later starts that this process is about to end
    callers.close()   accept no more hand-overs
    end()             save everything, stop the engine and join every thread
    os._exit()        in app/__main__.py

end() first hides the window. It waits ENGINE_S for the engine, which may be in a longer pass, and
stores the text that has arrived.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import Qt

from app.bridge.callers import Callers
from app.bridge.garbage import GarbageSearch
from app.bridge.quit_signals import QuitSignals
from app.bridge.reports import catch_unexpected, log_qt_messages, start_log
from app.controllers.core import Core
from app.controllers.origin import SystemOrigin
from app.controllers.seams import Seams
from app.login_item import login_item
from app.options import Options
from app.paths import Paths
from app.settings import Appearance, Settings, load_settings, remove_leftovers
from app.store.place import DataPlace
from app.theme.icons import app_icon
from app.theme.palette import Theme
from app.thread_switching import switch_threads_often
from app.widgets import closing_note
from app.widgets.application import Application
from app.widgets.lone_sheet import show_problem
from app.widgets.main_window import MainWindow
from app.widgets.transcript.accessibility.canvas import install_accessibility
from app.widgets.window_frame import bring_to_front
from app.words import window as words
from engine.config import EngineConfig
from engine.early_reading import EarlyReading
from engine.hosts.switched_engine import SwitchedEngine
from engine.local_models import LocalModels
from engine.problem import Problem

log = logging.getLogger(__name__)

# Seconds after which a quitting process waits no more for the engine. While other programs use the
# GPU, one pass of a large model can take longer. The text of an answer is stored all the same.
ENGINE_S = 0.7

T = TypeVar("T")


def open_window(
    paths: Paths,
    options: Options,
    *,
    listener: socket.socket | None,
    last_crash: Path | None,
    on_end: Callable[[], None],
) -> int:
    """Run the app until it is closed; return the exit status.

    Args:
        paths: the folders of the app.
        options: the options of the command line.
        listener: the socket for hand-overs from later processes.
        last_crash: the crash log of the last run.
        on_end: called when the window is gone, before everything is saved.

    Raises:
        DiskError: the log cannot be written, or the settings cannot be read.
    """
    start_log(paths.logs_dir, debug=options.debug)
    remove_leftovers(paths.settings)
    loaded = load_settings(paths.settings)
    log_qt_messages()
    switch_threads_often()
    early_reading = read_early(options, loaded.settings)
    app = make_application()
    garbage = GarbageSearch(app)
    theme = make_theme(app, loaded.settings.appearance)
    origin = SystemOrigin()
    core = Core(make_seams(paths, options, loaded.settings, origin, early_reading))
    window = MainWindow(theme, core, origin)
    catch_unexpected(window.show_problem)
    window.painted.connect(garbage.spare_all)
    show(window, core, options)
    report_start(window, loaded.problem, last_crash)
    signals = QuitSignals()
    signals.received.connect(lambda: app.exit(0))  # quits without asking the user for confirmation
    callers = listener and Callers(listener)
    listen_to_others(app, callers, window, core)
    status = app.exec()
    on_end()
    if callers is not None:
        callers.close()
    end(window, core, ENGINE_S)
    # Close this after end(), because a signal during end() must not end the process before
    # everything is saved.
    signals.close()
    return status


def show(window: MainWindow, core: Core, options: Options) -> None:
    """Load the conversations and show the window. Start the engine once the window is painted."""
    window.painted.connect(partial(core.open_files, options.files))
    window.painted.connect(core.start)
    window.painted.connect(lambda: log.info("the window is open"))
    if options.selftest is not None:
        # Imported here: a normal start does not need the self-test.
        from app.selftest import SelfTest  # noqa: PLC0415

        SelfTest(window, core, options.selftest)  # a child of the window, which keeps it alive
    core.open()
    window.show()


def report_start(window: MainWindow, problem: Problem | None, last_crash: Path | None) -> None:
    """Show the problem with the settings, and the notice of a crash in the last run."""
    if problem is not None:
        window.show_problem(problem)
    if last_crash is not None:
        window.pane.app_notice.show_crash(last_crash)


def read_early(options: Options, settings: Settings) -> EarlyReading:
    """Begin to read the model that was chosen last, while the window is created."""
    early_reading = EarlyReading()
    model = options.model or (settings.model_path and Path(settings.model_path))
    is_divided = options.hosts is not None or settings.several_macs
    if model and not is_divided:
        early_reading.start(model)
    return early_reading


def make_seams(
    paths: Paths,
    options: Options,
    settings: Settings,
    origin: SystemOrigin,
    early_reading: EarlyReading,
) -> Seams:
    """Return the parts of Core that tests replace: engine factory, store, catalog, clocks."""
    place = DataPlace(paths.data_dir)
    config = EngineConfig(
        on_cpu=options.selftest is not None and options.selftest.on_cpu,
        abilities_folder=paths.abilities_dir,
        picture_folder=place.pictures.folder,
    )
    return Seams(
        make_engine=lambda on_event: SwitchedEngine(config, on_event, early_reading),
        open_store=lambda: place.open(now=origin.now()),
        catalog=LocalModels(paths),
        origin=origin,
        settings=settings,
        settings_path=paths.settings,
        place=place,
        logs_dir=paths.logs_dir,
        state_dir=paths.state_dir,
        model=options.model,
        hosts=options.hosts,
        login_item=login_item(paths.bundle),
        debug=options.debug,
    )


def tell(problem: Problem) -> None:
    """Show a sheet with an error that keeps the window from opening.

    app.launch calls this function. No Qt application exists at that time, because the error came
    before `open_window` made one. Return when the user closes the sheet.
    """
    app = make_application()  # keeps the application alive while the sheet is shown
    show_problem(problem, make_theme(app))


def wait_for_result(poll: Callable[[], T | None]) -> T | None:
    """Call `poll` until it returns a value, before the window is open. See closing_note.py."""
    app = make_application()
    return closing_note.wait_for_result(poll, make_theme(app))


def make_application() -> Application:
    """Create the Qt application, set its name and icon, and install accessibility support.

    Return the application that a note before the window has created, if there is one.
    """
    if isinstance(made := Application.instance(), Application):
        return made
    # macOS also sends an event for each file on the command line. Qt gets argv here and drops the
    # event of each file that argv names, so no file is opened twice.
    app = Application(sys.argv)
    app.setApplicationName(words.APP_NAME)
    app.setApplicationDisplayName(words.APP_NAME)
    # On macOS an app keeps running without a window; a click on its Dock icon shows it again.
    app.setQuitOnLastWindowClosed(sys.platform != "darwin")
    app.setWindowIcon(app_icon())
    install_accessibility()
    return app


def make_theme(app: Application, appearance: Appearance = Appearance.SYSTEM) -> Theme:
    """Return the theme of the application, which a note before the window may have made."""
    theme = app.findChild(Theme) or Theme(app, appearance)
    theme.set_appearance(appearance)
    return theme


def end(window: MainWindow, core: Core, engine_s: float = 30.0) -> None:
    """Hide the window, save its drafts and settings, then stop the engine and every thread.

    engine_s: see Core.close.
    """
    # The engine is about to stop, so do not let it read ahead the drafts that flush() saves.
    core.read_ahead.stop()
    window.flush()
    core.library.unseen.note_cut_off()
    window.hide()
    core.close(engine_s)


def listen_to_others(
    app: Application, callers: Callers | None, window: MainWindow, core: Core
) -> None:
    """Connect the requests of the system and of later processes: open files, show the window."""

    def on_called(files: tuple[Path, ...]) -> None:
        bring_to_front(window)
        core.open_files(files)

    def on_state_changed(state: Qt.ApplicationState) -> None:
        if state == Qt.ApplicationState.ApplicationActive and not window.isVisible():
            window.show()

    app.files_opened.connect(on_called)
    if callers is not None:
        callers.called.connect(on_called)
    # a click on the Dock icon shows the window again after it was closed
    if sys.platform == "darwin":
        app.applicationStateChanged.connect(on_state_changed)
