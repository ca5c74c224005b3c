"""The sheet that names a new preset. Main thread."""

from __future__ import annotations

from collections.abc import Collection

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QVBoxLayout, QWidget
from typing_extensions import override

from app.theme.tokens import Size, Space
from app.widgets.button import Button
from app.widgets.fields import LineField
from app.widgets.line_height import Sentences
from app.words import dialogs, inspector as words


class PresetSheet(QDialog):
    """A field for the name of a preset. A note says that the name is taken, if it is."""

    named = Signal(str)  # argument: the name

    def __init__(self, names: Collection[str], suggested: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setObjectName("presetSheet")
        self.setWindowTitle(words.SAVE_PRESET_TITLE)
        self.setFixedWidth(Size.NAME_WIDTH)
        self._names = names
        self.name = LineField(self)
        self.name.setAccessibleName(words.PRESET_NAME)
        self.name.setPlaceholderText(words.PRESET_NAME)
        self.note = Sentences(self, "small")
        self.cancel_button = Button(dialogs.CANCEL, self)
        self.save_button = Button(words.SAVE, self)
        self._build()
        self.name.textChanged.connect(self._describe)
        self.cancel_button.clicked.connect(self.reject)
        self.save_button.clicked.connect(self.accept)
        self.name.setText(suggested)
        self.name.selectAll()
        self._describe()

    @override
    def accept(self) -> None:
        self.named.emit(self._text)
        super().accept()

    @property
    def _text(self) -> str:
        return self.name.text().strip()

    def _build(self) -> None:
        title = QLabel(words.SAVE_PRESET_TITLE, self)
        title.setProperty("type", "title")
        self.note.setProperty("tone", "secondary")
        self.cancel_button.setAutoDefault(False)
        self.save_button.setProperty("kind", "primary")
        self.save_button.setDefault(True)
        buttons = QHBoxLayout()
        buttons.setSpacing(Space.S)
        buttons.addStretch()
        buttons.addWidget(self.cancel_button)
        buttons.addWidget(self.save_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.XL, Space.L, Space.XL, Space.L)
        layout.setSpacing(Space.M)
        layout.addWidget(title)
        layout.addWidget(self.name)
        layout.addWidget(self.note)
        layout.addLayout(buttons)

    def _describe(self) -> None:
        """Say what Save does with the present name. Without a name it is disabled."""
        self.save_button.setEnabled(bool(self._text))
        is_taken = self._text in self._names
        self.note.setText(words.replaces(self._text) if is_taken else words.PRESET_KEEPS)
