"""Keyboard focus on the links and buttons of the transcript. Used on the main thread only.

Links and buttons are painted and are not widgets, so Qt cannot focus them. A target is a link or a
button. `TargetFocus` stores one focused target and paints a ring around this target. Tab and
Shift+Tab move the focus to the next and the previous visible target. After the last target, the
focus leaves the transcript. The Return key clicks the focused target. While an answer grows, its
rows are replaced. `TargetFocus` then finds the target in the new rows by its message, action and
number.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QObject, QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPen

from app.theme.tokens import Radius, Space
from app.widgets.transcript.input.pointer import Click, Pointer
from app.widgets.transcript.layout.placement import ScrollAnchor
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.messages.places import MessageHit
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Target


@dataclass(frozen=True, slots=True)
class _Stop:
    """The identity of a link or button that Tab can focus. Valid even if its row is replaced."""

    message: int  # index of the message in the MessageStack
    target: Target
    # Index among the links and buttons of the message that have the same action and address.
    number: int


class TargetFocus(QObject):
    """The keyboard focus inside the transcript: at most one focused link or button."""

    moved = Signal(bool)  # a key moved the focus; argument: True if a link or button is focused

    def __init__(
        self,
        stack: MessageStack,
        placement: ScrollAnchor,
        pointer: Pointer,
        view_height: Callable[[], int],
    ) -> None:
        super().__init__(pointer)
        # The focused link or button. None if nothing is focused, or if its row is not laid out.
        self.hit: MessageHit | None = None
        self._stack = stack
        self._placement = placement
        self._pointer = pointer
        self._view_height = view_height  # function that returns the height of the view
        self._stop: _Stop | None = None  # the focused target; kept even if its row does not exist
        self._is_over = False  # True after Esc: the next Tab leaves the transcript
        pointer.pressed.connect(self.drop)
        pointer.changed.connect(self.refresh)

    @property
    def message(self) -> int | None:
        """Index of the message that contains the focused target, or None."""
        return None if self.hit is None or self._stop is None else self._stop.message

    def step(self, *, forward: bool) -> bool:
        """Focus the next or previous visible target.

        Return False if the focus must leave the transcript. A step back from the first target
        unfocuses it but returns True, because the transcript keeps the focus.
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
        """Click the focused target. Return False if no target is focused."""
        if self.hit is None or self._stop is None:
            return False
        self._pointer.clicked.emit(Click(self._stop.message, self.hit.at))
        return True

    def leave(self) -> bool:
        """Unfocus the target and let the next Tab leave the transcript.

        Return False if no target is focused.
        """
        was_there = self.hit is not None
        if was_there:
            self._is_over = True
            self._go(None)
        return was_there

    def drop(self) -> None:
        """Unfocus the target. Call when the transcript loses the focus or is clicked."""
        self._stop, self._is_over = None, False
        self.refresh()

    def refresh(self) -> None:
        """Find the focused target again after rows were moved or replaced."""
        before, self.hit = self.hit, None
        stop = self._stop
        if stop is not None and stop.message < len(self._stack):
            self.hit = dict(self._stops(stop.message)).get(stop)
        if self.hit != before:
            self._pointer.changed.emit()

    def paint(self, painter: QPainter, look: Look) -> None:
        """Paint a ring around the focused target."""
        if self.hit is not None and self._stop is not None:
            painter.setPen(QPen(QColor(look.colors.accent), Space.HAIR))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            ring = self._on_canvas(self._stop.message, self.hit)
            ring.adjust(-Space.HAIR, -1, Space.HAIR, 1)
            painter.drawRoundedRect(ring, Radius.ROW, Radius.ROW)

    def _go(self, stop: _Stop | None) -> None:
        self._stop = stop
        self.refresh()
        if stop is not None and self.hit is not None:
            self._bring_in(self.hit)
            self._scroll_to(stop.message, self.hit)
        self.moved.emit(stop is not None)

    def _bring_in(self, hit: MessageHit) -> None:
        """Scroll a row, such as a wide table, sideways until the focused target is visible."""
        row, rect = hit.at.row, hit.rect.translated(-hit.row_left, 0)
        beyond = max(0.0, rect.right() - row.width) + min(0.0, rect.left())
        if beyond and row.scroll_sideways(round(beyond)):
            self.refresh()

    def _scroll_to(self, message: int, hit: MessageHit) -> None:
        """Scroll the view until the whole target is visible."""
        rect = self._on_canvas(message, hit)
        below = max(0.0, rect.bottom() - self._view_height())
        if pixels := below + min(0.0, rect.top()):
            self._placement.scroll_by(math.ceil(pixels) if pixels > 0 else math.floor(pixels))
            self.refresh()

    def _seen(self) -> Iterator[_Stop]:
        """Yield the visible targets. A target is visible if its middle is in the view."""
        height = self._view_height()
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
