"""The settings page for keyboard shortcuts: find a command, change its keys, reset them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtGui import QHideEvent, QKeySequence
from PySide6.QtWidgets import (
    QGridLayout,
    QLabel,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from app.controllers.preferences import Preferences
from app.theme.icons import Icon
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.widgets.announcer import announce
from app.widgets.button import Button
from app.widgets.commands import MENUS, MenuCommand, key_sequences
from app.widgets.fields import LineField
from app.widgets.focus_order import set_tab_order
from app.widgets.icon_button import IconButton
from app.widgets.key_button import KeyButton
from app.widgets.key_choices import is_changeable, keys_of, refusal
from app.widgets.line_height import Sentences
from app.widgets.scroller import VerticalScroller
from app.widgets.settings_page import SectionLabel
from app.words import shortcuts as words


@dataclass(frozen=True, slots=True)
class _ShortcutRow:
    """The widgets of a command."""

    heading: QLabel  # title of its menu
    command: MenuCommand
    title: str
    label: QLabel
    keys: KeyButton
    reset: IconButton

    def show(self, keys: list[QKeySequence]) -> None:
        self.keys.show_keys(keys[0] if keys else QKeySequence())
        self.reset.setEnabled(is_changeable(self.command) and keys != key_sequences(self.command))

    def set_visible(self, *, visible: bool) -> None:
        for widget in (self.label, self.keys, self.reset):
            widget.setVisible(visible)

    def matches(self, text: str) -> bool:
        return all(part in f"{self.title} {self.keys.text()}".casefold() for part in text.split())


class ShortcutsPage(QWidget):
    """The Shortcuts page of the settings. A change applies at once, or is refused with a reason."""

    def __init__(self, theme: Theme, preferences: Preferences, parent: QWidget) -> None:
        super().__init__(parent)
        self._preferences = preferences
        self._theme = theme
        self.field = LineField(self)
        self.sentence = Sentences(self, "small")
        self.reset_all = Button(words.RESET_ALL, self)
        self._rows: list[_ShortcutRow] = []
        self._build()
        self.field.textChanged.connect(self._filter)
        self.reset_all.clicked.connect(lambda: preferences.change(shortcuts={}))
        preferences.changed.connect(self._refresh)
        self._refresh()

    @property
    def controls(self) -> list[QWidget]:
        """All controls, in Tab order."""
        rows = (widget for row in self._rows for widget in (row.keys, row.reset))
        return [self.field, *rows, self.reset_all]

    @property
    def shown(self) -> dict[str, KeyButton]:
        """The shortcuts that the search has found, by the title of their command."""
        return {row.title: row.keys for row in self._rows if not row.keys.isHidden()}

    def reset_button(self, title: str) -> IconButton:
        return next(row.reset for row in self._rows if row.title == title)

    def _build(self) -> None:
        self.field.setPlaceholderText(words.FIND)
        self.field.setAccessibleName(words.FIND)
        self.sentence.setProperty("tone", "secondary")
        scroller = VerticalScroller(self)
        # The height of the rows must not stretch the page, which would then scroll itself.
        scroller.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        content = QWidget(scroller.viewport())
        grid = QGridLayout(content)
        grid.setContentsMargins(0, 0, Space.L, 0)
        grid.setHorizontalSpacing(Space.M)
        grid.setVerticalSpacing(Space.XS)
        grid.setColumnStretch(0, 1)
        for menu, commands in MENUS.items():
            heading = SectionLabel(menu, content)
            grid.addWidget(heading, grid.rowCount(), 0, 1, 3)
            for command in commands:
                self._add(grid, heading, command, content)
        grid.setRowStretch(grid.rowCount(), 1)
        # Field and sentence stay on screen while the rows scroll.
        scroller.setWidget(content)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.XXL, Space.L, Space.XXL, Space.L)
        layout.setSpacing(Space.S)
        layout.addWidget(self.field)
        layout.addWidget(self.sentence)
        layout.addWidget(scroller, 1)
        layout.addWidget(self.reset_all, 0, Qt.AlignmentFlag.AlignLeft)
        set_tab_order(*self.controls)

    def _add(
        self, grid: QGridLayout, heading: QLabel, command: MenuCommand, parent: QWidget
    ) -> None:
        text = command.text.removesuffix("…")
        title = f"{command.group}: {text}" if command.group else text
        row = _ShortcutRow(
            heading,
            command,
            title,
            QLabel(title, parent),
            KeyButton(title, parent),
            IconButton(self._theme, Icon.REGENERATE, words.reset(title), parent),
        )
        row.label.setBuddy(row.keys)
        row.keys.setEnabled(is_changeable(command))
        row.keys.setMinimumWidth(Size.SETTINGS_LABEL)
        row.keys.chosen.connect(partial(self._choose, row))
        row.reset.clicked.connect(partial(self._reset, row))
        at = grid.rowCount()
        for column, widget in enumerate((row.label, row.keys, row.reset)):
            grid.addWidget(widget, at, column)
        self._rows.append(row)

    def _choose(self, row: _ShortcutRow, keys: QKeySequence) -> None:
        """Give a command other keys, or show why it cannot have them."""
        choices = self._preferences.value.shortcuts
        why = "" if keys.isEmpty() else refusal(row.command.id, keys, keys_of(choices))
        self._tell(why)
        if why:
            row.keys.record()  # the sentence asks for other keys
        else:
            is_default = [keys] == key_sequences(row.command)
            others = {name: one for name, one in choices.items() if name != row.command.id}
            own = {} if is_default else {row.command.id: keys.toString()}
            self._preferences.change(shortcuts={**others, **own})

    def _reset(self, row: _ShortcutRow, *_checked: object) -> None:
        choices = self._preferences.value.shortcuts
        others = {name: one for name, one in choices.items() if name != row.command.id}
        keys = keys_of(choices)
        whys = (refusal(row.command.id, one, keys) for one in key_sequences(row.command))
        why = next(filter(None, whys), "")
        self._tell(why)
        if not why:
            self._preferences.change(shortcuts=others)

    def _tell(self, sentence: str) -> None:
        """Show a sentence in place of the note, and let screen readers say it."""
        self.sentence.setText(sentence or words.NOTE)
        self.sentence.setProperty("tone", "error" if sentence else "secondary")
        self.style().unpolish(self.sentence)
        self.style().polish(self.sentence)
        if sentence:
            announce(self, sentence)

    def _refresh(self) -> None:
        self._tell("")
        keys = keys_of(self._preferences.value.shortcuts)
        for row in self._rows:
            row.show(keys[row.command.id])
        self.reset_all.setEnabled(bool(self._preferences.value.shortcuts))

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        """Drop the sentence about a refusal, which is old when the page is shown again."""
        super().hideEvent(event)
        self._tell("")

    def _filter(self, text: str) -> None:
        """Show the commands whose title or keys have all the words of a text."""
        for row in self._rows:
            row.set_visible(visible=row.matches(text.casefold()))
        found = {row.heading for row in self._rows if not row.keys.isHidden()}
        for heading in {row.heading for row in self._rows}:
            heading.setVisible(heading in found)
        self.sentence.setText(words.NOTE if found else words.NOT_FOUND)
