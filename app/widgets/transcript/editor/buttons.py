"""The buttons below the text of the message editor. Used on the main thread only."""

from __future__ import annotations

from PySide6.QtWidgets import QBoxLayout, QLabel, QWidget

from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Space
from app.widgets.button import Button
from app.widgets.check_box import CheckBox
from app.widgets.icon_button import IconButton
from app.words import attachments, dialogs, previews, transcript as words


class EditorButtons(QWidget):
    """The switch for previews, the button for files, a note, Cancel and Save: in a row if it fits.

    The editor of an answer has neither the switch nor the button for files.
    """

    def __init__(self, theme: Theme, parent: QWidget, *, is_answer: bool) -> None:
        super().__init__(parent)
        self.attach = IconButton(theme, Icon.ATTACH, attachments.ATTACH_TO_EDIT, self)
        self._note = QLabel(words.SAVE_NOTE if is_answer else words.SEND_NOTE, self)
        self.save = Button(words.SAVE_VERSION if is_answer else words.SEND_VERSION, self)
        self.cancel = Button(dialogs.CANCEL, self)
        self.switch = CheckBox(theme, previews.SWITCH, self)
        self.save.setProperty("kind", "primary")
        self._note.setProperty("tone", "secondary")
        self._note.setProperty("type", "small")
        self.switch.setToolTip(previews.SWITCH_TIP)
        self.switch.setHidden(is_answer)
        self.attach.setHidden(is_answer)
        self._row = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        # the switch, and the row at its right or below it
        self._rows = QBoxLayout(QBoxLayout.Direction.LeftToRight, self)
        self._rows.addWidget(self.switch)
        self._rows.addLayout(self._row)
        for part in (self.attach, self._note, self.cancel, self.save):
            self._row.addWidget(part)
        for row in (self._row, self._rows):
            row.setContentsMargins(0, 0, 0, 0)
            row.setSpacing(Space.S)
        if not is_answer:
            self._row.insertSpacing(1, -Space.XS)  # the icon has room around it

    def arrange(self, wanted: int, most: int) -> None:
        """Hide the note in a row wider than `wanted`; stack what is wider than `most`."""
        for row in (self._row, self._rows):
            row.setDirection(QBoxLayout.Direction.LeftToRight)
        self._note.show()
        self._note.setVisible(self._natural_width() <= wanted)
        for row in (self._rows, self._row):
            if self._natural_width() > most:
                row.setDirection(QBoxLayout.Direction.TopToBottom)

    def _natural_width(self) -> int:
        for row in (self._row, self._rows):
            row.invalidate()  # a layout in a layout keeps its size until the next event
        return self.sizeHint().width()
