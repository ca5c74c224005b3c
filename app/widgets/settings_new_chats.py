"""The settings page for new chats: system prompt, sampling and thinking."""

from __future__ import annotations

from dataclasses import replace

from PySide6.QtCore import QTimer
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.controllers.models import ModelsController
from app.controllers.presets import PresetsController
from app.conversation.tree import Setup
from app.theme.palette import Theme
from app.theme.tokens import Millis, Space, Type
from app.widgets.button import Button
from app.widgets.inspector import MAX_TEMPERATURE, PromptEdit
from app.widgets.number_field import NumberField
from app.widgets.sampling_fields import SamplingFields
from app.widgets.segments import Segments
from app.widgets.settings_page import SettingsPage
from app.words import inspector, model_defaults, settings as words
from engine.types import SamplingParams

PROMPT_LINES = 6  # lines of the system prompt that are visible without scrolling


class NewChatsPage(SettingsPage):
    """The New Chats page of the settings. A change applies to chats that begin after it."""

    def __init__(
        self, theme: Theme, presets: PresetsController, models: ModelsController, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._theme = theme
        self._presets = presets
        self._models = models
        self.prompt = PromptEdit(Type.UI.line, self)
        self.temperature = NumberField(
            inspector.TEMPERATURE, lowest=0, highest=MAX_TEMPERATURE, decimals=2, parent=self
        )
        self.sampling = SamplingFields(self)
        self.thinking = Segments(model_defaults.THINKING, model_defaults.THINKING_CHOICES, self)
        self.reset = Button(words.RESET_NEW_CHATS, self)
        self._typing = QTimer(self, singleShot=True, interval=Millis.DRAFT_SAVE)
        self._build()
        self._connect()
        self._scale()
        self._refresh()

    def flush(self) -> None:
        """Save the system prompt now if the user is typing it."""
        if self._typing.isActive():
            self._typing.stop()
            self._presets.set_new_chats(self.prompt.toPlainText(), self._presets.new_chats.setup)

    def _build(self) -> None:
        self.prompt.setObjectName("systemPrompt")
        self.prompt.setAccessibleName(inspector.SYSTEM_PROMPT)
        self.prompt.setPlaceholderText(words.NEW_CHATS_HINT)
        self.prompt.setTabChangesFocus(True)
        self.add_note(words.NEW_CHATS_NOTE)
        self.add_row(inspector.SYSTEM_PROMPT, self.prompt, fills=True)
        self.add_row(model_defaults.THINKING, self.thinking)
        self.add_row(inspector.TEMPERATURE, self.temperature)
        self.add_row(words.SAMPLING, self.sampling)
        self.add_row("", self.reset)
        self.end()

    def _connect(self) -> None:
        self.prompt.textChanged.connect(self._typing.start)
        self.prompt.left.connect(self.flush)
        self._typing.timeout.connect(self.flush)
        self.temperature.changed.connect(self._on_temperature)
        self.thinking.chosen.connect(self._on_thinking)
        self.sampling.changed.connect(self._put)
        self.reset.clicked.connect(self._on_reset)
        self._theme.zoomed.connect(self._scale)
        self._presets.changed.connect(self._refresh)
        self._models.status_changed.connect(self._refresh)

    def _on_temperature(self, temperature: float | None) -> None:
        self._put(replace(self._presets.new_chats.setup, temperature=temperature))

    def _on_thinking(self, thinking: bool | None) -> None:  # noqa: FBT001 (slot)
        self._put(replace(self._presets.new_chats.setup, thinking=thinking))

    def _put(self, setup: Setup) -> None:
        self._typing.stop()
        self._presets.set_new_chats(self.prompt.toPlainText(), setup)

    def _on_reset(self) -> None:
        self._typing.stop()
        self._presets.set_new_chats("", Setup())

    def _scale(self) -> None:
        line = round(Type.UI.line * self._theme.zoom)
        self.prompt.set_line_height(line)
        self.prompt.setFixedHeight(PROMPT_LINES * line + 2 * Space.S)

    def _refresh(self) -> None:
        value, facts = self._presets.new_chats, self._models.status.facts
        defaults = SamplingParams() if facts is None else facts.default_sampling
        if self.prompt.toPlainText() != value.system_prompt and not self._typing.isActive():
            self.prompt.blockSignals(True)
            self.prompt.setPlainText(value.system_prompt)
            self.prompt.blockSignals(False)
        self.thinking.show_value(value.setup.thinking)
        self.temperature.show_value(value.setup.temperature, defaults.temperature)
        self.sampling.show_setup(value.setup, defaults)
        self.reset.setEnabled(value.setup != Setup() or bool(value.system_prompt))

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.flush()
