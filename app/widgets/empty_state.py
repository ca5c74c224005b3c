"""The parts of an empty chat around the composer: heading, note on the model, recent chats."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from app.conversation.tree import ConversationSummary
from app.theme.palette import Theme
from app.theme.tokens import Size, Space, Type
from app.viewmodels.direction import isolated
from app.widgets.button import Button
from app.widgets.line_height import Sentences
from app.widgets.menu_text import plain
from app.words import commands, folder_documents as documents, folders, promise, window as words

MAX_RECENT = 4
_NO_LIMIT = 16_777_215  # Qt's largest height of a widget (QWIDGETSIZE_MAX)


def taken_height(part: QWidget) -> int:
    """Return the height that a part takes in a layout."""
    folded = part.isHidden() or part.maximumHeight() == 0
    return 0 if folded else part.heightForWidth(part.width())


def give_room(parts: Sequence[QWidget], room: int) -> int:
    """Fold the parts that do not fit into `room` px, the last one first. Return the room left.

    A folded part has no height, but stays for screen readers. A hidden part needs no room.
    """
    for part in parts:
        needed = 0 if part.isHidden() else part.heightForWidth(part.width())
        fits = needed <= room
        part.setMaximumHeight(_NO_LIMIT if fits else 0)
        room -= needed if fits else 0
    return room


class EmptyHeading(QWidget):
    """The heading of an empty chat. If it does not fit on one line, it wraps in a smaller font."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.title = QLabel(words.QUESTION, self)
        self.title.setProperty("type", "empty")
        self.title.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.title.setMinimumWidth(1)
        self.title.setTextFormat(Qt.TextFormat.PlainText)
        self.title.setWordWrap(True)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.L, 0, Space.L, Space.L)
        layout.addWidget(self.title)
        theme.zoomed.connect(self._fit)

    def show_folder(self, name: str) -> None:
        """Say that the chat is in a folder. An empty name stands for no folder."""
        text = folders.new_chat_in(name) if name else words.QUESTION
        if text != self.title.text():
            self.title.setText(text)
            self._fit()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        metrics = QFontMetrics(self._theme.zoomed_font(Type.EMPTY))
        fits = metrics.horizontalAdvance(self.title.text()) <= self.width() - 2 * Space.L
        kind = "empty" if fits else "empty-narrow"
        if kind != self.title.property("type"):
            self.title.setProperty("type", kind)
            self.style().unpolish(self.title)
            self.style().polish(self.title)


class ModelNote(QWidget):
    """A sentence about the model in use, with a button to choose or download one."""

    requested = Signal()  # emitted when the button is clicked

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.sentence = Sentences(self)
        self.sentence.setProperty("tone", "secondary")
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.button = Button(commands.CHOOSE_MODEL, self)
        self.button.clicked.connect(self.requested)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, Space.L)
        layout.setSpacing(Space.M)
        layout.addWidget(self.sentence)
        layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignHCenter)

    def show_text(self, text: str, button: str) -> None:
        """Show the sentence and the button, or hide both if text is empty."""
        self.sentence.setText(text)
        self.button.setText(button)
        self.setVisible(bool(text))


class DocumentsNote(QWidget):
    """A sentence about the documents that an empty chat begins with, and two buttons."""

    toggled = Signal()  # the chat shall begin without the documents, or with them again
    opened = Signal()  # the documents shall be shown

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.sentence = Sentences(self, "small")
        self.sentence.setProperty("tone", "secondary")
        self.sentence.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.toggle_button = Button(documents.WITHOUT, self)
        self.open_button = Button(documents.OPEN_SHEET, self)
        self.toggle_button.clicked.connect(self.toggled)
        self.open_button.clicked.connect(self.opened)
        buttons = QHBoxLayout()
        buttons.setSpacing(Space.S)
        buttons.addStretch()
        for button in (self.toggle_button, self.open_button):
            button.setProperty("kind", "plain")
            buttons.addWidget(button)
        buttons.addStretch()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, Space.S)
        layout.setSpacing(Space.XS)
        layout.addWidget(self.sentence)
        layout.addLayout(buttons)
        self.hide()

    def show_text(self, text: str, *, is_without: bool) -> None:
        """Show the sentence and the buttons, or hide all if text is empty."""
        self.sentence.setText(text)
        self.toggle_button.setText(documents.WITH if is_without else documents.WITHOUT)
        self.setVisible(bool(text))


class Promise(Sentences):
    """A sentence for a user without chats. It describes the return to a chat."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, text=promise.SENTENCE)
        self.setProperty("tone", "secondary")
        self.setAlignment(Qt.AlignmentFlag.AlignHCenter)


class RecentChats(QWidget):
    """Buttons that open the newest conversations: at most four, fewer in a low window."""

    chosen = Signal(object)  # argument: ConversationId of the clicked button

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._summaries: tuple[ConversationSummary, ...] = ()
        self._buttons: list[Button] = []
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Ignored)
        self._layout = layout = QVBoxLayout(self)
        layout.setSpacing(Space.HAIR)
        self._label = QLabel(words.RECENT, self)
        self._label.setProperty("type", "section")
        self._label.setProperty("tone", "tertiary")
        self._label.setIndent(Space.S)
        layout.addWidget(self._label)
        for number in range(MAX_RECENT):
            button = Button("", self)
            button.setProperty("kind", "row")
            button.clicked.connect(lambda _checked=False, at=number: self._on_clicked(at))
            layout.addWidget(button)
            self._buttons.append(button)
        layout.addStretch()

    def show_recent(self, summaries: Sequence[ConversationSummary]) -> None:
        """Show the first MAX_RECENT of `summaries`, which are sorted newest first."""
        self._summaries = tuple(summaries[:MAX_RECENT])
        self._fit()

    def _fit(self) -> None:
        side = max(Space.XL, (self.width() - round(Size.COLUMN * self._theme.zoom)) // 2)
        self._layout.setContentsMargins(side, 0, side, 0)
        room = self.height() - self._label.sizeHint().height() - Space.M
        row = self._buttons[0].sizeHint().height() + Space.HAIR
        count = min(len(self._summaries), room // row)
        self._label.setVisible(count > 0)
        for number, button in enumerate(self._buttons):
            button.setVisible(number < count)
        for summary, button in zip(self._summaries, self._buttons, strict=False):
            elide = QFontMetrics(button.font()).elidedText
            width = self.width() - 2 * (side + Space.S)
            title = elide(summary.title, Qt.TextElideMode.ElideRight, width)
            button.setText(plain(isolated(title)))
            button.setAccessibleName(words.continue_with(summary.title))

    def _on_clicked(self, number: int) -> None:
        self.chosen.emit(self._summaries[number].conversation_id)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.LayoutRequest:  # the buttons have another font
            self._fit()
        return super().event(event)
