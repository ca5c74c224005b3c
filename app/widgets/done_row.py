"""The row with the Done button of a sheet that only shows something. Main thread.

On a Mac a sheet has no title bar, so without this button only Esc closes it.
"""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QHBoxLayout

from app.theme.tokens import Space
from app.widgets.button import Button
from app.words import dialogs as words


def done_row(sheet: QDialog) -> QHBoxLayout:
    """Return a row with a button that closes the sheet."""
    button = Button(words.DONE, sheet)
    button.setProperty("kind", "primary")
    button.clicked.connect(sheet.accept)
    button.setFocus()
    row = QHBoxLayout()
    row.setContentsMargins(Space.XL, Space.M, Space.XL, Space.L)
    row.addStretch()
    row.addWidget(button)
    return row
