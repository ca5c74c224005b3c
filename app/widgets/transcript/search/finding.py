"""Find in the transcript: goes to what is found, counts it and marks it in the scroll bar. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from app.theme.tokens import Millis
from app.viewmodels.find import FindPosition
from app.widgets.transcript.input.pointer import Pointer
from app.widgets.transcript.layout.placement import Placement
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.search.finder import Finder
from app.widgets.transcript.search.marks import MarkedBar, Marks


class Finding(QObject):
    """What the strip above the transcript asks; number and marks stay true while messages change."""

    counted = Signal(object)  # Found: it has changed by itself
    chosen = Signal()  # lay out what is shown now

    def __init__(
        self,
        stack: MessageStack,
        finder: Finder,
        placement: Placement,
        pointer: Pointer,
        bar: MarkedBar,
    ) -> None:
        super().__init__(pointer)
        self._stack = stack
        self._finder = finder
        self._placement = placement
        self._pointer = pointer
        self._bar = bar
        self._found = FindPosition()
        self._timer = QTimer(self, singleShot=True, interval=Millis.MARKS)
        self._timer.timeout.connect(self._recount)
        bar.resized.connect(self.touch)

    def look_for(self, text: str) -> FindPosition:
        """Look for a text from here on, and show where it is; end looking if there are no words."""
        self._finder.look_for(text, self._stack.at(self._placement.top))
        return self.go(0)

    def go(self, step: int) -> FindPosition:
        """Show the next occurrence (1) or the one before (-1)."""
        self._found = self._finder.go(step)
        selection = self._finder.selection
        if selection is not None:
            self._pointer.select(selection)
            self._placement.reveal(selection.start)
        self.chosen.emit()
        self._finder.reveal()
        self._mark()
        return self._found

    def touch(self) -> None:
        """Messages or their heights have changed: see to it soon, once for many changes."""
        if self._finder.is_looking and not self._timer.isActive():
            self._timer.start()

    def _recount(self) -> None:
        found = self._finder.recount()
        self._mark()
        if found != self._found:
            self._found = found
            self.counted.emit(found)

    def _mark(self) -> None:
        self._bar.marks = self._finder.marks(self._bar.height()) if self._found.total else Marks()
