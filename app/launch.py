"""The steps of a start that need no Qt: create folders, lock the data folder, open the crash log.

Only one process may use a data folder, and the InstanceLock decides which. A second process hands
its files over to the first one and exits. The first one opens the socket for hand-overs and the
crash log, then imports Qt and runs `app.main.open_window` until the app ends. An error during these
steps is printed to standard error.
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
    """Run the app, or hand over to a process that already runs; return the exit status."""
    model = options.model and _absolute(options.model)
    files = tuple(_absolute(file) for file in options.files)
    try:
        return _run(make_paths(data_dir), replace(options, model=model, files=files))
    except EngineError as error:
        sys.stderr.write(f"{error.problem}\n")
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
            # Imported here for two reasons. The crash log records a fault during the import of Qt.
            # A process that only hands over its files does not wait for the import.
            from app.main import open_window  # noqa: PLC0415

            return open_window(paths, options, listener=listener, last_crash=crashes.last)
    except AlreadyRunningError:
        model = () if options.model is None else (options.model,)
        if options.selftest is None and hand_over(paths.data_dir, (*model, *options.files)):
            return 0
        raise


def _nobody_reads() -> bool:
    """Return True if the app bundle was started without a terminal, for example by the Finder."""
    return bundle_resources(Path(sys.prefix)) is not None and not sys.stderr.isatty()


def _absolute(path: Path) -> Path:
    """Return the absolute path.

    The process that opens the file may have another working folder.
    """
    return path.expanduser().absolute()
