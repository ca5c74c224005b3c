"""From the command to the window: the data folder's one user, and what must be there before Qt is imported."""

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
    """Run the app until it is closed, or let the one that runs do what is asked; the exit status."""
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
            # A fault while Qt is imported is written down, too; and who hands over needs none of it.
            from app.main import open_window  # noqa: PLC0415

            return open_window(paths, options, listener=listener, last_crash=crashes.last)
    except AlreadyRunningError:
        model = () if options.model is None else (options.model,)
        if options.selftest is None and hand_over(paths.data_dir, (*model, *options.files)):
            return 0
        raise


def _nobody_reads() -> bool:
    """The Finder started the app: there is no terminal."""
    return bundle_resources(Path(sys.prefix)) is not None and not sys.stderr.isatty()


def _absolute(path: Path) -> Path:
    """As the one that runs will read it, from another working folder."""
    return path.expanduser().absolute()
