"""The rate at which the model in use reads, measured since it was loaded. Main thread.

Requests and read-aheads are measured alike: tokens fed, divided by the time that this took.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import EngineBridge, IdleEvent, RequestEvent
from app.controllers.models import ModelsController
from app.controllers.origin import Origin
from app.viewmodels.reading import MIN_MEASURED, prefill_rate
from engine.events import IdleKind, IdleWorking, RequestFinished

READING = frozenset({IdleKind.READ_AHEAD, IdleKind.DRAFT})


@dataclass(slots=True)
class _Job:
    """The read-ahead that is running, at its first event."""

    since: float  # Origin.tick()
    first_done: int
    total: int


class ReadingRate(QObject):
    """The newest measured rate in tokens per second. None before the first measurement."""

    changed = Signal()

    def __init__(self, bridge: EngineBridge, models: ModelsController, origin: Origin) -> None:
        super().__init__()
        self._models = models
        self._origin = origin
        self._path = models.status.path  # path of the model that the rate belongs to
        self._job: _Job | None = None
        self.tokens_per_s: float | None = None
        bridge.request_changed.connect(self._on_request_changed)
        bridge.idle_changed.connect(self._on_idle_changed)
        models.status_changed.connect(self._on_status_changed)

    def _on_status_changed(self) -> None:
        if self._models.status.path != self._path:
            self._path, self._job = self._models.status.path, None
            self._set(None)

    def _on_request_changed(self, event: RequestEvent) -> None:
        if isinstance(event, RequestFinished):
            rate = prefill_rate(event.usage)
            if rate is not None:
                self._set(rate)

    def _on_idle_changed(self, event: IdleEvent) -> None:
        if not isinstance(event, IdleWorking) or event.kind not in READING:
            self._job = None
            return
        job, now = self._job, self._origin.tick()
        if job is None or job.total != event.total or event.done < job.first_done:
            self._job = _Job(now, event.done, event.total)
            return
        fed, spent_s = event.done - job.first_done, now - job.since
        if fed >= MIN_MEASURED and spent_s > 0:
            self._set(fed / spent_s)

    def _set(self, rate: float | None) -> None:
        if rate != self.tokens_per_s:
            self.tokens_per_s = rate
            self.changed.emit()
