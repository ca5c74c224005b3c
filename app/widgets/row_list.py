"""A short list with one widget per name, or a sentence while the list is empty."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.theme.tokens import Space
from app.widgets.line_height import Sentences


class RowList(QWidget):
    """A list that builds its rows with `make_row`. It rebuilds them only if the names change."""

    def __init__(self, empty: str, make_row: Callable[[str], QWidget], parent: QWidget) -> None:
        super().__init__(parent)
        self._make_row = make_row
        self._shown: tuple[str, ...] = ()
        self._rows: list[QWidget] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(Space.S)
        self._empty = Sentences(self, text=empty)
        self._empty.setProperty("tone", "secondary")
        self._empty.setProperty("kind", "row")
        self._layout.addWidget(self._empty)

    def show_names(self, names: Sequence[str]) -> None:
        if tuple(names) == self._shown:
            return
        self._shown = tuple(names)
        for row in self._rows:
            row.setParent(None)
            row.deleteLater()
        self._rows = [self._make_row(name) for name in names]
        for row in self._rows:
            self._layout.addWidget(row)
        self._empty.setVisible(not names)
