"""A transcript view without the main window, and mouse and clipboard actions on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from PySide6.QtCore import QPoint, QPointF, QRect, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.theme.palette import Theme
from app.viewmodels.transcript import TranscriptItem
from app.widgets.transcript.rows.row import RowAction
from app.widgets.transcript.view import TranscriptView

WIDTH, HEIGHT = 800, 600
LEFT = Qt.MouseButton.LeftButton
GRID = 12  # distance in pixels of the points that targets() tries; every click target is larger
SETTLE_MS = 20_000


class FakeClock:
    """A clock for the view. Its time changes only when a test sets `now`, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class TranscriptStage:
    """A transcript view of a fixed size, with a fake clock and a record of the emitted signals."""

    def __init__(self, qtbot: QtBot, theme: Theme) -> None:
        self.qtbot = qtbot
        self.clock = FakeClock()
        self.opened: list[str] = []  # addresses of the links that were clicked
        self.asked: list[str] = []  # requests to a controller, for example "delete u3"
        self.view = TranscriptView(theme, clock=self.clock, open_url=self._open)
        qtbot.addWidget(self.view)
        self._connect()
        self.view.resize(WIDTH, HEIGHT)
        self.view.show()
        self.view.activateWindow()

    @property
    def top(self) -> int:
        return self.view.verticalScrollBar().value()

    @property
    def end(self) -> int:
        return self.view.verticalScrollBar().maximum()

    def show(self, items: Sequence[TranscriptItem]) -> None:
        self.view.show_conversation(items)
        self.settle()

    def settle(self) -> None:
        """Wait until the view has finished its idle work."""
        self.qtbot.waitUntil(lambda: self.view.statistics().is_idle, timeout=SETTLE_MS)

    def picture(self) -> QImage:
        """Return a picture of the view, without the scroll bar, which is not always visible."""
        return self.view.viewport().grab(QRect(0, 0, WIDTH - 20, HEIGHT)).toImage()

    def find(self, action: RowAction, which: int = 0) -> QPoint:
        point = next(islice(targets(self.view, action), which, None), None)
        if point is None:
            raise LookupError(f"there are at most {which} visible targets of {action}")
        return point

    def has(self, action: RowAction) -> bool:
        try:
            self.find(action)
        except LookupError:
            return False
        return True

    def click(self, action: RowAction, which: int = 0) -> None:
        QTest.mouseClick(self.view.viewport(), LEFT, pos=self.find(action, which))

    def double_click(self, point: QPoint) -> None:
        viewport = self.view.viewport()
        QTest.mouseDClick(viewport, LEFT, pos=point)
        QTest.mouseRelease(viewport, LEFT, pos=point)  # mouseDClick ends with a press

    def drag(self, start: QPoint, end: QPoint) -> None:
        viewport = self.view.viewport()
        QTest.mousePress(viewport, LEFT, pos=start)
        QTest.mouseMove(viewport, (start + end) / 2)
        QTest.mouseMove(viewport, end)
        QTest.mouseRelease(viewport, LEFT, pos=end)

    def copied(self) -> str:
        """Copy the selection and return the text on the clipboard."""
        self.view.selection.copy()
        return self.clipboard()

    def clipboard(self) -> str:
        return QGuiApplication.clipboard().text()

    def _connect(self) -> None:
        def note(word: str) -> Callable[[str], None]:
            return lambda key: self.asked.append(f"{word} {key}")

        def note_requested(key: str, action: RowAction) -> None:
            self.asked.append(f"{action.name.lower()} {key}")

        def note_submitted(key: str, text: str) -> None:
            self.asked.append(f"submit {key} {text!r}")

        def note_saved(name: str, text: str) -> None:
            self.asked.append(f"save {name} {text!r}")

        view = self.view
        view.click_actions.requested.connect(note_requested)
        view.click_actions.save_requested.connect(note_saved)
        view.editor_host.cancelled.connect(note("cancel"))
        view.editor_host.submitted.connect(note_submitted)

    def _open(self, url: QUrl) -> None:
        self.opened.append(url.toString())


def targets(view: TranscriptView, action: RowAction) -> Iterator[QPoint]:
    """Yield a point in each visible button or link with the given action, from the top.

    Targets below another widget are skipped."""
    found: list[QPoint] = []
    for y in range(GRID // 2, view.viewport().height(), GRID):
        for x in range(GRID // 2, view.viewport().width(), GRID):
            point = QPoint(x, y)
            target = view.target_at(QPointF(point))
            if target is None or target.action is not action:
                continue
            is_new = all((point - other).manhattanLength() > 60 for other in found)
            if is_new and view.viewport().childAt(point) is None:
                found.append(point)
                yield point
