"""The dialog with all keyboard shortcuts, built from the table of menu commands."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.theme.tokens import Size, Space
from app.widgets.commands import MENUS
from app.widgets.help_sheet import HelpSheet, page_heading
from app.widgets.key_choices import Choices, keys_of, native
from app.widgets.message_edit import break_key, send_key
from app.words import commands, composer, dialogs as words

_CHATS = (QKeySequence("Ctrl+1"), QKeySequence("Ctrl+9"))
# Keys of the composer and the transcript. They are not menu commands.
_FIXED = (
    (words.KEY_ESCAPE, QKeySequence("Esc")),
    (words.KEY_EDIT_LAST, QKeySequence("Up")),
    (words.KEY_ENDS, QKeySequence("Home, End")),
)


def shortcuts(choices: Choices, *, return_sends: bool) -> dict[str, list[tuple[str, str]]]:
    """Return all shortcuts. Key: menu title. Value: pairs of command text and shortcut.

    Shortcuts are in this platform's notation.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    keys_by_id = keys_of(choices)
    for menu, group in MENUS.items():
        keyed = [(command.text.removesuffix("…"), keys_by_id[command.id]) for command in group]
        found[menu] = [(text, native(keys[0])) for text, keys in keyed if keys]
    found[words.KEYS_ELSEWHERE] = [
        (composer.SEND, send_key(return_sends=return_sends)),
        (words.KEY_NEW_LINE, break_key(return_sends=return_sends)),
        (words.KEY_SAVE_ANSWER, send_key(return_sends=False)),
        (words.KEY_CHATS, words.key_range(*map(native, _CHATS))),
        *((text, native(keys)) for text, keys in _FIXED),
    ]
    return {menu: rows for menu, rows in found.items() if rows}


def show_shortcuts(parent: QWidget, choices: Choices, *, return_sends: bool) -> None:
    sheet = HelpSheet("shortcuts", commands.KEYBOARD_SHORTCUTS, parent)
    content = QWidget(sheet)
    grid = QGridLayout(content)
    grid.setContentsMargins(Space.XL, Space.L, Space.XL, Space.L)
    grid.setHorizontalSpacing(Space.XXL)
    grid.setVerticalSpacing(Space.S)
    grid.addWidget(page_heading(commands.KEYBOARD_SHORTCUTS, content), 0, 0, 1, 2)
    for menu, rows in shortcuts(choices, return_sends=return_sends).items():
        title = QLabel(menu.upper(), content)
        title.setProperty("type", "section")
        title.setProperty("tone", "tertiary")
        title.setContentsMargins(0, Space.M, 0, 0)
        grid.addWidget(title, grid.rowCount(), 0, 1, 2)
        for text, key in rows:
            row = grid.rowCount()
            grid.addWidget(QLabel(text, content), row, 0)
            grid.addWidget(QLabel(key, content), row, 1, Qt.AlignmentFlag.AlignRight)
    sheet.open_page(content, QSize(Size.PICKER_WIDTH, Size.PICKER_HEIGHT))
