"""The steps that requests, reading ahead and the end of a reply share: divide, feed and publish."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from engine.cache.disk.tier import DiskTier
from engine.cache.holdings import Lease
from engine.cache.points import PointKind, ResumePoint
from engine.cache.prefix_cache import PrefixCache
from engine.chat.prompt import Prompt
from engine.config import EngineConfig
from engine.errors import attempt
from engine.events import ReadAhead
from engine.models.loader import LoadedModel
from engine.questions import NextPrompt
from engine.runner.ahead import AheadRecord
from engine.runner.chunks import Chunk, plan_chunks
from engine.runner.history import History
from engine.runner.prefill import Prefill
from engine.types import Request


class Feeder:
    """Feeds the prompts of one loaded model to leased caches. Engine thread only."""

    def __init__(
        self,
        model: LoadedModel,
        cache: PrefixCache,
        history: History,
        config: EngineConfig,
        disk: Callable[[], DiskTier | None],
    ) -> None:
        """Create a feeder.

        Args:
            model: the loaded model.
            cache: the prefix cache of the model.
            history: the earlier prompts of the conversations.
            config: the settings of the engine.
            disk: function that returns the cached state on disk, None while it is off.
        """
        self._model = model
        self._cache = cache
        self._history = history
        self._config = config
        self._find_disk = disk
        self.ahead = AheadRecord()

    @property
    def disk(self) -> DiskTier | None:
        return self._find_disk()

    def known_prompt(self, task: NextPrompt, *, before_user: bool = False) -> Prompt:
        """Return the part of a conversation's next prompt that is known already.

        before_user: True if the next message is certainly a user message and no tool result.
        """
        return self._model.prompts.build_read_ahead(
            task.messages,
            thinking=task.thinking,
            keep_thinking=task.keep_thinking,
            is_draft=task.is_draft,
            before_user=before_user,
            tools=task.tools,
        )

    def prefill(self, prompt: Prompt, lease: Lease) -> Prefill:
        """Return a prefill for the tokens of a prompt that a lease's caches do not hold yet."""
        chunks = self.chunks(prompt, lease.hot.num_tokens, lease.matched)
        return Prefill(
            self._model, self._cache, lease, prompt.token_ids, chunks, self._save_reading
        )

    def chunks(self, prompt: Prompt, start: int, matched: int) -> list[Chunk]:
        """Divide the part of a prompt after `start`.

        matched: number of leading tokens of the prompt whose K/V is stored.
        """
        points = list(prompt.points)
        if self._model.layout.needs_snapshot and start < matched < len(prompt.token_ids):
            # The K/V matches more tokens than the last snapshot covers. Keep a snapshot at the end
            # of the match: a second edit at the same place then resumes at this snapshot.
            points.insert(0, ResumePoint(matched, PointKind.BRANCH))
        return plan_chunks(
            start,
            points,
            token_ids=prompt.token_ids,
            cell_len=self._config.cell_len,
            stride_len=self._config.stride_len,
        )

    def feed_all(self, prompt: Prompt, lease: Lease) -> None:
        """Feed the part of a prompt that a lease's caches do not hold yet."""
        prefill = self.prefill(prompt, lease)
        while prefill.is_left:
            prefill.step(prefill.end)

    def publish(
        self, shown: Request | ReadAhead, prompt: Prompt, lease: Lease, *, is_turn: bool
    ) -> None:
        """Publish a lease, and remember its prompt for the explanation of the next one."""
        points = [snapshot.num_tokens for snapshot in lease.snapshots]
        model = self._model.facts.path
        self._history.remember(shown, prompt, lease.hot.token_ids, points, model=model)
        if isinstance(shown, ReadAhead) and not is_turn:
            self.ahead.note_fed(shown.conversation_id, lease.hot.token_ids, lease.restored)
        self._cache.publish(lease, is_turn=is_turn)

    def _save_reading(self, lease: Lease) -> None:
        disk = self.disk
        if disk is not None and not lease.side:
            attempt("writing cached state", partial(disk.save_reading, lease))
