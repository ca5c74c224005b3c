"""One of several answers that stand side by side: its header and its text. Main thread."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QGroupBox, QHBoxLayout, QVBoxLayout, QWidget
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Space
from app.viewmodels.answers import AnswerColumnItem
from app.viewmodels.comparing import Span
from app.viewmodels.transcript import ScrollPosition
from app.widgets.button import Button
from app.widgets.fitting_label import FittingLabel
from app.widgets.focus_ring import FocusRing
from app.widgets.icon_button import IconButton
from app.widgets.transcript.layout.stack import TOP_MARGIN
from app.widgets.transcript.rows.ranges import Range
from app.widgets.transcript.view import TranscriptView
from app.words import answers as words, commands
from engine.types import Channel

_RETURN = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class AnswerColumn(QGroupBox):
    """A column: a header with buttons, and a transcript of one answer."""

    used = Signal()  # the user chose this answer
    stop_requested = Signal()
    regenerate_requested = Signal()

    def __init__(self, theme: Theme, transcript: TranscriptView, parent: QWidget) -> None:
        """Make an empty column. transcript: a view whose shelves the view of the column shares."""
        super().__init__(parent)
        self.setObjectName("answerColumn")
        self._item: AnswerColumnItem | None = None
        self.heading = FittingLabel(self, "heading")
        self.differs = FittingLabel(self, "small", "secondary")
        self.state = FittingLabel(self, "small", "tertiary")
        self.again = IconButton(theme, Icon.REGENERATE, commands.REGENERATE, self)
        self.use = Button(words.USE, self)
        self.view = TranscriptView(theme, self, beside=transcript.shelves)
        self.view.focus_moved.connect(FocusRing(theme, self.view).setHidden)
        self._build()
        self.use.clicked.connect(self.used)
        self.again.clicked.connect(self._on_again)

    @property
    def item(self) -> AnswerColumnItem:
        """The answer. Read it only after show_item()."""
        assert self._item is not None
        return self._item

    def show_item(self, item: AnswerColumnItem) -> None:
        """Show an answer, or the newer state of the same answer."""
        before = self._item
        if item == before:
            return
        self._item = item
        self._refresh_header(item)
        if before is None or before.key != item.key:
            self.view.show_conversation((item.item,), ScrollPosition(item.key, -TOP_MARGIN))
        elif item.is_running and before.is_running:
            self.view.update_item(item.item)
        else:
            self.view.finish(item.item)

    def clear(self) -> None:
        """Show no answer, and free its rows."""
        self._item = None
        self.view.show_conversation(())

    def append_delta(self, channel: Channel, text: str) -> None:
        """Append streamed text. The view shows it with the next frame."""
        self.view.append_delta(self.item.key, channel, text)

    def set_focused(self, focused: bool) -> None:  # noqa: FBT001 (setter)
        """Mark the column with the focus: its button is what Return presses."""
        _set_property(self.use, "kind", "primary" if focused else None)
        _set_property(self, "focused", focused)

    def set_place(self, *, is_first: bool) -> None:
        """Draw a line at the left unless the column is the first."""
        _set_property(self, "place", "first" if is_first else "later")

    def texts_to_compare(self) -> Sequence[str]:
        """Return the texts of the answer's rows."""
        return self.view.word_marks.texts(self.item.key)

    def mark_words(self, spans: Sequence[Sequence[Span]]) -> None:
        """Underline spans of each text of texts_to_compare(). () removes all underlines."""
        ranges = [[Range(begin, end) for begin, end in row] for row in spans]
        self.view.word_marks.mark(self.item.key, ranges)

    def _build(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(Space.XS)
        top.addWidget(self.heading, 1)
        top.addWidget(self.again)
        top.addWidget(self.use)
        header = QVBoxLayout()
        header.setContentsMargins(Space.M, Space.S, Space.M, Space.S)
        header.setSpacing(Space.HAIR)
        header.addLayout(top)
        header.addWidget(self.differs)
        header.addWidget(self.state)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(header)
        layout.addWidget(self.view, 1)

    def _refresh_header(self, item: AnswerColumnItem) -> None:
        self.setAccessibleName(item.name)
        self.view.setAccessibleName(item.name)
        self.heading.show_text(item.name)
        self.differs.show_text(item.differs)
        line = item.item.line_above
        if line is None:
            self.state.show_text("")
        else:
            self.state.show_text(line.text, *line.shorter, tip=line.explained)
        if item.is_running:
            self.again.show_icon(Icon.STOP, commands.STOP)
        else:
            self.again.show_icon(Icon.REGENERATE, commands.REGENERATE)
        self.again.setEnabled(item.is_running or item.can_regenerate)
        self.use.setEnabled(item.can_use)

    def _on_again(self) -> None:
        if self.item.is_running:
            self.stop_requested.emit()
        else:
            self.regenerate_requested.emit()

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        self.view.setFocus()  # a click on the header

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _RETURN and not event.isAutoRepeat() and self._item is not None:
            self.use.click()  # no effect while the button is disabled
        else:
            super().keyPressEvent(event)


def _set_property(widget: QWidget, name: str, value: object) -> None:
    """Set a property that rules of the style sheet use."""
    if widget.property(name) != value:
        widget.setProperty(name, value)
        widget.style().unpolish(widget)
        widget.style().polish(widget)
