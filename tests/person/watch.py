"""Collection of exceptions, Qt warnings and logged errors during a run of the seeded user."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from types import TracebackType

from PySide6.QtCore import QMessageLogContext, QtMsgType, qInstallMessageHandler
from typing_extensions import override

# Beginning of harmless warnings of Qt's offscreen platform, about sizes, raised windows and keys.
HARMLESS = "This plugin does not support"
HARMLESS_KINDS = frozenset({QtMsgType.QtDebugMsg, QtMsgType.QtInfoMsg})


class _Listener(logging.Handler):
    def __init__(self, trouble: list[str]) -> None:
        super().__init__(logging.ERROR)
        self._trouble = trouble

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self._trouble.append(self.format(record))


@contextmanager
def watch() -> Generator[list[str]]:
    """Yield a list to which the text of each error is added until the context ends."""
    trouble: list[str] = []

    def on_exception(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        trouble.append("".join(traceback.format_exception(kind, error, trace)))

    def on_thread_exception(args: threading.ExceptHookArgs) -> None:
        trouble.append(f"in {args.thread}: {args.exc_value!r}")

    def on_message(kind: QtMsgType, context: QMessageLogContext, text: str) -> None:
        if kind not in HARMLESS_KINDS and not text.startswith(HARMLESS):
            trouble.append(f"Qt, {context.category}: {text}")

    hooks = sys.excepthook, threading.excepthook
    sys.excepthook, threading.excepthook = on_exception, on_thread_exception
    before = qInstallMessageHandler(on_message)
    listener = _Listener(trouble)
    logging.getLogger().addHandler(listener)
    try:
        yield trouble
    finally:
        logging.getLogger().removeHandler(listener)
        qInstallMessageHandler(before)
        sys.excepthook, threading.excepthook = hooks
