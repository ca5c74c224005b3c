"""The commands that the engine thread has not answered yet.

If the engine thread ends or blocks, another thread takes its place (engine.py). The requests and
the model of the old thread then fail. The new thread gets the open questions, so that no sender
waits for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from engine.events import (
    Answered,
    Command,
    Event,
    LoadModel,
    ModelFailed,
    RequestFailed,
    RequestFinished,
    Submit,
    UnloadModel,
)
from engine.problem import Problem
from engine.questions import Ask, ClearDisk, Forget, QuestionId
from engine.types import RequestId


@dataclass(slots=True)
class Unanswered:
    """Commands that await an event. It must be protected by a lock."""

    _requests: dict[RequestId, None] = field(default_factory=dict[RequestId, None])
    # Path of the model that is loaded or is to be loaded. Empty if there is none.
    _model: str = ""
    _questions: dict[QuestionId, Ask] = field(default_factory=dict[QuestionId, Ask])

    @property
    def has_requests(self) -> bool:
        return bool(self._requests)

    @property
    def has_deletions(self) -> bool:
        """True if cached state on disk is to be deleted."""
        asked = [one.question for one in self._questions.values()]
        return any(
            isinstance(one, ClearDisk) or (isinstance(one, Forget) and one.on_disk) for one in asked
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
            case Ask(question_id=question_id):
                self._questions[question_id] = command
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
            case Answered(question_id):
                self._questions.pop(question_id, None)
            case _:
                pass

    def take_failed(self, problem: Problem) -> list[Event]:
        """Remove the requests and the model. Return the events that report `problem` for each."""
        failed: list[Event] = [RequestFailed(request_id, problem) for request_id in self._requests]
        self._requests.clear()
        if self._model:
            failed.append(ModelFailed(self._model, problem))
            self._model = ""
        return failed

    def take_questions(self) -> list[Ask]:
        """Remove and return the open questions."""
        questions = list(self._questions.values())
        self._questions.clear()
        return questions
