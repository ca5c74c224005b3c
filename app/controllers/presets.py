"""Presets: save, apply, delete with undo, and choose a preset for each model. Main thread.

A new conversation begins with the preset and the choice of thinking of the model in use.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, replace

from PySide6.QtCore import QObject, Signal

from app.bridge.store_lane import StoreLane
from app.controllers.models import ModelsController
from app.controllers.preferences import Preferences
from app.controllers.undo import UndoList
from app.conversation.preset import Preset, Presets, apply_preset
from app.conversation.text import clean_text
from app.conversation.tree import Conversation, Setup
from app.store.codec import from_parsed
from app.store.presets import PresetStore
from app.words import undo as words


class PresetsController(QObject):
    """The presets that the widgets show and change. Every change is saved at once."""

    changed = Signal()  # emitted when a preset, a choice or the model in use has changed
    # arguments: name of the preset, function that undoes the deletion
    deleted = Signal(str, object)
    # arguments: name of the preset, function that restores the earlier preset
    replaced = Signal(str, object)

    def __init__(
        self,
        store: StoreLane,
        models: ModelsController,
        preferences: Preferences,
        undo: UndoList,
    ) -> None:
        super().__init__()
        self._store = store
        self._models = models
        self._model_path = models.status.path
        self._undo = undo
        self._preferences = preferences
        self._thinking: bool | None = self._default_thinking
        # System prompt and options of new conversations without a preset. The name is empty.
        self.new_chats = self._read_new_chats()
        self.value = Presets()
        models.status_changed.connect(self._on_status_changed)
        preferences.changed.connect(self._on_preferences_changed)

    def start(self) -> None:
        """Load the presets from the store; the list is empty until they arrive."""
        self._store.run(lambda store: store.presets.load(), self._on_loaded)

    def begin_conversation(self, conversation: Conversation) -> Conversation:
        """Apply the defaults of the model in use to a new, empty conversation.

        They are its preset, or else the settings for new chats, and its choice of thinking, which
        goes before that of the preset and the settings.
        """
        name = self.value.by_model.get(self._model_path, "")
        begun = apply_preset(conversation, self.value.by_name.get(name, self.new_chats))
        if self._thinking is None:
            return begun
        return replace(begun, setup=replace(begun.setup, thinking=self._thinking))

    def set_new_chats(self, system_prompt: str, setup: Setup) -> None:
        """Change the system prompt and the options of new conversations without a preset."""
        default = asdict(Setup())
        options = {name: one for name, one in asdict(setup).items() if one != default[name]}
        self._preferences.change(
            new_chat_prompt=clean_text(system_prompt), new_chat_options=options
        )

    def save_preset(self, preset: Preset) -> None:
        """Save a preset. An earlier preset with the same name is replaced."""
        earlier = self.value.by_name.get(preset.name, preset)
        self._put(preset)
        if earlier != preset:
            self.replaced.emit(
                preset.name,
                self._undo.add(
                    words.REPLACE_PRESET,
                    lambda: self._put(earlier),
                    redo=lambda: self._put(preset),
                ),
            )

    def _put(self, preset: Preset) -> None:
        self._take(replace(self.value, by_name={**self.value.by_name, preset.name: preset}))
        self._write(lambda store: store.save_preset(preset))

    def _on_loaded(self, stored: Presets) -> None:
        """Add the stored presets, but keep a preset that was saved while they were loading."""
        self._take(
            Presets(
                by_name={**stored.by_name, **self.value.by_name},
                by_model={**stored.by_model, **self.value.by_model},
            )
        )

    def delete(self, name: str) -> None:
        preset = self.value.by_name[name]
        models = [path for path, chosen in self.value.by_model.items() if chosen == name]
        by_name = {other: one for other, one in self.value.by_name.items() if other != name}
        by_model = {path: one for path, one in self.value.by_model.items() if one != name}
        self._take(Presets(by_name=by_name, by_model=by_model))
        self._write(lambda store: store.delete(name))
        undo = self._undo.add(words.DELETE_PRESET, lambda: self._bring_back(preset, models))
        self.deleted.emit(name, undo)

    def choose(self, model_path: str, name: str) -> None:
        """Choose the preset for new conversations with a model. An empty name clears the choice."""
        by_model = {path: one for path, one in self.value.by_model.items() if path != model_path}
        if name:
            by_model[model_path] = name
        self._take(replace(self.value, by_model=by_model))
        self._write(lambda store: store.choose(model_path, name))

    def _bring_back(self, preset: Preset, models: list[str]) -> None:
        """Restore a deleted preset. If its name is used by a newer preset, add a number to it."""
        name, number = preset.name, 1
        while name in self.value.by_name:
            number += 1
            name = f"{preset.name} {number}"
        self._put(replace(preset, name=name))
        for model_path in models:
            if model_path not in self.value.by_model:
                self.choose(model_path, name)

    def _on_status_changed(self) -> None:
        if self._models.status.path != self._model_path:
            self._model_path = self._models.status.path
            self._thinking = self._default_thinking
            self.changed.emit()

    @property
    def _default_thinking(self) -> bool | None:
        return self._preferences.defaults_of(self._model_path).thinking

    def _on_preferences_changed(self) -> None:
        now = (self._default_thinking, self._read_new_chats())
        if now != (self._thinking, self.new_chats):
            self._thinking, self.new_chats = now
            self.changed.emit()

    def _read_new_chats(self) -> Preset:
        """Return the settings for new conversations. Skip options that are unknown or damaged."""
        value, setup = self._preferences.value, Setup()
        for name, option in value.new_chat_options.items():
            with contextlib.suppress(ValueError):
                known = from_parsed(Setup, {**asdict(setup), name: option})
                setup = known
        return Preset(name="", system_prompt=value.new_chat_prompt, setup=setup)

    def _take(self, value: Presets) -> None:
        """Set the presets, sorted by name, and emit `changed`."""
        names = sorted(value.by_name, key=str.casefold)
        self.value = replace(value, by_name={name: value.by_name[name] for name in names})
        self.changed.emit()

    def _write(self, call: Callable[[PresetStore], None]) -> None:
        self._store.run(lambda store: call(store.presets))
