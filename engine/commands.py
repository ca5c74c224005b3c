"""Methods that build the engine's commands and send them. This module does not import mlx.

The app calls these methods and imports no command class.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar, cast

from engine.cache_figures import CacheReport, HeldChats
from engine.events import (
    Cancel,
    Command,
    LoadModel,
    ReadAhead,
    Submit,
    UnloadModel,
    Withdraw,
)
from engine.questions import (
    AnyQuestion,
    Ask,
    AwaitIdle,
    CheckResult,
    ClearDisk,
    CountPictures,
    CountTokens,
    Evict,
    EvictWhat,
    Forget,
    ForgetUnknown,
    MakePreview,
    MakeTitle,
    MoveToDisk,
    NextPrompt,
    ParseCalls,
    PicturesCounted,
    Preview,
    Question,
    QuestionId,
    ReportCache,
    ReportChats,
    TokensCounted,
    Verify,
)
from engine.types import ConversationId, Message, Request, RequestId, ToolCall
from engine.wanted import DiskSettings, Wanted

A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Asked(Generic[A]):
    """A question that was put to the engine. `A` is the type of its answer."""

    question_id: QuestionId


class EngineCommands(Protocol):
    """Methods for the commands, settings and questions. Subclasses define `send` and `want`.

    The Shutdown command and the setting `picture_folder` have no method.

    The method of a question returns what is needed to receive the answer, which may be ignored.
    """

    @abstractmethod
    def send(self, command: Command) -> None:
        """Queue a command for the engine thread. Never block."""

    @abstractmethod
    def want(self, change: Callable[[Wanted], Wanted]) -> None:
        """Change the settings of the engine. Never block. If they stay equal, send no command.

        change: function that takes the present settings and returns the new ones.
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

    def pin(self, conversation_ids: frozenset[ConversationId]) -> None:
        """Pin these conversations and no others: the cache evicts their state last."""
        self.want(lambda one: replace(one, pinned=conversation_ids))

    def show(self, conversation_id: ConversationId | None) -> None:
        """Give priority to the conversation that the window shows."""
        self.want(lambda one: replace(one, shown=conversation_id))

    def read_ahead(
        self, prompt: NextPrompt, *, fetch_only: bool = False, displaces: bool = False
    ) -> None:
        """Feed a conversation's next prompt to the model while the engine is idle.

        If it has no messages, cancel an earlier read-ahead of this conversation instead. With
        fetch_only, only read its state from disk. With displaces, evict less valuable state for it.
        """
        self.send(
            ReadAhead(
                conversation_id=prompt.conversation_id,
                messages=prompt.messages,
                is_draft=prompt.is_draft,
                thinking=prompt.thinking,
                keep_thinking=prompt.keep_thinking,
                tools=prompt.tools,
                fetch_only=fetch_only,
                displaces=displaces,
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

    def set_memory(self, most_bytes: int | None) -> None:
        """Keep at most this much cached state in memory. None: all that the model leaves free."""
        self.want(lambda one: replace(one, most_cached_bytes=most_bytes))

    def set_disk(self, folder: str, *, enabled: bool, budget_bytes: int | None) -> None:
        """Keep cached state in a folder, of this size at most. None: chosen from the free space."""
        disk = DiskSettings(folder, enabled, budget_bytes)
        self.want(lambda one: replace(one, disk=disk))

    # Questions

    def ask(self, question: Question[A]) -> Asked[A]:
        """Put a question to the engine. Exactly one Answered event has the answer."""
        ask = Ask(cast("AnyQuestion", question))
        self.send(ask)
        return Asked(ask.question_id)

    def withdraw(self, asked: Asked[str] | Asked[TokensCounted] | Asked[Preview]) -> None:
        """Withdraw a question that may be unanswered. See Withdraw."""
        self.send(Withdraw(asked.question_id))

    def count_tokens(self, prompt: NextPrompt | Request) -> Asked[TokensCounted]:
        """Ask for the length of a conversation's next prompt, or what a request would read."""
        return self.ask(CountTokens(prompt))

    def count_pictures(self, sizes: tuple[tuple[int, int], ...]) -> Asked[PicturesCounted]:
        """Ask for the tokens that pictures of these sizes take. See CountPictures."""
        return self.ask(CountPictures(sizes))

    def parse_calls(self, text: str, tools: str = "") -> Asked[tuple[ToolCall, ...]]:
        """Ask for the tool calls in a text that the model wrote. See ParseCalls."""
        return self.ask(ParseCalls(text, tools))

    def make_title(self, prompt: NextPrompt) -> Asked[str]:
        """Let the model write a title while the engine is idle."""
        return self.ask(MakeTitle(prompt))

    def make_preview(self, request: Request) -> Asked[Preview]:
        """Let the model write the beginning of an answer while the engine is idle."""
        return self.ask(MakePreview(request))

    def await_idle(self) -> Asked[None]:
        """Ask for an answer once the engine is idle. See AwaitIdle."""
        return self.ask(AwaitIdle())

    def verify(self, request_id: RequestId, messages: tuple[Message, ...]) -> Asked[CheckResult]:
        """Compare a finished request with runs of the model that use no cached state."""
        return self.ask(Verify(request_id, messages))

    def report_cache(self, *, checks_invariants: bool = False) -> Asked[CacheReport]:
        """Ask for the figures of the cache."""
        return self.ask(ReportCache(checks_invariants))

    def report_chats(self) -> Asked[HeldChats]:
        """Ask for the cached state of each conversation."""
        return self.ask(ReportChats())

    def move_to_disk(self, conversation_ids: tuple[ConversationId, ...]) -> Asked[HeldChats]:
        """Write the cached state of conversations to disk. Drop it from memory. See MoveToDisk."""
        return self.ask(MoveToDisk(conversation_ids))

    def forget(
        self,
        conversation_id: ConversationId,
        *,
        on_disk: bool = True,
        heir: ConversationId | None = None,
    ) -> Asked[CacheReport]:
        """Drop the cached state of a conversation; on_disk=False: only that in memory.

        heir: the conversation that takes over the state in memory, if there is one.
        """
        return self.ask(Forget(conversation_id, on_disk, heir))

    def forget_unknown(
        self, known: frozenset[ConversationId], *, known_prefixes: tuple[str, ...]
    ) -> Asked[CacheReport]:
        """Delete state on disk of conversations that are not known. See ForgetUnknown."""
        return self.ask(ForgetUnknown(known, known_prefixes))

    def evict(self, what: EvictWhat) -> Asked[CacheReport]:
        """Evict a part of the cached state at once."""
        return self.ask(Evict(what))

    def clear_disk(self) -> Asked[CacheReport]:
        """Delete all cached state on disk."""
        return self.ask(ClearDisk())
