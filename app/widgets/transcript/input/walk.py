"""Keyboard focus on the links and buttons of the transcript. Used on the main thread only.

Links and buttons are painted, not widgets, so Qt cannot focus them. `Walk` marks one with a ring.
Tab and Shift+Tab move the ring over the targets in view; beyond the last one the focus leaves the
transcript. Return clicks the marked target. Rows are replaced while an answer grows, so the mark is
remembered as message, target and count, and found again in the new rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen

from app.theme.tokens import Radius, Space
from app.widgets.transcript.input.pointer import Click, Pointer
from app.widgets.transcript.layout.placement import Placement
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.messages.places import MessageHit
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Target


@dataclass(frozen=True, slots=True)
class _Stop:
    """A link or button that Tab stops at, described so that it outlives its row."""

    message: int  # index of the message in the stack
    target: Target
    number: int  # index among the equal targets of the message


class Walk(QObject):
    """Marks at most one link or button, and presses it."""

    moved = Signal(bool)  # a key moved or removed the mark; True: there is a mark

    def __init__(
        self,
        stack: MessageStack,
        placement: Placement,
        pointer: Pointer,
        seen_height: Callable[[], int],
    ) -> None:
        super().__init__(pointer)
        # The marked link or button in the current rows; None if its row is not laid out.
        self.hit: MessageHit | None = None
        self._stack = stack
        self._placement = placement
        self._pointer = pointer
        self._seen_height = seen_height  # returns the pixels of the view that nothing covers
        self._stop: _Stop | None = None  # the mark, also while its row is not laid out
        self._is_over = False  # True after Esc: the next Tab leaves the transcript
        pointer.pressed.connect(self.drop)
        pointer.changed.connect(self.refresh)

    @property
    def message(self) -> int | None:
        """Index of the message with the mark; None without a mark."""
        return None if self.hit is None or self._stop is None else self._stop.message

    def step(self, *, forward: bool) -> bool:
        """Move the mark to the next or previous target in view.

        Return False if the focus shall leave the transcript. Shift+Tab on the first target only
        removes the mark; the transcript keeps the focus.
        """
        stops = [] if self._is_over else list(self._seen())
        at = stops.index(self._stop) if self._stop in stops else -1
        if not forward and at < 0:
            self.drop()
            return False
        following = at + 1 if forward else at - 1
        self._go(stops[following] if 0 <= following < len(stops) else None)
        return following < len(stops)

    def press(self) -> bool:
        """Click the marked target; return False if there is no mark."""
        if self.hit is None or self._stop is None:
            return False
        self._pointer.clicked.emit(Click(self._stop.message, self.hit.at))
        return True

    def leave(self) -> bool:
        """Remove the mark and let the next Tab leave the transcript.

        Return False if there is no mark.
        """
        was_there = self.hit is not None
        if was_there:
            self._is_over = True
            self._go(None)
        return was_there

    def drop(self) -> None:
        """Remove the mark because the focus or the mouse is elsewhere."""
        self._stop, self._is_over = None, False
        self.refresh()

    def refresh(self) -> None:
        """Find the mark again after rows have moved or were replaced."""
        before, self.hit = self.hit, None
        stop = self._stop
        if stop is not None and stop.message < len(self._stack):
            self.hit = dict(self._stops(stop.message)).get(stop)
        if self.hit != before:
            self._pointer.changed.emit()

    def paint(self, painter: QPainter, look: Look) -> None:
        """Paint the focus ring around the mark."""
        if self.hit is not None and self._stop is not None:
            painter.setPen(QPen(QColor(look.colors.accent), Space.HAIR))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            ring = self._on_canvas(self._stop.message, self.hit)
            ring.adjust(-Space.HAIR, -1, Space.HAIR, 1)
            painter.drawRoundedRect(ring, Radius.ROW, Radius.ROW)

    def _go(self, stop: _Stop | None) -> None:
        self._stop = stop
        self.refresh()
        if self.hit is not None:
            self._bring_in(self.hit)
        self.moved.emit(stop is not None)

    def _bring_in(self, hit: MessageHit) -> None:
        """Scroll a wide table or code block sideways until the mark is visible."""
        row, rect = hit.at.row, hit.rect.translated(-hit.row_left, 0)
        beyond = max(0.0, rect.right() - row.width) + min(0.0, rect.left())
        if beyond and row.scroll_sideways(round(beyond)):
            self.refresh()

    def _seen(self) -> Iterator[_Stop]:
        """Yield the targets in view: those whose middle is visible."""
        height = self._seen_height()
        for message in self._stack.visible(self._placement.top, height):
            for stop, hit in self._stops(message):
                if 0 <= self._on_canvas(message, hit).center().y() < height:
                    yield stop

    def _stops(self, message: int) -> Iterator[tuple[_Stop, MessageHit]]:
        counts: Counter[Target] = Counter()
        for row in self._stack.layouts[message].clickable():
            for hit in row.hits:
                target = hit.at.target
                yield _Stop(message, target, counts[target]), hit
                counts[target] += 1

    def _on_canvas(self, message: int, hit: MessageHit) -> QRectF:
        y = self._stack.top(message) - self._placement.top
        return hit.rect.translated(self._placement.column_left, y)
