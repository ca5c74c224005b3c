"""The list of requests to the local server: progress, texts, and a button that ends a request."""

from __future__ import annotations

import time
from functools import partial

from PySide6.QtCore import QEvent, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget
from typing_extensions import override

from app.server.known_chats import ChangedLine
from app.server.live_requests import RequestTexts, SeenRequest, SeenRequests
from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space, Type
from app.viewmodels.server_requests import (
    changed_lines,
    changed_title,
    message_title,
    reply_title,
    request_line,
)
from app.widgets.button import Button
from app.widgets.fields import TextField
from app.widgets.focus_order import set_tab_order
from app.widgets.icon_button import IconButton
from app.widgets.line_height import Sentences, line_height
from app.words import server_page as words

_MAX_LINES = 8  # of a text on show. Longer texts scroll.
_MAX_NEW = 4  # rows that are made at once: a row takes 2 ms


class ShownText(TextField):
    """A text that can be read, selected and copied, as high as its lines up to _MAX_LINES."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(Type.UI.line, parent)
        self.setObjectName("servedText")
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)

    def show_text(self, text: str) -> None:
        """Show a text. If the end was in view, show the new end. A selection is left as it is."""
        if text == self.toPlainText() or self.textCursor().hasSelection():
            return
        bar = self.verticalScrollBar()
        place, at_end = bar.value(), bar.value() == bar.maximum() > 0
        self.setPlainText(text)
        self._fit()
        bar.setValue(bar.maximum() if at_end else place)

    def _fit(self) -> None:
        num_lines = sum(block.lineCount() for block in self.lines.paragraphs())
        is_long = num_lines > _MAX_LINES
        policy = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(
            policy.ScrollBarAsNeeded if is_long else policy.ScrollBarAlwaysOff
        )
        around = self.height() - self.viewport().height()
        margin = round(self.document().documentMargin())
        shown = min(num_lines, _MAX_LINES) * self.lines.line_height
        # Below a longer text there is no margin, in which its next line would be cut.
        self.setFixedHeight(shown + margin * (1 if is_long else 2) + around)

    @override
    def resizeEvent(self, e: QResizeEvent) -> None:
        super().resizeEvent(e)
        self._fit()

    @override
    def changeEvent(self, e: QEvent) -> None:
        super().changeEvent(e)
        if e.type() is QEvent.Type.FontChange:
            self.set_line_height(line_height(self, Type.UI))
            self._fit()


class TextsPane(QWidget):
    """The texts of a request, and the line because of which tokens were read again."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, Space.M)
        self._layout.setSpacing(Space.XS)
        self._titles: dict[ShownText, Sentences] = {}
        self.change = self._add_text()
        self.message = self._add_text()
        self.reply = self._add_text()

    def show_texts(
        self, texts: RequestTexts | None, change: ChangedLine | None, *, is_open: bool
    ) -> None:
        """Show texts. texts: None before they have come."""
        if change is not None:
            self._show(self.change, changed_title(change), changed_lines(change))
        if texts is not None:
            nothing = words.NOTHING_YET if is_open else words.NO_TEXT
            self._show(self.message, message_title(texts), texts.message or words.NO_TEXT)
            self._show(self.reply, reply_title(texts, is_open=is_open), texts.reply or nothing)

    def _add_text(self) -> ShownText:
        title, text = Sentences(self, "small"), ShownText(self)
        title.setProperty("tone", "secondary")
        self._titles[text] = title
        for part in (title, text):
            self._layout.addWidget(part)
            part.hide()
        return text

    def _show(self, text: ShownText, title: str, shown: str) -> None:
        label = self._titles[text]
        if title != label.text():
            label.setText(title)
            text.setAccessibleName(title)
        label.show()
        text.show()
        text.show_text(shown)


class _Line(QWidget):
    """A label that wraps plain text. It asks for a new layout only if its number of lines changes.

    A QLabel asks for one after each new text. The layout of the page takes 1 ms a request.
    """

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._label = QLabel(self)  # in no layout
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setWordWrap(True)
        self._label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)

    def text(self) -> str:
        return self._label.text()

    def set_text(self, text: str) -> None:
        self._label.setText(text)
        self._fit()

    def _fit(self) -> None:
        size = self._label.font().pixelSize()  # -1 before the style sheet has set the font
        least = round(Size.CONTROL * max(1.0, size / Type.UI.size))
        wrapped = self._label.fontMetrics().boundingRect(
            QRect(0, 0, max(1, self.width()), 1 << 16), Qt.TextFlag.TextWordWrap, self.text()
        )
        self.setFixedHeight(max(least, wrapped.height()))
        self._label.setGeometry(self.rect())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    @override
    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() is QEvent.Type.FontChange:
            self._fit()


class RequestRow(QWidget):
    """One request: its line, a button that ends it, and on demand its texts."""

    toggled = Signal(bool)  # argument: True to show the texts
    stopped = Signal()

    def __init__(self, theme: Theme, client: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._client = client
        self.toggle = IconButton(theme, Icon.CHEVRON_RIGHT_SMALL, words.show_texts(client), self)
        self.line = _Line(self)
        self.stop = Button(words.STOP, self)
        self.stop.setAccessibleName(words.stop_name(client))
        self.pane: TextsPane | None = None
        policy = self.toggle.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # the lines of all rows begin at one place
        self.toggle.setSizePolicy(policy)
        head = QHBoxLayout()
        head.setSpacing(Space.XS)
        top = Qt.AlignmentFlag.AlignTop
        head.addWidget(self.toggle, 0, top)
        head.addWidget(self.line, 1)
        head.addWidget(self.stop, 0, top)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(Space.XS)
        self._layout.addLayout(head)
        self.toggle.clicked.connect(lambda: self.toggled.emit(self.pane is None))
        self.stop.clicked.connect(self.stopped)

    def show_request(self, request: SeenRequest, now: float) -> None:
        line = request_line(request, now)
        if line != self.line.text():
            self.line.set_text(line)
            self.toggle.setAccessibleDescription(line)
            self.stop.setAccessibleDescription(line)
        if not request.is_open and self.stop.hasFocus():
            self.toggle.setFocus()
        self.stop.setVisible(request.is_open)
        self.toggle.setVisible(request.has_texts)
        if not request.has_texts:
            self.close_pane()

    def open(self) -> None:
        """Add the pane of texts."""
        self.pane = TextsPane(self)
        self._layout.addWidget(self.pane)
        self.toggle.show_icon(Icon.CHEVRON_DOWN_SMALL, words.hide_texts(self._client))

    def close_pane(self) -> None:
        """Remove the pane, with its texts."""
        if self.pane is not None:
            self.pane.hide()
            self.pane.deleteLater()
            self.pane = None
            self.toggle.show_icon(Icon.CHEVRON_RIGHT_SMALL, words.show_texts(self._client))


class RequestList(QWidget):
    """The requests that are answered or wait, and the last ended ones."""

    texts_wanted = Signal(object)  # argument: the number of a request, or None
    stopped = Signal(int)  # argument: the number of a request
    reordered = Signal()  # rows were added, removed or moved

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._opened: int | None = None  # the request whose texts are on show
        self.rows: dict[int, RequestRow] = {}  # by number, from the top
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(Space.XS)
        self.empty = Sentences(self, text=words.NO_REQUESTS)
        self.empty.setProperty("kind", "row")
        self._layout.addWidget(self.empty)
        self._seen = SeenRequests()
        self._rest = QTimer(self, singleShot=True, interval=0)
        self._rest.timeout.connect(lambda: self.show_requests(self._seen))

    def show_requests(self, seen: SeenRequests) -> None:
        """Show requests. If many are new, make the rows of some of them a moment later."""
        self._seen = seen
        now = time.monotonic()
        new = [request.number for request in seen.requests if request.number not in self.rows]
        later = set(new[_MAX_NEW:])
        shown = tuple(request for request in seen.requests if request.number not in later)
        self._arrange(shown)
        for request in shown:
            row = self.rows[request.number]
            row.show_request(request, now)
            if row.pane is not None:
                is_own = seen.texts is not None and seen.texts.number == request.number
                texts = seen.texts if is_own else None
                row.pane.show_texts(texts, request.change, is_open=request.is_open)
        if later:
            self._rest.start()

    def set_tab_order(self, before: QWidget) -> None:
        """Let Tab visit the rows from the top, after a widget."""
        set_tab_order(before, *self.rows.values())

    def _arrange(self, requests: tuple[SeenRequest, ...]) -> None:
        """Make the rows those of the requests, in their order."""
        numbers = [request.number for request in requests]
        if numbers == list(self.rows):
            return
        gone = self.rows.keys() - set(numbers)
        for number in gone:
            self.rows[number].hide()
            self.rows[number].deleteLater()
        if self._opened in gone:
            self._opened = None
        self.rows = {
            request.number: self.rows.get(request.number) or self._make_row(request)
            for request in requests
        }
        for index, row in enumerate(self.rows.values()):
            self._layout.insertWidget(index, row)
        self.empty.setVisible(not numbers)
        self.reordered.emit()

    def _make_row(self, request: SeenRequest) -> RequestRow:
        row = RequestRow(self._theme, request.client, self)
        row.toggled.connect(partial(self._on_toggled, request.number))
        row.stopped.connect(partial(self.stopped.emit, request.number))
        return row

    def _on_toggled(self, number: int, shown: bool) -> None:  # noqa: FBT001 (a signal)
        """Show the texts of one request, and hide those of the other."""
        if self._opened in self.rows:
            self.rows[self._opened].close_pane()
        self._opened = number if shown else None
        if shown:
            self.rows[number].open()
        self.reordered.emit()
        self.texts_wanted.emit(self._opened)
