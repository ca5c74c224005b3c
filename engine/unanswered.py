"""The commands that the engine thread has not answered yet.

If the engine thread ends or blocks, another thread takes its place (engine.py). The requests and the
model of the old thread then fail. The new thread gets the other unanswered commands, so that no caller
waits for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.events import (
    AwaitIdle,
    ClearDisk,
    Command,
    Event,
    Evict,
    Forget,
    IdleReached,
    LoadModel,
    ModelFailed,
    ReportStatistics,
    RequestFailed,
    RequestFinished,
    StatisticsReported,
    Submit,
    UnloadModel,
    Verified,
    Verify,
)
from engine.types import Problem, RequestId

_Question = AwaitIdle | Verify | ReportStatistics | Evict | Forget | ClearDisk


@dataclass(slots=True)
class Unanswered:
    """Commands that await an event. It must be protected by a lock."""

    _requests: dict[RequestId, None] = field(default_factory=dict[RequestId, None])
    # Path of the model that is loaded or is to be loaded. Empty if there is none.
    _model: str = ""
    _questions: list[_Question] = field(default_factory=list[_Question])

    @property
    def has_requests(self) -> bool:
        return bool(self._requests)

    @property
    def has_deletions(self) -> bool:
        """True if cached state on disk is to be deleted."""
        return any(
            isinstance(one, ClearDisk) or (isinstance(one, Forget) and one.on_disk)
            for one in self._questions
        )

    def note_command(self, command: Command) -> None:
        """Record a command that is sent to the engine thread."""
        match command:
            case Submit(request):
                self._requests[request.request_id] = None
            case LoadModel(path):
                self._model = path
            case UnloadModel(until_needed):
                self._model = self._model if until_needed else ""
            case AwaitIdle() | Verify() | ReportStatistics() | Evict() | Forget() | ClearDisk():
                self._questions.append(command)
            case _:
                pass

    def note_event(self, event: Event) -> None:
        """Remove the commands that an event answers."""
        match event:
            case RequestFinished(request_id=request_id) | RequestFailed(request_id=request_id):
                self._requests.pop(request_id, None)
            case ModelFailed(path):
                if path == self._model:
                    self._model = ""
            case IdleReached():
                self._remove_first(AwaitIdle)
            case Verified():
                self._remove_first(Verify)
            case StatisticsReported():
                self._remove_first(ReportStatistics, Evict, Forget, ClearDisk)
            case _:
                pass

    def _remove_first(self, *kinds: type[_Question]) -> None:
        found = next((one for one in self._questions if isinstance(one, kinds)), None)
        if found is not None:
            self._questions.remove(found)

    def take_failed(self, problem: Problem) -> list[Event]:
        """Remove the requests and the model. Return the events that report `problem` for each."""
        failed: list[Event] = [RequestFailed(request_id, problem) for request_id in self._requests]
        self._requests.clear()
        if self._model:
            failed.append(ModelFailed(self._model, problem))
            self._model = ""
        return failed

    def take_questions(self) -> list[Command]:
        """Remove and return the commands that await an answer, other than requests."""
        questions: list[Command] = [*self._questions]
        self._questions.clear()
        return questions
