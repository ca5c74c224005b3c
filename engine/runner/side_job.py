"""Idle jobs in which the model writes something that changes no cached state: titles and previews.

The text of such a job is the answer to a side request: it copies the cached beginning of its prompt
to live caches of its own, publishes nothing and evicts nothing. When the job ends or is stopped,
these caches are dropped, and the prefix cache is as it was before. The state of a preview is kept
beside the prefix cache (cache/aside.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from engine.cache import kv
from engine.cache.prefix_cache import PrefixCache
from engine.chat.prompt import Prompt
from engine.cleanup import undo_on_error
from engine.errors import Failure
from engine.events import Event, IdleKind, RequestFinished
from engine.models.loader import LoadedModel
from engine.runner.runner import Runner
from engine.runner.sequence import Sequence
from engine.types import Request


@dataclass(frozen=True, slots=True)
class SideMaker:
    """Base class of the functions that create side jobs of one loaded model."""

    runner: Runner
    model: LoadedModel
    cache: PrefixCache
    # Highest length of a prompt whose live caches may take memory beside the cache's budget, as
    # those of an audit do. A longer prompt must fit into what the budget leaves free.
    max_beside: int

    def build(self, request: Request) -> Prompt:
        """Return the prompt of a request. See Runner.start for the errors."""
        return self.model.prompts.build(
            request.messages,
            thinking=request.thinking,
            keep_thinking=request.keep_thinking,
            tools=request.tools,
        )

    def num_unread(self, request: Request, prompt: Prompt) -> int:
        """Return the number of tokens of a prompt whose state is not in memory."""
        match = self.cache.match(request.conversation_id, prompt.token_ids)
        return len(prompt.token_ids) - match.restored

    def has_memory(self, request: Request, prompt: Prompt, num_states: int = 1) -> bool:
        """Return True if there is memory for a request's live caches and states kept of them."""
        layout, prompt_len = self.model.layout, len(prompt.token_ids)
        kv_bytes = kv.roomy(prompt_len + request.max_tokens) * layout.kv_bytes_per_token
        needed = kv_bytes + num_states * layout.snapshot_bytes
        return prompt_len <= self.max_beside or needed <= self.cache.spare_bytes


class SideJob(ABC):
    """A running side request. Each step feeds a chunk of the prompt or draws a token."""

    kind: IdleKind

    def __init__(self, runner: Runner, sequence: Sequence) -> None:
        self._runner = runner
        self._sequence = sequence
        self.conversation_id = sequence.request.conversation_id
        self.num_cached = sequence.prefill.start
        self.reads_pictures = sequence.prefill.reads_pictures
        num_read = sequence.prefill.end - self.num_cached
        self.total = num_read + sequence.request.max_tokens  # the answer may be shorter

    @property
    def done(self) -> int:
        return self._sequence.fed - self.num_cached

    def step(self) -> bool:
        """Run one forward pass. Return False at the end of the answer."""
        with undo_on_error(self._drop):
            if self._sequence.is_in_prefill:
                self._runner.read(self._sequence)
                self._note_read(self._sequence.num_unread)
                return True
            return self._draw()

    def stop(self) -> None:
        """End the answer here."""
        self._drop()

    def _drop(self) -> None:
        """Drop the answer and its live caches."""
        self._runner.abandon(self._sequence)

    def _draw(self) -> bool:
        """Draw a token. Return False if it is the last one, or if the pass fails."""
        for _, result in self._runner.decode():
            if isinstance(result, Failure):
                self._drop()
                self._note_failed(result)
                return False
            events = self._until_end(result)
            if events and isinstance(events[-1], RequestFinished):
                self.stop()
                self._note_finished(events[-1])
                return False
        return True

    def _until_end(self, events: list[Event]) -> list[Event]:
        """Return the events of a step, and those of the end of the answer if it ends here."""
        return events

    def _note_read(self, num_unread: int) -> None:  # noqa: B027 (a title reports nothing)
        """Note that a part of the prompt was read. num_unread: number of tokens that are left."""

    @abstractmethod
    def _note_finished(self, finished: RequestFinished) -> None: ...

    @abstractmethod
    def _note_failed(self, failure: Failure) -> None: ...
