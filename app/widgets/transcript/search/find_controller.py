"""Connect the find bar with the transcript: show occurrences, and keep their count up to date.

Used on the main thread only.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from app.theme.tokens import Millis
from app.viewmodels.find import FindPosition
from app.widgets.transcript.layout.placement import ScrollAnchor
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.layout.text_selection import TextSelection
from app.widgets.transcript.search.marks import MarkedBar, Marks
from app.widgets.transcript.search.match_finder import MatchFinder


class FindController(QObject):
    """Carries out the find commands of the transcript, and updates the marks in its scroll bar.

    While a search is in progress, the occurrences are counted again after messages have changed.
    """

    # Argument: the new FindPosition. Emitted when the count is different after messages have
    # changed.
    counted = Signal(object)
    chosen = Signal()  # an occurrence was chosen; the view must lay out the visible messages

    def __init__(
        self,
        stack: MessageStack,
        finder: MatchFinder,
        placement: ScrollAnchor,
        selection: TextSelection,
        bar: MarkedBar,
    ) -> None:
        super().__init__(selection)
        self._stack = stack
        self._finder = finder
        self._placement = placement
        self._selection = selection
        self._bar = bar
        self._found = FindPosition()  # last position that was returned or emitted
        self._timer = QTimer(self, singleShot=True, interval=Millis.MARKS)
        self._timer.timeout.connect(self._recount)
        bar.resized.connect(self.touch)

    def look_for(self, text: str) -> FindPosition:
        """Search for a text from the top of the view downwards, and show the first occurrence.

        A text without words ends the search.
        """
        self._finder.look_for(text, self._stack.at(self._placement.top))
        return self.go(0)

    def look_in(self, key: str, text: str) -> FindPosition:
        """Search for a text, and show its first occurrence in a message that begins a word.

        If the message has no occurrence, end the search.
        """
        self._finder.look_for(text, self._stack.at(self._placement.top))
        if not self._finder.enter(key):
            self._finder.look_for("", 0)
        return self.go(0)

    def go(self, step: int) -> FindPosition:
        """Show the next occurrence (step 1), the previous one (-1) or the first one (0)."""
        self._found = self._finder.go(step)
        selection = self._finder.selection
        if selection is not None:
            self._selection.select(selection)
            self._placement.reveal(selection.start)
        elif self._finder.is_looking:
            self._selection.select(None)  # the occurrence of a shorter text is not one of this text
        self.chosen.emit()
        self._finder.reveal()
        self._mark()
        return self._found

    def touch(self) -> None:
        """Schedule a recount. Call when messages or their heights have changed.

        Several calls in a short time cause only one recount.
        """
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
