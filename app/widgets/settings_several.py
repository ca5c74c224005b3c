"""The settings page about a model that is divided over several Macs."""

from __future__ import annotations

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.controllers.several import SeveralMacs
from app.theme.palette import Theme
from app.theme.tokens import Space
from app.viewmodels.several import MacRow, mac_rows, parts
from app.widgets.button import Button
from app.widgets.dialogs import ask_for_hosts
from app.widgets.line_height import Sentences
from app.widgets.path_label import PathLabel
from app.widgets.settings_page import SettingsPage
from app.widgets.split_bar import SplitBar
from app.words import several as words


class SeveralPage(SettingsPage):
    """The Several Macs page: hosts file, check, the parts of the model, Start and Stop."""

    def __init__(self, theme: Theme, several: SeveralMacs, parent: QWidget) -> None:
        super().__init__(parent)
        self._several = several
        self.file = PathLabel(self)
        self.choose = Button(words.CHOOSE, self)
        self.check = Button(words.CHECK, self)
        self.start = Button(words.START, self)
        self.stop = Button(words.STOP, self)
        self.macs = _Macs(self)
        self.bar = SplitBar(theme, self)
        self._build()
        self.choose.clicked.connect(lambda: ask_for_hosts(self, several.choose_file))
        self.check.clicked.connect(several.check)
        self.start.clicked.connect(several.start)
        self.stop.clicked.connect(several.stop)
        several.changed.connect(self._refresh)
        self._refresh()

    def _build(self) -> None:
        self.check.setAccessibleName(words.CHECK_NAME)
        self.start.setAccessibleName(words.START_NAME)
        self.stop.setAccessibleName(words.STOP_NAME)
        self.start.setDefault(True)
        self.add_heading(words.TITLE)
        self.add_note(words.PURPOSE)
        self.add_row(words.HOSTS_FILE, self._in_a_row(self.file, self.choose), fills=True)
        self.add_note(f"{words.NEEDS} {words.FILE_NOTE}")
        self.add_row(words.MACS, self.macs, fills=True)
        self._bar_label = self.add_row(words.SPLIT, self.bar, fills=True)
        self.add_row("", self._in_a_row(self.check, self.start, self.stop))
        self.add_note(words.LIMITS_NOTE)
        self.end()
        self.controls = [self.choose, self.check, self.start, self.stop]
        self.order()

    def _in_a_row(self, *controls: QWidget) -> QWidget:
        row = QWidget(self)
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(Space.S)
        for control in controls:
            layout.addWidget(control)
        layout.setStretch(0, int(controls[0] is self.file))
        return row

    def _refresh(self) -> None:
        several = self._several
        self.file.show_path(several.file, words.NO_FILE)
        hosts, checks, stages = several.hosts, several.checks, several.stages
        rows = mac_rows(hosts, checks, stages, is_checking=several.is_checking)
        if several.problem is not None:
            rows = (MacRow(name="", text=str(several.problem), is_problem=True), *rows)
        self.macs.show_rows(rows)
        shown = parts(checks, stages)
        self.bar.show_parts(shown)
        self.bar.setVisible(bool(shown))
        self._bar_label.setVisible(bool(shown))
        self.choose.setEnabled(not several.is_on)
        self.check.setEnabled(hosts is not None and not several.is_on and not several.is_checking)
        self.start.setEnabled(hosts is not None and not several.is_on)
        self.stop.setEnabled(several.is_on)


class _Macs(QWidget):
    """A list with the name of each Mac and a sentence about it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._rows: tuple[MacRow, ...] | None = None
        self._labels: list[QWidget] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(Space.XS)

    @property
    def text(self) -> str:
        """The names and the sentences, one Mac a line."""
        rows = self._rows or ()
        return "\n".join(f"{row.name}: {row.text}" if row.name else row.text for row in rows)

    def show_rows(self, rows: tuple[MacRow, ...]) -> None:
        if rows == self._rows:
            return
        self._rows = rows
        for label in self._labels:
            label.setParent(None)
            label.deleteLater()
        self._labels = [self._made(row) for row in rows or (MacRow(name="", text=words.NO_MACS),)]
        for label in self._labels:
            self._layout.addWidget(label)

    def _made(self, row: MacRow) -> QWidget:
        # The sentence of a problem names the Mac.
        is_named = row.name and not row.is_problem
        label = Sentences(self, text=f"{row.name} · {row.text}" if is_named else row.text)
        label.setProperty("kind", "row")
        label.setProperty("tone", "error" if row.is_problem else "secondary")
        return label
