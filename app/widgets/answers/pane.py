"""The pane with several answers to one message side by side. Main thread.

The pane shows values and reports what the user wants. area.py connects it to the controllers.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QVBoxLayout, QWidget
from typing_extensions import override

from app.conversation.tree import NodeId
from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Space
from app.viewmodels.answers import AnswerColumnItem, differing_words
from app.viewmodels.comparing import ComparisonSteps
from app.widgets.answers.column import AnswerColumn
from app.widgets.answers.column_scroller import ColumnScroller
from app.widgets.button import Button
from app.widgets.fitting_label import FittingLabel
from app.widgets.icon_button import IconButton
from app.widgets.transcript.view import TranscriptView
from app.words import answers as words
from engine.types import Channel


class AnswersPane(QWidget):
    """Columns of answers below the question."""

    closed = Signal()  # the user closes the pane
    focus_changed = Signal()  # another answer is in focus
    used = Signal(str)  # argument: NodeId of the answer that the user chose
    stop_requested = Signal(str)  # argument: NodeId of a running answer
    regenerate_requested = Signal(str)  # argument: NodeId of an answer
    column_made = Signal(object)  # argument: the AnswerColumn

    def __init__(
        self, theme: Theme, transcript: TranscriptView, parent: QWidget | None = None
    ) -> None:
        """Make an empty pane. transcript: a view whose shelves the columns share."""
        super().__init__(parent)
        self.setObjectName("answers")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._theme = theme
        self._transcript = transcript
        self._zoom = 1.0
        self._columns: list[AnswerColumn] = []  # those in use first; none is deleted
        self._num_used = 0
        self._focused: NodeId | None = None
        self._marked: tuple[AnswerColumnItem, ...] = ()  # compared answers with marked words
        self.question = FittingLabel(self, "body")
        self.mark = Button(words.MARK, self)
        self.mark.setCheckable(True)
        self.close_button = IconButton(theme, Icon.CLOSE, words.CLOSE, self)
        self.scroller = ColumnScroller(self)
        self._build()
        self.mark.toggled.connect(self._mark_words)
        self.close_button.clicked.connect(self.closed)
        app = QApplication.instance()
        if isinstance(app, QApplication):
            app.focusChanged.connect(self._on_focus_changed)

    @property
    def columns(self) -> list[AnswerColumn]:
        """The columns in use, in order."""
        return self._columns[: self._num_used]

    @property
    def focused(self) -> AnswerColumn | None:
        """The column in focus; the first one if none is. None in an empty pane."""
        found = (one for one in self.columns if one.item.key == self._focused)
        return next(found, self.columns[0] if self._num_used else None)

    def show_answers(self, question: str, items: Sequence[AnswerColumnItem]) -> None:
        """Show answers, or newer states of those on show. Scroll to the last one if there are more.

        question: the message, in one line.
        """
        self.question.show_text(question)
        num_before, self._num_used = self._num_used, len(items)
        while len(self._columns) < len(items):
            self._columns.append(self._make_column())
        for column in self._columns[len(items) :]:
            column.hide()
            column.clear()
        for number, (column, item) in enumerate(zip(self.columns, items, strict=True)):
            column.set_place(is_first=number == 0)
            column.show()
            column.show_item(item)
        self.scroller.show_columns(self.columns, self._zoom)
        if len(items) > num_before:
            self.scroller.reveal(self.columns[-1])
        self._refresh_focus()
        self._mark_words()

    def clear(self) -> None:
        """Free the rows of all columns."""
        self.mark.setChecked(False)
        self._focused = None
        self.show_answers("", ())

    def append_delta(self, key: NodeId, channel: Channel, text: str) -> None:
        """Append streamed text to its column, if there is one."""
        for column in self.columns:
            if column.item.key == key:
                column.append_delta(channel, text)

    def focus_answer(self, key: NodeId, *, takes_focus: bool = True) -> None:
        """Put an answer into focus. takes_focus: True to move the keyboard focus there."""
        self._move_focus(key)
        if takes_focus and self.focused is not None:
            self.focused.view.setFocus()

    def can_step(self, step: int) -> bool:
        """Return True if there is an answer `step` places after the one in focus."""
        return 0 <= self._index + step < self._num_used

    def step(self, step: int) -> None:
        """Move the focus to the answer `step` places further, if there is one."""
        if self.can_step(step):
            self.focus_answer(self.columns[self._index + step].item.key)

    def set_zoom(self, zoom: float) -> None:
        """Scale the text of the answers by a factor from 0.8 to 2.0."""
        self._zoom = zoom
        for column in self._columns:
            column.view.set_zoom(zoom)
        self.scroller.show_columns(self.columns, zoom)

    @property
    def _index(self) -> int:
        focused = self.focused
        return 0 if focused is None else self.columns.index(focused)

    def _build(self) -> None:
        self.question.setIndent(0)
        bar = QWidget(self)
        bar.setObjectName("answersBar")
        bar.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        top = QHBoxLayout(bar)
        top.setContentsMargins(Space.M, Space.S, Space.S, Space.S)
        top.setSpacing(Space.S)
        top.addWidget(self.question, 1)
        top.addWidget(self.mark)
        top.addWidget(self.close_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(bar)
        layout.addWidget(self.scroller, 1)

    def _make_column(self) -> AnswerColumn:
        column = AnswerColumn(self._theme, self._transcript, self.scroller.content)
        column.hide()
        column.view.set_zoom(self._zoom)
        column.used.connect(lambda: self.used.emit(column.item.key))
        column.stop_requested.connect(lambda: self.stop_requested.emit(column.item.key))
        column.regenerate_requested.connect(lambda: self.regenerate_requested.emit(column.item.key))
        self.column_made.emit(column)
        return column

    def _refresh_focus(self) -> None:
        for column in self.columns:
            column.set_focused(column is self.focused)
        self.focus_changed.emit()

    def _move_focus(self, key: NodeId) -> None:
        self._focused = key
        if self.focused is not None:
            self.scroller.reveal(self.focused)
        self._refresh_focus()
        self._mark_words()

    def _on_focus_changed(self, _before: QWidget | None, now: QWidget | None) -> None:
        for column in self.columns:
            if now is not None and column.isAncestorOf(now) and column.item.key != self._focused:
                self._move_focus(column.item.key)

    def _mark_words(self) -> None:
        """Mark the words of ended answers that differ from the answer in focus."""
        can_mark = sum(not one.item.is_running for one in self.columns) > 1
        compared = self._to_compare()
        self.mark.setEnabled(can_mark)
        self.mark.setText(words.marked(compared[0].item.number) if compared else words.MARK)
        self.mark.setToolTip(words.MARK_TIP if can_mark else words.MARK_NONE)
        wanted = tuple(one.item for one in compared)
        if wanted == self._marked:
            return
        self._marked = wanted
        for column in self.columns:
            column.mark_words(())
        for column in compared[1:]:
            base = compared[0].texts_to_compare()
            spans = differing_words(base, column.texts_to_compare(), ComparisonSteps())
            column.mark_words(spans)

    def _to_compare(self) -> list[AnswerColumn]:
        """Return the answer to compare with, then those in which words are marked, or nothing."""
        base = self.focused
        if base is None or base.item.is_running or not self.mark.isChecked():
            return []
        others = [one for one in self.columns if one is not base and not one.item.is_running]
        return [base, *others] if others else []

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        else:
            super().keyPressEvent(event)
