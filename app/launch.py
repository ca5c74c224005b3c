"""The steps of a start that need no Qt: create folders, lock the data folder, open the crash log.

app/__main__.py calls `launch` if the command line names no terminal command. The return value
becomes the exit status of the process.

Only one process may use a data folder, and the InstanceLock decides which:

    first process     locks the data folder, opens the socket for hand-overs and the crash log,
                      imports Qt and runs app.main.open_window until the app ends
    second process    sends its model and files to the socket of the first one, which opens them
                      and brings its window to the front; exits with status 0

The second process fails with an AlreadyRunningError if the first one does not answer. A second
process that is a self-test always fails in this way, because it must check its own window.

An EngineError in any step, also in open_window, is printed to standard error, and the exit status
is 1. If the app bundle was started without a terminal, a message box shows the error too. Any other
exception ends the process with a traceback, which the crash log records once it is open.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from app.crashes import CrashLog
from app.hand_over import hand_over, listening
from app.options import Options
from app.paths import Paths, bundle_resources, make_paths
from app.store.errors import AlreadyRunningError
from app.store.lock import InstanceLock
from engine.errors import EngineError


def launch(data_dir: Path | None, options: Options) -> int:
    """Run the app, or hand over to a process that already runs; return the exit status.

    Args:
        data_dir: folder for all files of the app, or None for the usual folders of the system.
        options: options of the command line. Their relative paths are made absolute here.
    """
    model = options.model and _absolute(options.model)
    files = tuple(_absolute(file) for file in options.files)
    try:
        return _run(make_paths(data_dir), replace(options, model=model, files=files))
    except EngineError as error:
        sys.stderr.write(f"{error.problem}\n")
        # A self-test shows no message box, because the test must end without a click.
        if options.selftest is None and _nobody_reads():
            from app.main import tell  # noqa: PLC0415

            tell(error.problem)
        return 1


def _run(paths: Paths, options: Options) -> int:
    try:
        with (
            InstanceLock(paths.data_dir),
            listening(paths.data_dir) as listener,
            CrashLog(paths.logs_dir) as crashes,
        ):
            # Imported after the crash log is open, which records a crash during the import of Qt. A
            # process that only hands over its files does not need Qt.
            from app.main import open_window  # noqa: PLC0415

            # crashes.last: path of the last run's crash log; None if that run did not crash
            return open_window(paths, options, listener=listener, last_crash=crashes.last)
    except AlreadyRunningError:  # raised by InstanceLock
        # Send the model folder together with the files: the first process opens all paths in the
        # same way.
        model = () if options.model is None else (options.model,)
        if options.selftest is None and hand_over(paths.data_dir, (*model, *options.files)):
            return 0
        raise


def _nobody_reads() -> bool:
    """Return True if the app bundle was started without a terminal, so that no one sees stderr."""
    return bundle_resources(Path(sys.prefix)) is not None and not sys.stderr.isatty()


def _absolute(path: Path) -> Path:
    """Return the absolute path.

    A relative path could name another file in the process that opens it.
    """
    return path.expanduser().absolute()
