"""The steps of a start that need no Qt: create folders, lock the data folder, open the crash log.

app/__main__.py calls `launch` if the command line names no terminal command. The return value
becomes the exit status of the process.

Only one process may use a data folder, and the InstanceLock decides which:

    first process     locks the data folder, opens the socket for hand-overs and the crash log,
                      imports Qt and runs app.main.open_window until the app ends
    second process    sends its model and files to the socket of the first one, which opens them
                      and brings its window to the front; exits with status 0

A first process that has quit its window saves for about a second before it ends. A second process
then waits for the lock, with a note (app.widgets.closing_note), and becomes the first one.

The second process fails with an AlreadyRunningError if the first one does not answer. A second
process that is a self-test always fails in this way, because it must check its own window.

An EngineError in any step, also in open_window, is printed to standard error, and the exit status
is 1. If the app bundle was started without a terminal, a sheet shows the error too. Any other
exception ends the process with a traceback, which the crash log records once it is open.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from enum import Enum, auto
from functools import partial
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
        # A self-test shows no sheet, because the test must end without a click.
        if options.selftest is None and _nobody_reads():
            from app.main import tell  # noqa: PLC0415

            tell(error.problem)
        return 1


class _Start(Enum):
    """The outcome of a start."""

    FIRST = auto()  # this process holds the lock
    HANDED_OVER = auto()  # another process holds the lock and opens the files


def _run(paths: Paths, options: Options) -> int:
    with ExitStack() as stack:
        lock = InstanceLock(paths.data_dir)
        stack.callback(lock.release)
        if options.selftest is not None:
            lock.acquire()
        elif _start(lock, paths.data_dir, options) is not _Start.FIRST:
            return 0
        listener = stack.enter_context(listening(paths.data_dir))
        crashes = stack.enter_context(CrashLog(paths.logs_dir))
        # Imported after the crash log is open, which records a crash during the import of Qt. A
        # process that only hands over its files does not need Qt.
        from app.main import open_window  # noqa: PLC0415

        # crashes.last: path of the last run's crash log; None if that run did not crash
        return open_window(
            paths, options, listener=listener, last_crash=crashes.last, on_end=lock.note_end
        )


def _start(lock: InstanceLock, data_dir: Path, options: Options) -> _Start | None:
    """Lock the data folder or hand over, and wait for a process that is closing.

    Return None if the user does not want to wait.
    """
    # Send the model folder together with the files: the first process opens all paths in the same
    # way.
    model = () if options.model is None else (options.model,)
    attempt = partial(_try_start, lock, data_dir, (*model, *options.files))
    start = attempt()
    if start is None:
        from app.main import wait_for_result  # noqa: PLC0415

        start = wait_for_result(attempt)
    return start


def _try_start(lock: InstanceLock, data_dir: Path, files: Sequence[Path]) -> _Start | None:
    """Lock the data folder or hand over. Return None if the process with the lock is closing.

    Raises:
        AlreadyRunningError: the process with the lock does not answer.
    """
    try:
        lock.acquire()
    except AlreadyRunningError:
        if lock.is_ending():
            return None
        if hand_over(data_dir, files):
            return _Start.HANDED_OVER
        if lock.is_ending():  # since the call
            return None
        raise
    return _Start.FIRST


def _nobody_reads() -> bool:
    """Return True if the app bundle was started without a terminal, so that no one sees stderr."""
    return bundle_resources(Path(sys.prefix)) is not None and not sys.stderr.isatty()


def _absolute(path: Path) -> Path:
    """Return the absolute path.

    A relative path could name another file in the process that opens it.
    """
    return path.expanduser().absolute()
