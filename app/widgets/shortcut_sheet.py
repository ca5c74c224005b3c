"""All keys on one sheet, made from the table of commands."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QLabel,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from app.theme.tokens import Size, Space
from app.widgets.commands import COMMANDS, key_sequences

# What the composer and the transcript do with keys themselves.
_FIXED = (
    ("Send", "Return"),
    ("New Line", "Shift+Return"),
    ("Stop, or end finding and editing", "Esc"),
    ("Edit Last Message, in an empty composer", "Up"),
    ("To the beginning, to the end of a chat", "Home, End"),
)


def shortcuts() -> dict[str, list[tuple[str, str]]]:
    """What each key does, by menu: the words and the key as this system writes it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for menu, commands in groupby(COMMANDS, attrgetter("menu")):
        keyed = [(command.text.removesuffix("…"), key_sequences(command)) for command in commands]
        found[menu] = [(words, _native(keys[0])) for words, keys in keyed if keys]
    found["While Writing and Reading"] = [
        (words, _native(QKeySequence(keys))) for words, keys in _FIXED
    ]
    return {menu: rows for menu, rows in found.items() if rows}


def show_shortcuts(parent: QWidget) -> None:
    dialog = QDialog(parent)
    dialog.setObjectName("shortcuts")
    dialog.setWindowTitle("Keyboard Shortcuts")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    content = QWidget(dialog)
    grid = QGridLayout(content)
    grid.setContentsMargins(Space.XL, Space.L, Space.XL, Space.L)
    grid.setHorizontalSpacing(Space.XXL)
    grid.setVerticalSpacing(Space.S)
    for menu, rows in shortcuts().items():
        title = QLabel(menu.upper(), content)
        title.setProperty("type", "section")
        title.setProperty("tone", "tertiary")
        title.setContentsMargins(0, Space.M if grid.count() else 0, 0, 0)
        grid.addWidget(title, grid.rowCount(), 0, 1, 2)
        for words, key in rows:
            row = grid.rowCount()
            grid.addWidget(QLabel(words, content), row, 0)
            grid.addWidget(QLabel(key, content), row, 1, Qt.AlignmentFlag.AlignRight)
    scroller = QScrollArea(dialog)
    scroller.setWidgetResizable(True)
    scroller.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    scroller.setFrameShape(QFrame.Shape.NoFrame)
    scroller.setWidget(content)
    layout = QVBoxLayout(dialog)
    layout.setContentsMargins(0, 0, 0, 0)
    layout.addWidget(scroller)
    dialog.resize(Size.PICKER_WIDTH, Size.PICKER_HEIGHT)
    dialog.open()


def _native(keys: QKeySequence) -> str:
    return keys.toString(QKeySequence.SequenceFormat.NativeText)
