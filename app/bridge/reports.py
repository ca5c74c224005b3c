"""The log file, and the handlers that send uncaught exceptions and Qt's messages to it."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Callable
from io import FileIO, TextIOWrapper
from pathlib import Path
from types import TracebackType

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler
from typing_extensions import override

from app.words import problems as words
from engine.errors import DiskError, problem_of
from engine.problem import Problem

log = logging.getLogger(__name__)

# If the log file is larger than this, the next start renames it and begins a new one.
LOG_BYTES = 1_000_000

_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


class PrivateFileHandler(logging.FileHandler):
    """A log file that only its owner can read."""

    @override
    def _open(self) -> TextIOWrapper:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        return TextIOWrapper(FileIO(os.open(self.baseFilename, flags, 0o600), "a"), "utf-8")


def start_log(folder: Path, *, debug: bool = False) -> None:
    """Send the log of this process to the file rejoinder.log in `folder`.

    A log file over LOG_BYTES is renamed first. With `debug`, the packages app and engine log at
    level DEBUG, and the log also goes to standard error.

    Raises:
        DiskError: the log cannot be written.
    """
    path = folder / "rejoinder.log"
    try:
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.replace(path.with_suffix(".old.log"))
        handler = PrivateFileHandler(path)
    except OSError as error:
        raise DiskError(words.cannot_write_log(path, error.strerror)) from error
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    formatter = logging.Formatter("%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s")
    for each in [handler, logging.StreamHandler()] if debug else [handler]:
        each.setFormatter(formatter)
        root.addHandler(each)
    for package in ("app", "engine"):
        logging.getLogger(package).setLevel(logging.DEBUG if debug else logging.NOTSET)


def catch_unexpected(report: Callable[[Problem], None]) -> None:
    """Log all uncaught exceptions. Call `report` for an exception of the main thread."""

    def on_exception(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        log.critical("uncaught exception", exc_info=(kind, error, trace))
        report(problem_of(error))

    def on_thread_exception(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            log.critical("uncaught exception in %s", args.thread, exc_info=args.exc_value)

    sys.excepthook = on_exception
    threading.excepthook = on_thread_exception


def log_qt_messages() -> None:
    """Send Qt's messages to the log. After a fatal message, print the cause and exit."""
    # messages of Qt's platform plugins; the first one has the reason why no window can be shown
    causes: list[str] = []

    def on_message(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
        log.log(_LEVELS[kind], "%s: %s", context.category, text)
        if context.category.startswith("qt.qpa"):
            causes.append(text)
        if kind == QtMsgType.QtFatalMsg:
            sys.stderr.write(words.no_window((causes or text.splitlines())[0]) + "\n")
            sys.stderr.flush()
            # exit here, because Qt aborts the process when this handler of a fatal message ends
            os._exit(1)

    qInstallMessageHandler(on_message)
