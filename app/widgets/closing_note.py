"""The note of a start that waits until an earlier run of the app has closed. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import QMessageBox

from app.words import dialogs as words, window
from engine.errors import EngineError

T = TypeVar("T")

_POLL_MS: Final = 50
_NOTE_MS: Final = 1000  # most runs have closed by then, so that no note appears


def wait_for_result(poll: Callable[[], T | None]) -> T | None:
    """Call `poll` repeatedly until it returns a value. Return this value.

    Show a note after a second. Return None if the user cancels the note.

    Raises:
        EngineError: `poll` has raised it.
    """
    loop = QEventLoop()
    results: list[T | EngineError] = []

    def call_poll() -> None:
        try:
            result = poll()
        except EngineError as error:
            results.append(error)
        else:
            if result is None:
                return
            results.append(result)
        timer.stop()
        loop.quit()

    note = QMessageBox(
        QMessageBox.Icon.Information,
        window.APP_NAME,
        words.STILL_CLOSING,
        QMessageBox.StandardButton.Cancel,
    )
    note.setInformativeText(words.STILL_CLOSING_ADVICE)
    note.finished.connect(loop.quit)
    QTimer.singleShot(_NOTE_MS, note, note.open)
    timer = QTimer(note, interval=_POLL_MS)
    timer.timeout.connect(call_poll)
    timer.start()
    loop.exec()
    note.deleteLater()
    timer.stop()
    for result in results:
        if isinstance(result, EngineError):
            raise result
        return result
    return None
