"""From the command to the window: the data folder's one user, and what must be there before Qt is imported."""

from __future__ import annotations

import sys
from pathlib import Path

from app.crashes import CrashLog
from app.hand_over import hand_over, listening
from app.paths import Paths, make_paths
from app.store.errors import AlreadyRunningError
from app.store.lock import InstanceLock
from engine.errors import EngineError


def launch(*, data_dir: Path | None, model: Path | None, files: tuple[Path, ...] = ()) -> int:
    """Run the app until it is closed, or let the one that runs do what is asked; the exit status."""
    model = model and _absolute(model)
    files = tuple(_absolute(file) for file in files)
    try:
        paths = make_paths(data_dir)
        return _run(paths, model, files)
    except EngineError as error:
        sys.stderr.write(f"{error.problem}\n")
        return 1


def _run(paths: Paths, model: Path | None, files: tuple[Path, ...]) -> int:
    try:
        with (
            InstanceLock(paths.data_dir),
            listening(paths.data_dir) as listener,
            CrashLog(paths.logs_dir) as crashes,
        ):
            # A fault while Qt is imported is written down, too; and who hands over needs none of it.
            from app.main import open_window  # noqa: PLC0415

            return open_window(
                paths, model=model, files=files, listener=listener, last_crash=crashes.last
            )
    except AlreadyRunningError:
        if hand_over(paths.data_dir, files if model is None else (model, *files)):
            return 0
        raise


def _absolute(path: Path) -> Path:
    """As the one that runs will read it, from another working folder."""
    return path.expanduser().absolute()
