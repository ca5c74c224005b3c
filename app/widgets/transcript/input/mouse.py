"""Forward the mouse events of the viewport to `Pointer`. Used on the main thread only."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, Qt, Signal
from PySide6.QtGui import QDrag, QHelpEvent, QMouseEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea
from typing_extensions import override

from app.widgets.tips import hide_tip, is_tip_shown, show_tip
from app.widgets.transcript.input.pointer import Pointer
from app.widgets.transcript.messages.places import MessageHit
from app.widgets.transcript.rows.sideways import wheel_pixels
from app.words import costs


class MouseFilter(QObject):
    """An event filter of the viewport for mouse, wheel and tooltip events.

    The filter also sets the shape of the mouse cursor.
    """

    # The tooltip of a button is shown. Arguments: key of the message, RowAction, a function that
    # adds the cost of the action to the tooltip.
    tip_shown = Signal(str, object, object)

    def __init__(self, pointer: Pointer, area: QAbstractScrollArea) -> None:
        super().__init__(area)
        self._pointer = pointer
        self._area = area
        pointer.pointed.connect(self._set_cursor)
        pointer.text_dragged.connect(self._drag_text)
        area.viewport().setMouseTracking(True)
        area.viewport().installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QMouseEvent):
            return self._mouse(event)
        if isinstance(event, QWheelEvent):
            # If wheel() returns False, the scroll area gets the event and scrolls the view.
            return self._pointer.wheel(event.position(), wheel_pixels(event))
        if isinstance(event, QHelpEvent):
            self._show_tip(event)
            return True
        if event.type() is QEvent.Type.Leave:
            self._pointer.leave()
            hide_tip()
        return False

    def _set_cursor(self) -> None:
        shape = self._pointer.shape
        if self._area.viewport().cursor().shape() is not shape:
            self._area.viewport().setCursor(shape)

    def _drag_text(self, text: str) -> None:
        """Let the user drop a text into a field or another app. Return when it is dropped."""
        drag, mime = QDrag(self._area.viewport()), QMimeData()
        mime.setText(text)
        drag.setMimeData(mime)
        drag.exec(Qt.DropAction.CopyAction)

    def _show_tip(self, event: QHelpEvent) -> None:
        hit, key = self._pointer.hit, self._pointer.key
        show_tip(self._area, event.globalPos(), "" if hit is None else hit.tip)
        if hit is not None and key is not None:
            add = partial(self._add_cost, hit, event.globalPos())
            self.tip_shown.emit(key, hit.at.target.action, add)

    def _add_cost(self, hit: MessageHit, at: QPoint, cost: str) -> None:
        if self._pointer.hit == hit and is_tip_shown():
            show_tip(self._area, at, costs.of_action(hit.tip, cost))

    def _mouse(self, event: QMouseEvent) -> bool:
        left, point = Qt.MouseButton.LeftButton, event.position()
        if event.type() is QEvent.Type.MouseMove:
            if event.buttons() & left:
                self._pointer.drag(point)
            else:
                before = self._pointer.hovered
                self._pointer.hover(point)
                if self._pointer.hovered != before:
                    hide_tip()  # Qt hides it only when the mouse leaves the viewport
            return True
        if event.button() is not left:
            return False
        match event.type():
            case QEvent.Type.MouseButtonPress:
                self._press(event)
            case QEvent.Type.MouseButtonRelease:
                self._pointer.release(point)
            case QEvent.Type.MouseButtonDblClick:
                self._press(event)
                self._pointer.select_word(point)
            case _:
                pass
        return True

    def _press(self, event: QMouseEvent) -> None:
        self._area.setFocus(Qt.FocusReason.MouseFocusReason)
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._pointer.extend(event.position())
        else:
            self._pointer.press(event.position())
