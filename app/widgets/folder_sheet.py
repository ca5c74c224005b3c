"""The sheet of a folder: its name and colour, and how new chats in it begin. Main thread."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QAbstractButton,
    QButtonGroup,
    QDialog,
    QHBoxLayout,
    QLabel,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.conversation.folder import FOLDER_NAME_LEN, Folder, FolderColor
from app.conversation.placement import FolderId
from app.conversation.preset import Presets
from app.theme.icons import GRID, Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space, Type
from app.widgets.button import Button, focus_checked
from app.widgets.fields import LineField, TextField
from app.widgets.icon_button import MAX_ZOOM
from app.widgets.line_height import Sentences
from app.widgets.menu import Menu
from app.widgets.menu_text import plain
from app.words import dialogs, folder_documents as document_words, folders as words

_PROMPT_LINES = 5


class FolderSheet(QDialog):
    """Fields for the values of a folder. `saved` has the new values."""

    saved = Signal(object)  # argument: the Folder; a new one has an empty id
    documents_requested = Signal()  # a click on the button of the documents

    def __init__(
        self, theme: Theme, folder: Folder | None, presets: Presets, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self.setObjectName("folderSheet")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setFixedWidth(Size.PICKER_WIDTH)
        self._is_new = folder is None
        self._folder = folder or Folder(folder_id=FolderId(""), name="")
        self._presets = presets
        self._preset = self._folder.preset if self._folder.preset in presets.by_name else ""
        self.name = LineField(self)
        self.colors = [_Swatch(theme, color, self) for color in FolderColor]
        self.preset = Button("", self)
        self.prompt = TextField(Type.UI.line, self)
        self.documents_button = Button("", self)
        self.cancel_button = Button(dialogs.CANCEL, self)
        self.save_button = Button(words.CREATE if self._is_new else words.SAVE, self)
        title = words.NEW_NAME if self._is_new else words.SETTINGS_TITLE
        self.setWindowTitle(title)
        self._build(title)
        self._fill()

    def show_documents(self, folder: Folder) -> None:
        """Show the number of documents, which are no part of what is saved."""
        count = len(folder.documents)
        text = document_words.change(count) if count else document_words.ADD
        self.documents_button.setText(text)
        self.documents_button.setAccessibleName(f"{document_words.DOCUMENTS}: {text}")

    @override
    def accept(self) -> None:
        color = next(one.color for one in self.colors if one.isChecked())
        self.saved.emit(
            replace(
                self._folder,
                name=self.name.text(),
                color=color,
                preset=self._preset,
                system_prompt=self.prompt.toPlainText().strip(),
            )
        )
        super().accept()

    def _build(self, text: str) -> None:
        title = QLabel(text, self)
        title.setProperty("type", "title")
        self.name.setMaxLength(FOLDER_NAME_LEN)
        self.name.setPlaceholderText(words.NEW_NAME)
        self.name.setAccessibleName(words.NAME)
        group = QButtonGroup(self)
        swatches = QHBoxLayout()
        swatches.setSpacing(Space.XS)
        for swatch in self.colors:
            group.addButton(swatch)
            swatches.addWidget(swatch)
        focus_checked(group)
        swatches.addStretch()
        menu = Menu(self.preset)
        for name in ("", *self._presets.by_name):
            action = menu.addAction(plain(name) or words.PRESET_OF_MODEL)
            action.triggered.connect(lambda _checked=False, chosen=name: self._choose(chosen))
        self.preset.setMenu(menu)
        self._build_prompt()
        note = Sentences(self, "small", words.FOR_NEW_CHATS)
        note.setProperty("tone", "secondary")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.XL, Space.L, Space.XL, Space.L)
        layout.setSpacing(Space.M)
        layout.addWidget(title)
        layout.addWidget(self.name)
        layout.addLayout(swatches)
        preset = QHBoxLayout()
        preset.addWidget(QLabel(words.PRESET, self))
        preset.addStretch()
        preset.addWidget(self.preset)
        layout.addLayout(preset)
        layout.addLayout(self._documents_line())
        layout.addWidget(QLabel(words.SYSTEM_PROMPT, self))
        layout.addWidget(self.prompt)
        layout.addWidget(note)
        layout.addLayout(self._buttons())

    def _build_prompt(self) -> None:
        self.prompt.setObjectName("folderPrompt")
        self.prompt.setAccessibleName(words.SYSTEM_PROMPT)
        self.prompt.setPlaceholderText(words.SYSTEM_PROMPT_HINT)
        self.prompt.setTabChangesFocus(True)
        self.prompt.setFixedHeight(_PROMPT_LINES * Type.UI.line + 2 * Space.S)

    def _documents_line(self) -> QHBoxLayout:
        documents = QHBoxLayout()
        label = QLabel(document_words.DOCUMENTS, self)
        documents.addWidget(label)
        documents.addStretch()
        documents.addWidget(self.documents_button)
        for part in (label, self.documents_button):
            part.setHidden(self._is_new)  # they are added to a folder that exists
        self.documents_button.clicked.connect(self.documents_requested)
        return documents

    def _buttons(self) -> QHBoxLayout:
        self.cancel_button.setAutoDefault(False)
        self.preset.setAutoDefault(False)
        self.documents_button.setAutoDefault(False)
        self.save_button.setProperty("kind", "primary")
        self.save_button.setDefault(True)
        self.cancel_button.clicked.connect(self.reject)
        self.save_button.clicked.connect(self.accept)
        buttons = QHBoxLayout()
        buttons.setSpacing(Space.S)
        buttons.addStretch()
        buttons.addWidget(self.cancel_button)
        buttons.addWidget(self.save_button)
        return buttons

    def _fill(self) -> None:
        self.name.setText(self._folder.name)
        self.name.selectAll()
        self.name.setFocus()
        self.prompt.setPlainText(self._folder.system_prompt)
        for swatch in self.colors:
            swatch.setChecked(swatch.color is self._folder.color)
        self._choose(self._preset)
        self.show_documents(self._folder)

    def _choose(self, name: str) -> None:
        self._preset = name
        self.preset.setText(plain(name) or words.PRESET_OF_MODEL)
        self.preset.setAccessibleName(f"{words.PRESET}: {name or words.PRESET_OF_MODEL}")


class _Swatch(QAbstractButton):
    """A button that chooses a colour: a folder in this colour, with a ring if it is chosen."""

    def __init__(self, theme: Theme, color: FolderColor, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.color = color
        self.setCheckable(True)
        side = theme.scaled(Size.CONTROL_LARGE, MAX_ZOOM)
        self.setFixedSize(side, side)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setAccessibleName(f"{words.COLOR}: {words.COLORS[color]}")
        self.setToolTip(words.COLORS[color])

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colors = self._theme.colors
        size = self._theme.scaled(GRID, MAX_ZOOM)
        icon = QRectF(0, 0, size, size)
        icon.moveCenter(QRectF(self.rect()).center())
        self._theme.icons.paint(painter, Icon.FOLDER, getattr(colors.folder, self.color), icon)
        if self.isChecked() or self.hasFocus():
            line = colors.accent if self.hasFocus() else colors.secondary
            painter.setPen(QPen(QColor(line), Space.HAIR))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawEllipse(QRectF(self.rect()).adjusted(2, 2, -2, -2))
