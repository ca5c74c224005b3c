"""Methods that build and send the commands of the app, which names no command class. Free of mlx."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Protocol

from engine.events import (
    AwaitIdle,
    Cancel,
    Command,
    Evict,
    EvictWhat,
    Forget,
    LoadModel,
    Pin,
    ReadAhead,
    ReportStatistics,
    SetIdleWork,
    Show,
    Submit,
    Verify,
)
from engine.types import ConversationId, Message, Request, RequestId


class EngineCommands(Protocol):
    """Builds each command and sends it. Implementations derive from this class and define `send`."""

    @abstractmethod
    def send(self, command: Command) -> None:
        """Queue a command; never block."""

    def load_model(self, path: str) -> None:
        self.send(LoadModel(path))

    def submit(self, request: Request) -> None:
        """Queue a request. Its waiting time begins now."""
        self.send(Submit(request, time.perf_counter()))

    def cancel(self, request_id: RequestId) -> None:
        self.send(Cancel(request_id))

    def forget(self, conversation_id: ConversationId) -> None:
        self.send(Forget(conversation_id))

    def pin(self, conversation_id: ConversationId) -> None:
        self.send(Pin(conversation_id, pinned=True))

    def unpin(self, conversation_id: ConversationId) -> None:
        self.send(Pin(conversation_id, pinned=False))

    def show(self, conversation_id: ConversationId | None) -> None:
        self.send(Show(conversation_id))

    def read_ahead(
        self,
        conversation_id: ConversationId,
        messages: tuple[Message, ...],
        *,
        is_draft: bool = False,
        thinking: bool | None = None,
        keep_thinking: bool = False,
    ) -> None:
        """Read these messages while idle; without any, read nothing ahead for this conversation."""
        self.send(
            ReadAhead(
                conversation_id=conversation_id,
                messages=messages,
                is_draft=is_draft,
                thinking=thinking,
                keep_thinking=keep_thinking,
            )
        )

    def set_idle_work(self, *, enabled: bool) -> None:
        self.send(SetIdleWork(enabled))

    def await_idle(self) -> None:
        """Ask for IdleReached."""
        self.send(AwaitIdle())

    def report_statistics(self, *, checks_invariants: bool = False) -> None:
        """Request a StatisticsReported event."""
        self.send(ReportStatistics(checks_invariants))

    def evict(self, what: EvictWhat) -> None:
        self.send(Evict(what))

    def verify(self, request_id: RequestId, messages: tuple[Message, ...]) -> None:
        """Ask for Verified."""
        self.send(Verify(request_id, messages))
