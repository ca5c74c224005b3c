"""Memory and disk that the engine's cached state takes, and how much it may take; disk of pictures.

Main thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.bridge.engine_bridge import EngineBridge
from app.bridge.tasks import TaskLane
from app.controllers.preferences import Preferences
from app.store.pictures import PictureFiles
from engine.cache_figures import CacheReport, CacheStatistics
from engine.clients import ModelEvent, RequestEvent
from engine.events import (
    ModelLoaded,
    ModelLoading,
    ModelUnloaded,
    RequestFailed,
    RequestFinished,
    RequestStarted,
)
from engine.types import ConversationId

LOOK_MS = 1000  # time between two reports while a page shows the figures
_GB = 10**9
# Events after which the figures are others than before.
_CHANGING = (ModelLoaded, ModelUnloaded, RequestStarted, RequestFinished, RequestFailed)


class Storage(QObject):
    """Passes settings of memory and disk to the engine, and the engine's figures to the window."""

    changed = Signal()  # new figures have come
    cleared = Signal()  # the user has deleted all cached state on disk
    limited = Signal()  # the user has changed how much cached state is kept

    def __init__(
        self,
        bridge: EngineBridge,
        preferences: Preferences,
        folder: Path,
        pictures: PictureFiles,
        lane: TaskLane,
    ) -> None:
        """Send the settings to the engine, which carries them out before it loads a model.

        Args:
            bridge: the engine.
            preferences: the settings.
            folder: the folder of cached state.
            pictures: the stored pictures, whose size is measured on the lane.
            lane: the worker thread for files.
        """
        super().__init__()
        self._bridge = bridge
        self._engine = bridge.engine
        self._preferences = preferences
        self._folder = folder
        self._pictures = pictures
        self._lane = lane
        self.figures: CacheStatistics | None = None  # None before the first report
        self.picture_bytes: int | None = (
            None  # of all stored pictures; None before the first measurement
        )
        self._is_stopped = False
        self._sent: tuple[bool, int, int] | None = None  # the settings that the engine has
        self._look = QTimer(self, interval=LOOK_MS)
        self._look.timeout.connect(self._ask)
        bridge.model_changed.connect(self._on_event)
        bridge.request_changed.connect(self._on_event)
        preferences.changed.connect(self._send)
        self._send()

    def watch(self, *, shown: bool) -> None:
        """Ask for figures every LOOK_MS while a page shows them. Measure the pictures once."""
        if shown:
            self._lane.run(self._pictures.total_bytes, self._on_measured)
            self._ask()
            self._look.start()
        else:
            self._look.stop()

    def clear(self) -> None:
        """Delete all cached state on disk. No chat is lost, but each one is read once more."""
        self._bridge.when_answered(self._engine.clear_disk(), self._on_reported)
        self.cleared.emit()

    def forget(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Delete the cached state of chats that were removed for good."""
        for conversation_id in conversation_ids:
            self._bridge.when_answered(self._engine.forget(conversation_id), self._on_reported)

    def stop(self) -> None:
        """Ask for no more figures: the engine is being closed."""
        self._is_stopped = True
        self._look.stop()

    def _send(self) -> None:
        """Send the settings if they have changed. A lower limit evicts state at once."""
        value = self._preferences.value
        wanted = value.keep_on_disk, value.disk_gb, value.memory_gb
        if wanted == self._sent:
            return  # another setting has changed
        self._sent = wanted
        self._engine.set_disk(
            str(self._folder), enabled=value.keep_on_disk, budget_bytes=value.disk_gb * _GB or None
        )
        self._engine.set_memory(value.memory_gb * _GB or None)
        self.limited.emit()
        if not self._is_stopped:
            self._ask()

    def _on_event(self, event: ModelEvent | RequestEvent) -> None:
        """Ask for changed figures: at an answer's start and end, after a load or unload.

        A load drops those of the model before, which the engine replaces only at its end.
        """
        if isinstance(event, ModelLoading) and self.figures is not None:
            self.figures = self.figures.without_model()
            self.changed.emit()
        if isinstance(event, _CHANGING) and not self._is_stopped:
            self._ask()

    def _ask(self) -> None:
        self._bridge.when_answered(self._engine.report_cache(), self._on_reported)

    def _on_measured(self, num_bytes: int) -> None:
        self.picture_bytes = num_bytes
        self.changed.emit()

    def _on_reported(self, report: CacheReport) -> None:
        self.figures = report.statistics
        self.changed.emit()
