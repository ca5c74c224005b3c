"""A sheet with a question or a statement: icon, title, sentences, buttons. Main thread."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QApplication, QDialog, QHBoxLayout, QLabel, QVBoxLayout, QWidget
from typing_extensions import override

from app.theme.tokens import Size, Space, Type
from app.widgets.button import Button
from app.widgets.details import Details
from app.widgets.line_height import Sentences
from app.words import dialogs


class MessageSheet(QDialog):
    """A title and sentences, with a row of buttons. A sheet is deleted when it closes."""

    def __init__(self, title: str, text: str, note: str, parent: QWidget | None) -> None:
        super().__init__(parent)
        self.setObjectName("messageSheet")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setWindowTitle(title)
        self.setAccessibleDescription(" ".join(filter(None, (text, note))))
        self.setMinimumWidth(Size.SHEET_WIDTH)
        self._texts = [
            Sentences(self, kind, words) for kind, words in (("ui", text), ("small", note))
        ]
        self._buttons = QHBoxLayout()
        self._column = QVBoxLayout()
        self._layout = QHBoxLayout(self)
        self._heading = QLabel(title, self)
        self._build()

    @property
    def text(self) -> str:
        """The sentences below the title."""
        return "\n".join(label.text() for label in self._texts if label.text())

    def add_button(self, text: str, *, is_default: bool = False) -> Button:
        """Add a button at the right. Its click closes the sheet. Return has the default button."""
        button = Button(text, self)
        button.setAutoDefault(is_default)
        button.setDefault(is_default)
        if is_default:
            button.setProperty("kind", "primary")
        self._buttons.addWidget(button)
        return button

    def add_details(self, text: str) -> None:
        """Add lines below the sentences. Many lines scroll."""
        details = Details(self)
        details.set_text(text)
        self._column.insertWidget(self._column.count() - 2, details)

    @override
    def showEvent(self, arg__1: QShowEvent) -> None:
        """Fit the size to the texts, which wrap. Qt takes the height of narrower texts."""
        scale = max(1.0, self._heading.font().pixelSize() / Type.TITLE.size)  # of larger text
        room = self.screen().availableSize().width()
        width = max(self.width(), min(round(Size.SHEET_WIDTH * scale), room))
        self.resize(width, self._layout.totalHeightForWidth(width))
        super().showEvent(arg__1)

    def _build(self) -> None:
        icon = QLabel(self)
        icon.setPixmap(QApplication.windowIcon().pixmap(Size.SHEET_ICON))
        heading = self._heading
        heading.setProperty("type", "title")
        heading.setTextFormat(Qt.TextFormat.PlainText)
        heading.setWordWrap(True)
        self._texts[1].setProperty("tone", "secondary")
        self._buttons.setSpacing(Space.S)
        self._buttons.addStretch()
        column = self._column
        column.setSpacing(Space.S)
        column.addWidget(heading)
        for label in self._texts:
            label.setVisible(bool(label.text()))
            column.addWidget(label)
        column.addSpacing(Space.S)
        column.addLayout(self._buttons)
        layout = self._layout
        layout.setContentsMargins(Space.XL, Space.XL, Space.XL, Space.L)
        layout.setSpacing(Space.L)
        layout.addWidget(icon, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(column, 1)


def ask_before(  # noqa: PLR0913 - the texts of a question
    parent: QWidget,
    question: str,
    note: str,
    verb: str,
    act: Callable[[], object],
    *,
    keep: str = dialogs.CANCEL,
    details: str = "",
) -> None:
    """Ask before an act that cannot be undone. Return, like Esc, keeps everything."""
    sheet = MessageSheet(question, note, "", parent)
    if details:
        sheet.add_details(details)
    keep_button = sheet.add_button(keep, is_default=True)
    keep_button.clicked.connect(sheet.reject)
    keep_button.setFocus()
    act_button = sheet.add_button(verb)
    act_button.setProperty("kind", "danger")
    act_button.clicked.connect(sheet.accept)
    sheet.accepted.connect(act)
    sheet.open()
