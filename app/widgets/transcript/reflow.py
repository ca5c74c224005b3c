"""The layout of the transcript after a change. Main thread only.

A change of texts, heights, width or scroll position ends with a call of this class. It lays out the
visible messages, moves the widgets that lie over them, and repaints as little as possible. Exact
heights outside the view follow in idle time. The view decides which change needs which call.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from app.widgets.transcript.editor.host import EditorHost
from app.widgets.transcript.jump import JumpButton
from app.widgets.transcript.layout.idle import IdleWork, ThinkingTick
from app.widgets.transcript.layout.placement import ScrollAnchor
from app.widgets.transcript.layout.scroll import NEAR_END
from app.widgets.transcript.layout.selection import FIRST_PLACE, Caret
from app.widgets.transcript.layout.stack import MessageStack


class Reflow(QObject):
    """Lays out what is visible and repaints it. Starts the idle work on the rest."""

    laid_out = Signal()  # visible rows may have moved, or others may have taken their place
    measured = Signal()  # heights outside the view have changed

    def __init__(
        self,
        stack: MessageStack,
        placement: ScrollAnchor,
        canvas: QWidget,
        editor_host: EditorHost,
        jump: JumpButton,
    ) -> None:
        super().__init__(canvas)
        self._stack = stack
        self._placement = placement
        self._canvas = canvas
        self._editor_host = editor_host
        self._jump = jump
        self.idle = IdleWork(stack, self)
        self._tick = ThinkingTick(stack, self)
        editor_host.size_changed.connect(self.lay_out)
        editor_host.grown.connect(self._follow_editor)
        self.idle.measured.connect(self._on_measured)
        self.idle.colored.connect(canvas.update)
        self._tick.ticked.connect(self.lay_out)

    def lay_out(self, *, parses: bool = True) -> None:
        """Lay out the visible messages and repaint the whole viewport.

        parses: False to leave text that has no rows yet to the idle work.
        """
        self._stack.resize(self._placement.column_width)
        self._settle(parses=parses)
        self._canvas.update()

    def shift(self) -> None:
        """Lay out the visible messages. If the text moved, scroll or repaint the viewport."""
        moved, canvas = self._settle(), self._canvas
        if moved is None or not canvas.devicePixelRatio().is_integer():
            canvas.update()
        elif moved:
            canvas.scroll(0, moved)
            self._place_widgets()  # canvas.scroll() also moved the child widgets: move them back

    def show_growth(self) -> None:
        """Show text that was appended to the last message. Repaint only from the topmost change."""
        self.shift()
        y, canvas = self._placement.changed_from(len(self._stack) - 1), self._canvas
        canvas.update(0, y, canvas.width(), canvas.height() - y)

    def show_editor(self, index: int) -> None:
        """Scroll to the editor of a message, which has opened or grown, unless it is visible."""
        height = self._stack.layouts[index].content.editor_size.height()
        self._placement.reveal_editor(index, height)
        self.lay_out()

    def show_message(self, index: int) -> None:
        """Scroll to the beginning of a message, unless it is visible."""
        self._placement.reveal(Caret(index, FIRST_PLACE))
        self.lay_out()

    def remeasure(self) -> None:
        """Lay out the rows whose formulas were typeset."""
        if self._stack.remeasure():
            self.lay_out(parses=False)

    def start_idle_work(self) -> None:
        """Start the idle work, first on the message at the top of the view."""
        self.idle.start(self._stack.at(self._placement.top))

    def _settle(self, *, parses: bool = True) -> int | None:
        """Lay out the visible messages. Return the pixels by which the text moved, or None."""
        moved = self._placement.lay_out_visible(parses=parses)
        self._place_widgets()
        self._tick.update()
        self.laid_out.emit()
        self.start_idle_work()
        return moved

    def _place_widgets(self) -> None:
        self._editor_host.place(self._placement.column_left, self._placement.top)
        self._jump.place(self._placement.column_left, self._placement.column_width)
        is_far = self._placement.distance_to_end > 2 * NEAR_END
        is_covered = self._editor_host.covers(self._jump.geometry())
        self._jump.setVisible(is_far and self._jump.has_room and not is_covered)

    def _follow_editor(self) -> None:
        index = self._stack.index_of(self._editor_host.key)
        if index is not None:
            self.show_editor(index)

    def _on_measured(self, first: int, last: int) -> None:
        height = self._canvas.height()
        visible = self._stack.visible(self._placement.top, height)
        measured = (index for index in visible if first <= index <= last)
        if any(self._placement.changed_from(index) < height for index in measured):
            self.lay_out(parses=False)  # do not parse here: the idle work has just parsed a slice
        else:
            self._placement.update_bar()
            self._place_widgets()
            self.measured.emit()
