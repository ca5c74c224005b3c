"""The note of a start that waits until an earlier run of the app has closed. Main thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from PySide6.QtCore import QEventLoop, Qt, QTimer

from app.theme.palette import Theme
from app.widgets.lone_sheet import LoneSheet
from app.words import dialogs as words
from engine.errors import EngineError

T = TypeVar("T")

_POLL_MS: Final = 50
_NOTE_MS: Final = 1000  # most runs have closed by then, so that no note appears


def wait_for_result(poll: Callable[[], T | None], theme: Theme) -> T | None:
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

    note = LoneSheet(theme, words.STILL_CLOSING, words.STILL_CLOSING_ADVICE, words.CANCEL)
    note.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, on=False)  # deleted below
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
