"""The time that the model in use takes to read, as measured on this computer. Main thread.

Requests and read-aheads of text are measured alike, in pieces: tokens fed, and the time that this
took. The measurements of each model are kept in a file, so a rate is known from the first message
on.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import EngineBridge, IdleEvent
from app.bridge.tasks import TaskLane
from app.controllers.kept_record import KeptRecord
from app.controllers.models import ModelsController
from app.controllers.origin import Origin
from app.store.reading_records import MAX_MODELS, ModelReadings, ReadingRates, load_rates
from app.viewmodels.reading import MIN_MEASURED, ToRead, note_usage, saved_ms
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
from engine.usage import Usage

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
    is_alone: bool = True  # False once another request ran beside it, which made it slower
    is_text: bool = (
        True  # False if it feeds pictures, which take longer than text of the same length
    )


class ReadingRate(QObject):
    """The measurements of the model in use."""

    changed = Signal()

    def __init__(
        self,
        bridge: EngineBridge,
        models: ModelsController,
        origin: Origin,
        path: Path,
        lane: TaskLane,
    ) -> None:
        """Load the measurements of earlier runs. path: their file."""
        super().__init__()
        self._models = models
        self._origin = origin
        self._model: str = ""  # the model that the measurements belong to, as ModelReadings.model
        self._pace = ReadingPace()
        self._record = KeptRecord(path, lane, self)
        # The measurements of the other models, the newest one last.
        self._others = {one.model: one for one in load_rates(path).models}
        self._ahead: _Read | None = None  # the read-ahead that is running
        self._requests: dict[RequestId, _Read] = {}
        bridge.request_changed.connect(self._on_request_changed)
        bridge.idle_changed.connect(self._on_idle_changed)
        models.status_changed.connect(self._on_status_changed)
        self._on_status_changed()

    def time(self, start: int, end: int) -> ReadingTime | None:
        """Return the time that the tokens [start, end) of a prompt take. None: not measured yet."""
        return self._pace.time(start, end)

    def to_read(self, counted: TokensCounted) -> ToRead:
        """Return what a counted prompt makes the model read, and the time that this takes."""
        start, end = counted.num_cached, counted.num_tokens
        return ToRead(
            end - start,
            self.time(start, end),
            num_prompt=end,
            num_on_disk=counted.num_on_disk,
            plan=counted.plan,
            is_shared=counted.is_busy or bool(self._requests),
        )

    def saved_ms(self, usage: Usage, model_path: str) -> float:
        """Return the milliseconds of reading that the restored tokens of a request spared.

        model_path: the model of the request. The result is 0 if it is not in use any more.
        """
        is_in_use = model_path == self._models.status.path
        return saved_ms(usage, self._pace) if is_in_use else 0.0

    def flush(self) -> None:
        """Queue a write of unsaved measurements now."""
        self._record.flush()

    def _on_status_changed(self) -> None:
        status = self._models.status
        # A model over several Macs reads at another rate than on one.
        model = status.path + (f" ({status.num_machines})" if status.num_machines else "")
        if model == self._model:
            return
        if self._model:
            self._others[self._model] = self._readings
        self._model, self._pace, self._ahead = model, ReadingPace(), None
        before = self._others.pop(model, None)
        for one in () if before is None else before.measured:
            self._pace.note(one.start, one.end, one.seconds, self._origin.tick())
        self._requests.clear()
        self.changed.emit()

    @property
    def _readings(self) -> ModelReadings:
        return ModelReadings(model=self._model, measured=self._pace.measured)

    def _on_measured(self) -> None:
        models = (*self._others.values(), self._readings)[-MAX_MODELS:]
        self._record.keep(ReadingRates(models=models))
        self.changed.emit()

    def _on_request_changed(self, event: RequestEvent) -> None:
        match event:
            case RequestStarted(request_id=request_id, plan=plan):
                total = plan.prompt_tokens - plan.restored
                read = self._begin(plan.restored, total)
                read.is_text = not plan.picture_tokens
                self._requests[request_id] = read
                if len(self._requests) > 1:
                    for read in self._requests.values():
                        read.is_alone = False
            case PrefillProgress(request_id=request_id, done=done):
                if request_id in self._requests:
                    self._measure(self._requests[request_id], done)
            case RequestFinished(request_id=request_id):
                read = self._requests.pop(request_id, None)
                if read is not None and read.is_alone and not read.is_measured:
                    note_usage(self._pace, event.usage, self._origin.tick())
                    self._on_measured()
            case RequestFailed(request_id=request_id):
                self._requests.pop(request_id, None)
            case _:
                pass

    def _on_idle_changed(self, event: IdleEvent) -> None:
        is_reading = isinstance(event, IdleWorking) and event.kind.is_reading
        if not isinstance(event, IdleWorking) or not is_reading or event.reads_pictures:
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
        """Add a measurement if enough tokens were fed since the newest one, with no other request.

        The time saved would be too long otherwise: it is counted in these measurements.
        """
        position, now = read.start + done, self._origin.tick()
        share = read.total // _SHARE if read.is_measured else 0
        if read.is_alone and read.is_text and position - read.position >= max(MIN_MEASURED, share):
            self._pace.note(read.position, position, now - read.since, now)
            read.position, read.since, read.is_measured = position, now, True
            self._on_measured()
