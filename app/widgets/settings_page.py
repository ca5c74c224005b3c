"""The base class of the settings pages: rows of a label and a control, with notes below."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QWidget

from app.theme.tokens import Size, Space
from app.widgets.focus_order import set_tab_order
from app.widgets.line_height import Sentences


class SectionLabel(QLabel):
    """A heading within a page, in small capitals."""

    def __init__(self, words: str, parent: QWidget) -> None:
        super().__init__(words.upper(), parent)
        self.setProperty("type", "section")
        self.setProperty("tone", "tertiary")
        self.setContentsMargins(0, Space.M, 0, 0)
        self.setAccessibleName(words)


class SettingsPage(QWidget):
    """A page with two columns: right-aligned labels and their controls."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(Space.XXL, Space.XL, Space.XXL, Space.XL)
        self._grid.setHorizontalSpacing(Space.L)
        self._grid.setVerticalSpacing(Space.S)
        self._grid.setColumnStretch(1, 1)
        self._grid.setColumnMinimumWidth(0, Size.SETTINGS_LABEL)
        self._labels: list[QLabel] = []  # the labels beside the controls
        self.controls: list[QWidget] = []  # all controls, in Tab order

    def add_heading(self, words: str) -> None:
        """Add a heading over the rows that follow."""
        self._grid.addWidget(SectionLabel(words, self), self._grid.rowCount(), 0, 1, 2)

    def add_row(self, words: str, control: QWidget, *, fills: bool = False) -> QLabel:
        """Add a label and a control, and return the label.

        If `fills` is True, the control takes the full width.
        """
        self.controls.append(control)
        row = self._grid.rowCount()
        label = QLabel(words, self)
        label.setBuddy(control)
        label.setProperty("kind", "row")
        label.setVisible(bool(words))
        self._labels.append(label)
        top = Qt.AlignmentFlag.AlignTop
        self._grid.addWidget(label, row, 0, Qt.AlignmentFlag.AlignRight | top)
        side = top if fills else Qt.AlignmentFlag.AlignLeft | top
        self._grid.addWidget(control, row, 1, side)
        return label

    def add_buttons(self, *buttons: QWidget) -> None:
        """Add a row of buttons below the last control."""
        self.controls.extend(buttons)
        row = QHBoxLayout()
        row.setSpacing(Space.S)
        for button in buttons:
            row.addWidget(button)
        row.addStretch()
        self._grid.addLayout(row, self._grid.rowCount(), 1)

    def add_note(self, words: str = "") -> QLabel:
        """Add a sentence below the last control, and return its label."""
        note = Sentences(self, "small", words)
        note.setProperty("tone", "secondary")
        note.setContentsMargins(0, 0, 0, Space.M)
        self._grid.addWidget(note, self._grid.rowCount(), 1)
        return note

    def align_labels(self, width: int) -> None:
        """Make the column of labels at least this wide."""
        least = max(Size.SETTINGS_LABEL, width)
        if self._grid.columnMinimumWidth(0) != least:  # else the layout would be requested forever
            self._grid.setColumnMinimumWidth(0, least)

    @property
    def label_width(self) -> int:
        """Width of the widest label that stands beside a control."""
        labels = (label for label in self._labels if not label.isHidden())
        return max((label.sizeHint().width() for label in labels), default=0)

    def join(self, *, is_first: bool) -> None:
        """Leave less space above and below, because the rows are a group of a longer page."""
        top = Space.XL if is_first else 0
        self._grid.setContentsMargins(Space.XXL, top, Space.XXL, Space.S)

    def order(self) -> None:
        """Set the Tab order from top to bottom. Call it again after adding or removing rows."""
        set_tab_order(*self.controls)

    def end(self) -> None:
        """Add stretchable space below the rows. Call this method after adding the last row."""
        self._grid.setRowStretch(self._grid.rowCount(), 1)
