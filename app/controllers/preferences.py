"""The current settings and their storage. Main thread; a worker thread writes the file."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.tasks import TaskLane
from app.settings import ModelDefaults, Settings, save_settings, zoom_in_range
from engine.types import ConversationId

ZOOM_STEP = 10  # change of the text zoom per step, in per cent
SAVE_MS = 300  # delay before a save, so that several changes in a row cost one write
# Settings that only the next start reads. A window of this run need not follow them.
_FOR_NEXT_START = frozenset(
    {"window_geometry", "sidebar_width", "selected_conversation", "read_message", "read_offset"}
)
_FOLLOWED = tuple(one.name for one in fields(Settings) if one.name not in _FOR_NEXT_START)


class Preferences(QObject):
    """The current settings. Widgets and controllers read and change them here."""

    changed = Signal()  # not emitted for the settings in _FOR_NEXT_START
    failed = Signal(object)  # argument: a Problem

    def __init__(
        self, settings: Settings, path: Path, lane: TaskLane, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._value = settings
        self._path = path
        self._lane = lane
        self._timer = QTimer(self, singleShot=True, interval=SAVE_MS)
        self._timer.timeout.connect(self._save)

    @property
    def value(self) -> Settings:
        return self._value

    def set(self, settings: Settings) -> None:
        before = self._value
        if settings == before:
            return
        self._value = settings
        self._timer.start()
        if any(getattr(settings, name) != getattr(before, name) for name in _FOLLOWED):
            self.changed.emit()

    def change(self, **values: object) -> None:
        """Set the named settings to new values; they are saved after SAVE_MS or by flush()."""
        self.set(replace(self._value, **values))

    def defaults_of(self, model_path: str) -> ModelDefaults:
        """Return the options of a model."""
        return self._value.model_defaults.get(model_path) or ModelDefaults()

    def set_defaults(self, model_path: str, defaults: ModelDefaults) -> None:
        """Set the options of a model. Default values take no room in the file."""
        others = {
            path: one for path, one in self._value.model_defaults.items() if path != model_path
        }
        entry = {} if defaults == ModelDefaults() else {model_path: defaults}
        self.change(model_defaults={**others, **entry})

    def set_selected(self, conversation_id: ConversationId | None) -> None:
        """Remember which conversation to show at the next start."""
        self.change(selected_conversation=conversation_id)

    def toggle_contrast(self) -> None:
        self.change(more_contrast=not self._value.more_contrast)

    def toggle_inspector(self) -> None:
        self.change(inspector_visible=not self._value.inspector_visible)

    def toggle_read_ahead(self) -> None:
        self.change(read_ahead=not self._value.read_ahead)

    def toggle_reopen_last(self) -> None:
        self.change(reopen_last=not self._value.reopen_last)

    def toggle_confirm_quit(self) -> None:
        self.change(confirm_quit=not self._value.confirm_quit)

    def toggle_name_chats(self) -> None:
        self.change(name_chats=not self._value.name_chats)

    def toggle_faster_answers(self) -> None:
        self.change(faster_answers=not self._value.faster_answers)

    def toggle_previews(self) -> None:
        self.change(preview_edits=not self._value.preview_edits)

    def toggle_keep_on_disk(self) -> None:
        self.change(keep_on_disk=not self._value.keep_on_disk)

    def zoom_in(self) -> None:
        self.set_zoom(self._value.text_zoom + ZOOM_STEP)

    def zoom_out(self) -> None:
        self.set_zoom(self._value.text_zoom - ZOOM_STEP)

    def zoom_reset(self) -> None:
        self.set_zoom(100)

    def flush(self) -> None:
        """Queue a write of unsaved changes now, instead of after SAVE_MS."""
        if self._timer.isActive():
            self._timer.stop()
            self._save()

    def set_zoom(self, percent: int) -> None:
        self.change(text_zoom=zoom_in_range(percent))

    def _save(self) -> None:
        value = self._value
        self._lane.run(lambda: save_settings(self._path, value), None, self.failed.emit)
