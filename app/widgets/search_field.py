"""The field for a search over all conversations, with a button that ends the search."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Space
from app.widgets.fields import LineField
from app.widgets.icon_button import IconButton
from app.words import search, window as words


class _SearchEdit(LineField):
    """The text field. Return and Down lead to the results, Esc ends the search."""

    submitted = Signal()
    left_below = Signal()
    ended = Signal()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.submitted.emit()
            case Qt.Key.Key_Down:
                self.left_below.emit()
            case Qt.Key.Key_Escape:
                self.ended.emit()
            case _:
                super().keyPressEvent(event)


class SearchField(QWidget):
    """A text field, and two buttons at its right while it has text."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.edit = _SearchEdit(self)
        self.edit.setProperty("kind", "search")
        self.edit.setPlaceholderText(words.SEARCH_FIELD)
        self.edit.setAccessibleName(words.SEARCH_FIELD)
        self.clear_button = IconButton(theme, Icon.CLOSE, words.CLEAR_SEARCH, self)
        self.clear_button.hide()
        self.filter_button = IconButton(theme, Icon.FILTER, search.FILTERS, self)
        self.filter_button.hide()
        layout = QHBoxLayout(self)
        layout.setContentsMargins(Space.S + Space.HAIR, 0, Space.S + Space.HAIR, Space.S)
        layout.setSpacing(Space.XS)
        layout.addWidget(self.edit, 1)
        layout.addWidget(self.filter_button)
        layout.addWidget(self.clear_button)
        self.edit.textChanged.connect(self._on_changed)
        self.clear_button.clicked.connect(self.edit.ended)

    def type(self, text: str) -> None:
        """Focus the field and add a text that the user typed elsewhere."""
        self.edit.setFocus()
        self.edit.insert(text)

    def _on_changed(self, text: str) -> None:
        self.clear_button.setVisible(bool(text))
        self.filter_button.setVisible(bool(text))
