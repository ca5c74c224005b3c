"""The fields for the access token and mirror of Hugging Face, on the Models page. Main thread."""

from __future__ import annotations

import os

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from app.controllers.hub import HubController
from app.hub.access import AccessError, has_token, has_token_variable, mirror_address
from app.theme.tokens import Size, Space
from app.widgets.button import Button
from app.widgets.fields import LineField
from app.words import settings as words


class TokenField(QWidget):
    """A field that stores a token. It never shows a stored one."""

    def __init__(self, hub: HubController, parent: QWidget) -> None:
        super().__init__(parent)
        self._hub = hub
        self.field = LineField(self)
        self.field.setEchoMode(QLineEdit.EchoMode.Password)
        self.field.setMaxLength(600)
        self.field.set_width(Size.SIDEBAR)
        self.field.setAccessibleName(words.ACCESS_NAME)
        self.remove_button = Button(words.REMOVE, self)
        self.remove_button.setAccessibleName(words.remove(words.ACCESS_NAME))
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(Space.S)
        layout.addWidget(self.field)
        layout.addWidget(self.remove_button)
        layout.addStretch()
        self.setFocusProxy(self.field)
        self.field.editingFinished.connect(self._on_finished)
        self.remove_button.clicked.connect(self._on_remove)
        self.refresh()

    def refresh(self) -> None:
        """Show whether a token is stored."""
        is_stored = has_token()
        self.field.setPlaceholderText(words.ACCESS_STORED if is_stored else words.ACCESS_HINT)
        self.field.setEnabled(not has_token_variable())
        self.remove_button.setVisible(is_stored)

    def _on_finished(self) -> None:
        token = self.field.text()
        self.field.clear()
        if token.strip():
            self._hub.store_token(token, self._on_stored)

    def _on_remove(self) -> None:
        self._hub.store_token("", self._on_stored)

    def _on_stored(self, _: None) -> None:
        self.refresh()


class MirrorField(LineField):
    """A field for the address of a mirror. A text that is no address leaves the old one."""

    changed = Signal(str)  # argument: the address, "" for none
    refused = Signal(object)  # argument: a Problem

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._address = ""
        self.set_width(Size.SIDEBAR)
        self.setMaxLength(300)
        self.setPlaceholderText(words.MIRROR_HINT)
        self.setAccessibleName(words.MIRROR_NAME)
        self.setEnabled(not os.environ.get("HF_ENDPOINT"))
        self.editingFinished.connect(self._on_finished)

    def show_address(self, address: str) -> None:
        self._address = address
        if not self.hasFocus():
            self.setText(address)

    def _on_finished(self) -> None:
        try:
            address = mirror_address(self.text())
        except AccessError as error:
            self.refused.emit(error.problem)
            address = self._address
        self.setText(address)
        if address != self._address:
            self._address = address
            self.changed.emit(address)
