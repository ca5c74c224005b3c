"""Methods that build the engine's commands and send them. This module does not import mlx.

The app calls these methods and imports no command class.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from engine.events import (
    AwaitIdle,
    Cancel,
    ClearDisk,
    Command,
    CountTokens,
    Evict,
    EvictWhat,
    Forget,
    ForgetUnknown,
    LoadModel,
    MakeTitle,
    ReadAhead,
    ReportStatistics,
    Submit,
    UnloadModel,
    Verify,
)
from engine.types import ConversationId, Message, Request, RequestId
from engine.wanted import DiskSettings, Wanted


class EngineCommands(Protocol):
    """One method for each command and each setting. Subclasses define `send` and `want`."""

    @abstractmethod
    def send(self, command: Command) -> None:
        """Queue a command for the engine thread. Never block."""

    @abstractmethod
    def want(self, change: Callable[[Wanted], Wanted]) -> None:
        """Change the settings of the engine. Never block. No change sends no command.

        change: returns the new settings for the present ones.
        """

    def load_model(
        self, path: str, *, kv_bits: int | None = None, context_len: int | None = None
    ) -> None:
        """Load a model folder.

        Args:
            path: the folder.
            kv_bits: bits per attention K/V value, 4 or 8. None: as the engine is configured.
            context_len: highest number of tokens in prompt and reply together, if it is lower than
                the model's own limit.
        """
        self.send(LoadModel(path, kv_bits, context_len))

    def unload_model(self) -> None:
        """Unload the model until the next request, which loads it again."""
        self.send(UnloadModel(until_needed=True))

    def submit(self, request: Request) -> None:
        """Send a Submit command.

        The command stores the current time, so that the engine can measure how long the request
        waits.
        """
        self.send(Submit(request, time.perf_counter()))

    def cancel(self, request_id: RequestId) -> None:
        self.send(Cancel(request_id))

    def forget(self, conversation_id: ConversationId, *, on_disk: bool = True) -> None:
        """Drop the cached state of a conversation; on_disk=False: only that in memory."""
        self.send(Forget(conversation_id, on_disk))

    def forget_unknown(self, known: frozenset[ConversationId]) -> None:
        """Delete state on disk of conversations that are not in `known`. See ForgetUnknown."""
        self.send(ForgetUnknown(known))

    def pin(self, conversation_ids: frozenset[ConversationId]) -> None:
        """Pin these conversations and no others: the cache evicts their state last."""
        self.want(lambda one: replace(one, pinned=conversation_ids))

    def show(self, conversation_id: ConversationId | None) -> None:
        """Give priority to the conversation that the window shows."""
        self.want(lambda one: replace(one, shown=conversation_id))

    def read_ahead(
        self,
        conversation_id: ConversationId,
        messages: tuple[Message, ...],
        *,
        is_draft: bool = False,
        thinking: bool | None = None,
        keep_thinking: bool = False,
        fetch_only: bool = False,
    ) -> None:
        """Feed a conversation's next prompt to the model while the engine is idle.

        If messages is empty, cancel an earlier read-ahead of this conversation instead. With
        fetch_only, only read its state from disk.
        """
        self.send(
            ReadAhead(
                conversation_id=conversation_id,
                messages=messages,
                is_draft=is_draft,
                thinking=thinking,
                keep_thinking=keep_thinking,
                fetch_only=fetch_only,
            )
        )

    def make_title(
        self,
        conversation_id: ConversationId,
        messages: tuple[Message, ...],
        *,
        thinking: bool | None = None,
        keep_thinking: bool = False,
    ) -> None:
        """Let the model write a title while the engine is idle. TitleMade reports it.

        If messages is empty, cancel an earlier command for this conversation instead.
        """
        self.send(
            MakeTitle(
                conversation_id=conversation_id,
                messages=messages,
                thinking=thinking,
                keep_thinking=keep_thinking,
            )
        )

    def count_tokens(
        self,
        conversation_id: ConversationId,
        messages: tuple[Message, ...],
        *,
        is_draft: bool = False,
        thinking: bool | None = None,
        keep_thinking: bool = False,
    ) -> None:
        """Request a TokensCounted event: the length of a conversation's next prompt."""
        self.send(
            CountTokens(
                ReadAhead(
                    conversation_id=conversation_id,
                    messages=messages,
                    is_draft=is_draft,
                    thinking=thinking,
                    keep_thinking=keep_thinking,
                )
            )
        )

    def set_idle_work(self, *, enabled: bool) -> None:
        """Switch idle work on or off. Titles are made in any case."""
        self.want(lambda one: replace(one, idle_work=enabled))

    def set_unload_after(self, seconds: float | None) -> None:
        """Unload the model after some seconds without a request; None: never.

        The next request loads it again.
        """
        self.want(lambda one: replace(one, unload_after_s=seconds))

    def await_idle(self) -> None:
        """Request an IdleReached event.

        The engine emits it once no request, no read-ahead and no title is left.
        """
        self.send(AwaitIdle())

    def report_statistics(self, *, checks_invariants: bool = False) -> None:
        """Request a StatisticsReported event."""
        self.send(ReportStatistics(checks_invariants))

    def set_memory(self, most_bytes: int | None) -> None:
        """Keep at most this much cached state in memory. None: what the model leaves of it."""
        self.want(lambda one: replace(one, most_cached_bytes=most_bytes))

    def set_disk(self, folder: str, *, enabled: bool, budget_bytes: int | None) -> None:
        """Keep cached state in a folder, of this size at most. None: chosen from the free space."""
        disk = DiskSettings(folder, enabled, budget_bytes)
        self.want(lambda one: replace(one, disk=disk))

    def clear_disk(self) -> None:
        """Delete all cached state on disk."""
        self.send(ClearDisk())

    def evict(self, what: EvictWhat) -> None:
        self.send(Evict(what))

    def verify(self, request_id: RequestId, messages: tuple[Message, ...]) -> None:
        """Request a Verified event, which compares a finished request with runs of the model.

        These runs use no cached state.
        """
        self.send(Verify(request_id, messages))
