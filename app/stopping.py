"""The error of work that was stopped on request."""

from __future__ import annotations

from engine.errors import EngineError
from engine.problem import ProblemKind


class StoppedError(EngineError):
    """The work was stopped on request. The app shows nothing, because of the kind."""

    kind = ProblemKind.STOPPED

    def __init__(self) -> None:
        super().__init__("")
