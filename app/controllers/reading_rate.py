"""The time that the model in use takes to read, measured since it was loaded. Main thread.

Requests and read-aheads are measured alike, in pieces: tokens fed, and the time that this took.
"""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import EngineBridge, IdleEvent
from app.controllers.models import ModelsController
from app.controllers.origin import Origin
from app.viewmodels.reading import MIN_MEASURED, ToRead, note_usage
from engine.clients import RequestEvent
from engine.events import (
    IdleWorking,
    PrefillProgress,
    RequestFailed,
    RequestFinished,
    RequestStarted,
)
from engine.questions import TokensCounted
from engine.reading_pace import ReadingPace, ReadingTime
from engine.types import RequestId

# Smallest share of a reading that is measured after its first MIN_MEASURED tokens: a long reading
# gives nine measurements at most. The first one is early, because the user may stop the reading.
_SHARE = 8


@dataclass(slots=True)
class _Read:
    """A reading that is running, since its newest measurement."""

    start: int  # position of the first token to feed
    total: int  # number of tokens to feed
    position: int  # number of tokens of the prompt that were fed or cached
    since: float  # Origin.tick()
    is_measured: bool = False  # True after the first measurement


class ReadingRate(QObject):
    """The measurements of the model in use."""

    changed = Signal()

    def __init__(self, bridge: EngineBridge, models: ModelsController, origin: Origin) -> None:
        super().__init__()
        self._models = models
        self._origin = origin
        self._path = models.status.path  # path of the model that the measurements belong to
        self._pace = ReadingPace()
        self._ahead: _Read | None = None  # the read-ahead that is running
        self._requests: dict[RequestId, _Read] = {}
        bridge.request_changed.connect(self._on_request_changed)
        bridge.idle_changed.connect(self._on_idle_changed)
        models.status_changed.connect(self._on_status_changed)

    def time(self, start: int, end: int) -> ReadingTime | None:
        """Return the time that the tokens [start, end) of a prompt take. None: not measured yet."""
        return self._pace.time(start, end)

    def to_read(self, counted: TokensCounted) -> ToRead:
        """Return what a counted prompt makes the model read, and the time that this takes."""
        start, end = counted.num_cached, counted.num_tokens
        return ToRead(end - start, self.time(start, end), end, counted.num_on_disk, counted.plan)

    def _on_status_changed(self) -> None:
        if self._models.status.path != self._path:
            self._path = self._models.status.path
            self._pace, self._ahead = ReadingPace(), None
            self._requests.clear()
            self.changed.emit()

    def _on_request_changed(self, event: RequestEvent) -> None:
        match event:
            case RequestStarted(request_id=request_id, plan=plan):
                total = plan.prompt_tokens - plan.restored
                self._requests[request_id] = self._begin(plan.restored, total)
            case PrefillProgress(request_id=request_id, done=done):
                if request_id in self._requests:
                    self._measure(self._requests[request_id], done)
            case RequestFinished(request_id=request_id):
                read = self._requests.pop(request_id, None)
                if read is None or not read.is_measured:
                    note_usage(self._pace, event.usage, self._origin.tick())
                    self.changed.emit()
            case RequestFailed(request_id=request_id):
                self._requests.pop(request_id, None)
            case _:
                pass

    def _on_idle_changed(self, event: IdleEvent) -> None:
        if not isinstance(event, IdleWorking) or not event.kind.is_reading:
            self._ahead = None
            return
        ahead = self._ahead
        is_same = ahead is not None and (ahead.start, ahead.total) == (
            event.num_cached,
            event.total,
        )
        if ahead is None or not is_same or event.num_cached + event.done < ahead.position:
            self._ahead = self._begin(event.num_cached, event.total, event.done)
        else:
            self._measure(ahead, event.done)

    def _begin(self, start: int, total: int, done: int = 0) -> _Read:
        return _Read(start, total, start + done, self._origin.tick())

    def _measure(self, read: _Read, done: int) -> None:
        """Add a measurement if enough tokens were fed since the newest one."""
        position, now = read.start + done, self._origin.tick()
        share = read.total // _SHARE if read.is_measured else 0
        if position - read.position >= max(MIN_MEASURED, share):
            self._pace.note(read.position, position, now - read.since, now)
            read.position, read.since, read.is_measured = position, now, True
            self.changed.emit()
