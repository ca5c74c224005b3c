"""The sheet with one model's options: how it is loaded, and how new chats begin. Main thread."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.controllers.core import Core
from app.settings import ModelDefaults
from app.theme.tokens import Size, Space
from app.widgets.button import Button
from app.widgets.menu import Menu
from app.widgets.menu_text import plain
from app.widgets.number_field import NumberField
from app.widgets.preset_menu import fill_defaults
from app.widgets.segments import Segments
from app.widgets.settings_page import SettingsPage
from app.words import commands, model_defaults as words, settings
from engine.catalog.card import ModelCard

_LEAST_CONTEXT = 512  # tokens; a shorter chat is not useful
_MOST_CONTEXT = 10_000_000  # tokens, for a model that states no limit


class ModelDefaultsSheet(QDialog):
    """The options of one model. A change applies at once, or when the model is loaded next."""

    def __init__(self, core: Core, card: ModelCard, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("modelDefaults")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(words.title(card.title))
        zoom = max(1.0, core.preferences.value.text_zoom / 100)
        room = parent.screen().availableSize().width()
        self.setFixedWidth(min(round(Size.SETTINGS_WIDTH * zoom), room))
        self._core = core
        self._path = str(card.path)
        self._limit = card.context_len
        self.preset = Button("", self)
        self._menu = Menu(self.preset)
        self.preset.setMenu(self._menu)
        self.thinking = Segments(words.THINKING, words.THINKING_CHOICES, self)
        self.context = NumberField(
            words.CONTEXT_NAME,
            lowest=_LEAST_CONTEXT,
            highest=max(_LEAST_CONTEXT, card.context_len or _MOST_CONTEXT),
            decimals=0,
            parent=self,
        )
        self.memory = Segments(words.MEMORY, words.MEMORY_CHOICES, self)
        self.load_button = Button(commands.LOAD_AGAIN, self)
        self.done_button = Button(words.DONE, self)
        self._build(card.title)
        self._connect()
        self._refresh()

    def _build(self, name: str) -> None:
        page = SettingsPage(self)
        title = QLabel(plain(words.title(name)), self)
        title.setProperty("type", "title")
        title.setContentsMargins(Space.XXL, Space.L, Space.XXL, 0)
        page.add_row(settings.NEW_CHATS, self.preset)
        self.thinking.setVisible(self._may_think)
        if self._may_think:
            page.add_row(words.THINKING, self.thinking)
        page.add_note(words.NEW_CHATS_NOTE)
        page.add_row(words.CONTEXT, self.context)
        page.add_note(words.CONTEXT_NOTE)
        page.add_row(words.MEMORY, self.memory)
        page.add_note(words.MEMORY_NOTE)
        page.add_note(words.AT_NEXT_LOAD)
        page.end()
        # Return ends the editing of the number, and must not press a button of the sheet too.
        for button in self.findChildren(Button):
            button.setAutoDefault(False)
        self.done_button.setProperty("kind", "primary")
        buttons = QHBoxLayout()
        buttons.setContentsMargins(Space.XXL, 0, Space.XXL, Space.L)
        buttons.setSpacing(Space.S)
        buttons.addStretch()
        buttons.addWidget(self.load_button)
        buttons.addWidget(self.done_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(title)
        layout.addWidget(page)
        layout.addLayout(buttons)
        page.controls += [self.load_button, self.done_button]
        page.order()
        self.resize(self.width(), layout.totalHeightForWidth(self.width()))

    def _connect(self) -> None:
        core = self._core
        self._menu.aboutToShow.connect(self._fill)
        self.thinking.chosen.connect(self._on_thinking)
        self.context.changed.connect(self._on_context)
        self.memory.chosen.connect(self._on_memory)
        self.load_button.clicked.connect(core.models.load_again)
        self.done_button.clicked.connect(self.accept)
        core.preferences.changed.connect(self._refresh)
        core.presets.changed.connect(self._refresh)
        core.models.status_changed.connect(self._refresh)

    @property
    def _may_think(self) -> bool:
        """True unless the model was loaded and is known to write no thoughts."""
        facts = self._core.models.status.facts
        return facts is None or facts.path != self._path or facts.has_thinking

    @property
    def _defaults(self) -> ModelDefaults:
        return self._core.preferences.defaults_of(self._path)

    def _set(self, defaults: ModelDefaults) -> None:
        self._core.preferences.set_defaults(self._path, defaults)

    def _on_thinking(self, thinking: bool | None) -> None:  # noqa: FBT001 (the value)
        self._set(replace(self._defaults, thinking=thinking))

    def _on_context(self, tokens: float | None) -> None:
        self._set(replace(self._defaults, context_len=0 if tokens is None else int(tokens)))

    def _on_memory(self, bits: int) -> None:
        self._set(replace(self._defaults, kv_bits=bits))

    def _refresh(self) -> None:
        core = self._core
        defaults, presets = self._defaults, core.presets.value
        name = presets.by_model.get(self._path, "")
        self.preset.setText(plain(name) or settings.NO_PRESET)
        self.preset.setAccessibleName(f"{settings.NEW_CHATS}: {name or settings.NO_PRESET}")
        self.preset.setEnabled(bool(presets.by_name))
        self.thinking.show_value(defaults.thinking)
        self.context.show_value(defaults.context_len or None, self._limit or _MOST_CONTEXT)
        self.memory.show_value(defaults.kv_bits)
        self.load_button.setVisible(core.models.must_load_again(self._path))

    def _fill(self) -> None:
        presets = self._core.presets
        self._menu.clear()
        choose = partial(presets.choose, self._path)
        fill_defaults(self._menu, presets.value, self._path, settings.NO_PRESET, choose)
