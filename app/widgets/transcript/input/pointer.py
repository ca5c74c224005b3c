"""The state of the mouse over the transcript: hover and pressed button.

Used on the main thread only. Messages are painted and are not widgets, so they receive no mouse
events. `MouseFilter` receives the events of the viewport and calls the methods of `Pointer`.
A target is a link or a button. `Pointer` finds the target below the mouse and updates the
selection. The view paints the hovered target and the selection. When the mouse button is pressed
and released on the same target, `Pointer` emits `clicked`, and `ClickActions` carries out the
click.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, QPoint, QPointF, Qt, QTimer, Signal

from app.theme.tokens import Millis
from app.widgets.transcript.layout.placement import ScrollAnchor
from app.widgets.transcript.layout.selection import Caret, Selection
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.layout.text_selection import TextSelection
from app.widgets.transcript.messages.places import MessageHit, Place, RowTarget, Spot
from app.widgets.transcript.rows.row import RowAction

_AUTO_SCROLL_MS = 30
# If the user drags the mouse outside the view, one scroll step is this fraction of the distance
# between mouse and view.
_AUTO_SCROLL_SHARE = 0.3
# Targets in a text that can be selected: a press may begin a selection.
_IN_TEXT = (RowAction.OPEN_LINK, RowAction.EXPLAIN)
_DRAG = 4  # minimum length in pixels of a drag that selects text


@dataclass(frozen=True, slots=True)
class Click:
    """A click on a link or button of a message."""

    message: int  # index of the message in the MessageStack
    at: RowTarget


class Pointer(QObject):
    """Turns mouse events into the hovered target, clicks and the selection."""

    clicked = Signal(object)  # a target was pressed and released; argument: a Click
    text_dragged = Signal(str)  # the selected text is dragged; argument: the text to copy
    pressed = Signal()  # the left mouse button was pressed in the transcript
    changed = Signal()  # the hovered target, the selection or `confirmed` changed: paint again
    pointed = Signal()  # the mouse or the content moved, so `shape` may have changed

    def __init__(
        self,
        stack: MessageStack,
        placement: ScrollAnchor,
        selection: TextSelection,
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self.hit: MessageHit | None = None  # the button or link below the mouse
        self.message: int | None = None  # index of the message below the mouse
        self.confirmed: RowTarget | None = None  # button that shows "Copied" until a timer ends
        self._stack = stack
        self._placement = placement
        self._selection = selection
        self._point = QPointF()  # last position of the mouse in the viewport
        # The click to emit if the mouse button is released on the target on which it was pressed.
        self._pressed: Click | None = None
        # Position at which the mouse button was pressed. None if the button is not pressed, or if a
        # drag from there does not select text.
        self._press_point: QPointF | None = None
        self._dragging = False  # True if the mouse has moved far enough to select or drag text
        self._holds_text = False  # True if the mouse button was pressed on the selected text
        self._confirm_timer = _timer(self, Millis.COPIED, self._end_confirmation)
        self._auto_scroll = _timer(self, _AUTO_SCROLL_MS, self._scroll_on)
        selection.changed.connect(self.changed)

    @property
    def key(self) -> str | None:
        """The key of the message below the mouse."""
        return None if self.message is None else self._stack.layouts[self.message].item.key

    @property
    def hovered(self) -> RowTarget | None:
        return None if self.hit is None else self.hit.at

    @property
    def shape(self) -> Qt.CursorShape:
        """The shape of the mouse cursor for the content below it."""
        if self.hit is not None and self.hit.at.target.action is not RowAction.EXPLAIN:
            is_link = self.hit.at.target.action is RowAction.OPEN_LINK
            return Qt.CursorShape.PointingHandCursor if is_link else Qt.CursorShape.ArrowCursor
        spot = self._placement.spot_at(self._point)
        is_text = spot is not None and self._stack.layouts[spot.message].places.has_text_at(spot.y)
        return Qt.CursorShape.IBeamCursor if is_text else Qt.CursorShape.ArrowCursor

    def press(self, point: QPointF) -> None:
        """Start a click or a selection.

        On a button, start a click. On text, start a selection. On a link, start a click and a
        selection: if the user drags the mouse, the text is selected and the link does not open. On
        selected text, start a drag of the text, or a click that removes the selection.
        """
        self.pressed.emit()
        self._move_to(point)
        spot = self._placement.spot_at(point)
        self._pressed = None
        self._dragging = self._holds_text = False
        self._press_point = point
        if spot is None:
            self._selection.select(None)
            return
        if self.hit is not None:
            self._pressed = Click(spot.message, self.hit.at)
            if self.hit.at.target.action not in _IN_TEXT:
                self._press_point = None
                return
        caret, selection = self._caret(spot), self._selection.value
        self._holds_text = selection is not None and selection.holds(caret)
        if not self._holds_text:
            self._selection.select(Selection(caret, caret))

    def extend(self, point: QPointF) -> None:
        """Move the end of the selection to a point. The start of the selection does not move."""
        spot = self._placement.spot_at(point)
        selection = self._selection.value
        if spot is not None and selection is not None:
            self._selection.select(Selection(selection.anchor, self._caret(spot)))

    def drag(self, point: QPointF) -> None:
        """Extend the selection to the mouse while the left mouse button is pressed.

        If the mouse is outside the view, scroll towards the mouse.
        """
        self._point = point
        if self._press_point is None or self._selection.value is None:
            return
        if not self._dragging and (point - self._press_point).manhattanLength() < _DRAG:
            return
        self._dragging = True
        if self._holds_text:
            self._press_point = self._pressed = None
            self.text_dragged.emit(self._selection.text)  # no event of the release follows
            return
        self.extend(point)
        if self._placement.distance_outside(point):
            if not self._auto_scroll.isActive():
                self._auto_scroll.start()
        else:
            self._auto_scroll.stop()

    def release(self, point: QPointF) -> None:
        """End a drag, or emit `clicked` if the mouse is still on the pressed target."""
        self._auto_scroll.stop()
        self._press_point = None
        self._move_to(point)
        if self._holds_text and not self._dragging:
            self._selection.select(None)
        self._holds_text = False
        pressed, self._pressed = self._pressed, None
        if self._dragging or pressed is None or pressed.at != self.hovered:
            return
        self.clicked.emit(pressed)

    def select_word(self, point: QPointF) -> None:
        """Select the word at the point of a double click."""
        spot = self._placement.spot_at(point)
        is_text = self.hit is None or self.hit.at.target.action is RowAction.EXPLAIN
        if spot is None or not is_text:
            return
        place = self._caret(spot).place
        row = self._stack.layouts[spot.message].places.text_row(place.row)
        if row is None:
            return
        start = end = place.offset
        while start > 0 and _is_word(row.text[start - 1]):
            start -= 1
        while end < len(row.text) and _is_word(row.text[end]):
            end += 1
        self._selection.select(
            Selection(
                Caret(spot.message, Place(place.row, start)),
                Caret(spot.message, Place(place.row, end)),
            )
        )

    def hover(self, point: QPointF) -> None:
        """Update the hovered target.

        Call this method when the mouse moves and its left button is not pressed.
        """
        self._move_to(point)

    def wheel(self, point: QPointF, moved: QPoint) -> bool:
        """Scroll the row at a point sideways.

        Return False if the whole row is visible or the movement is mainly vertical: the caller must
        then scroll the view. An upward movement also stops the automatic scrolling to the end of a
        growing answer.
        """
        is_sideways = abs(moved.x()) > abs(moved.y())
        if is_sideways and self._scroll_row(point, -moved.x()):
            self.changed.emit()
            return True
        if moved.y() > 0 and not is_sideways:
            self._placement.hold()
        return False

    def refresh(self) -> None:
        """Update the target below the mouse after the content has moved."""
        if self.message is not None:
            self._move_to(self._point)

    def leave(self) -> None:
        self.hit = None
        self.message = None
        self.changed.emit()

    def confirm(self, at: RowTarget) -> None:
        """Show "Copied" or a similar confirmation on a clicked button for a moment."""
        self.confirmed = at
        self._confirm_timer.start()
        self.changed.emit()

    def _move_to(self, point: QPointF) -> None:
        self._point = point
        spot = self._placement.spot_at(point)
        message = None if spot is None else spot.message
        hit = None if spot is None else self._stack.layouts[spot.message].hit(spot.x, spot.y)
        changed = (message, hit) != (self.message, self.hit)
        self.message, self.hit = message, hit
        if changed:
            self.changed.emit()
        self.pointed.emit()

    def _scroll_row(self, point: QPointF, pixels: int) -> bool:
        spot = self._placement.spot_at(point)
        row = None if spot is None else self._stack.layouts[spot.message].row_at(spot.y)
        return row is not None and row.scroll_sideways(pixels)

    def _caret(self, spot: Spot) -> Caret:
        layout = self._stack.layouts[spot.message]
        place = layout.places.place_at(spot.x, spot.y)
        return Caret(spot.message, place)

    def _end_confirmation(self) -> None:
        self._confirm_timer.stop()
        self.confirmed = None
        self.changed.emit()

    def _scroll_on(self) -> None:
        """Scroll one step towards the mouse, which is outside the view. Extend the selection."""
        outside = self._placement.distance_outside(self._point)
        self._placement.scroll_by(round(outside * _AUTO_SCROLL_SHARE))
        self.extend(self._point)


def _timer(parent: QObject, interval: int, slot: Callable[[], None]) -> QTimer:
    timer = QTimer(parent)
    timer.setInterval(interval)
    timer.timeout.connect(slot)
    return timer


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
