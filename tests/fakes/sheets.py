"""The sheets that ask a question, for tests that answer them with the mouse."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QWidget

from app.widgets.button import Button
from app.widgets.message_sheet import MessageSheet


def find_sheet(window: QWidget) -> MessageSheet | None:
    """Return the sheet on show in a window, or None."""
    sheets = window.findChildren(MessageSheet)
    return next((sheet for sheet in sheets if sheet.isVisible()), None)


def sheet_in(window: QWidget) -> MessageSheet:
    sheet = find_sheet(window)
    assert sheet is not None
    return sheet


def default_of(sheet: MessageSheet) -> str:
    (default,) = (button for button in sheet.findChildren(Button) if button.isDefault())
    return default.text()


def press(sheet: MessageSheet, text: str) -> None:
    """Press the button with this text."""
    (button,) = (button for button in sheet.findChildren(Button) if button.text() == text)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)
