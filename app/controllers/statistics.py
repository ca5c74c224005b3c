"""The engine's statistics, for the status line that --debug shows. Main thread."""

from __future__ import annotations

import logging

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import EngineBridge, IdleEvent
from app.viewmodels.statistics_line import statistics_line
from engine.cache_figures import CacheReport
from engine.clients import ModelEvent, RequestEvent
from engine.events import (
    IdleStopped,
    ModelLoaded,
    RequestFailed,
    RequestFinished,
)

log = logging.getLogger(__name__)


class EngineStatistics(QObject):
    """The controller that requests engine statistics, with a check of the cache's invariants.

    It requests statistics after each answer, after a model is loaded, and when idle work stops.
    """

    line_changed = Signal(str)

    def __init__(self, bridge: EngineBridge) -> None:
        super().__init__()
        self._bridge = bridge
        bridge.model_changed.connect(self._on_event)
        bridge.request_changed.connect(self._on_event)
        bridge.idle_changed.connect(self._on_event)

    def _on_event(self, event: ModelEvent | RequestEvent | IdleEvent) -> None:
        if isinstance(event, ModelLoaded | RequestFinished | RequestFailed | IdleStopped):
            asked = self._bridge.engine.report_cache(checks_invariants=True)
            self._bridge.when_answered(asked, self._on_reported)

    def _on_reported(self, report: CacheReport) -> None:
        line = statistics_line(report)
        log.debug("%s", line)
        self.line_changed.emit(line)
