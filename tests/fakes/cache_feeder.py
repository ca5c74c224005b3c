"""A prefix cache and somebody who feeds it prompts of numbers, without model, template or runner."""

from __future__ import annotations

from collections.abc import Sequence

from engine.cache.budget import Policy
from engine.cache.coverage import coverage_aware
from engine.cache.held import Lease
from engine.cache.prefix_cache import PrefixCache
from engine.cache.trees import evaluate
from engine.chat.prompt import PointKind
from engine.models.probe import probe
from engine.types import ConversationId
from tests.fakes.sized_model import SizedAdapter

# Logits as large as the K/V of thirty tokens, as in Qwen3.5-4B.
VOCAB_SIZE = 480
Points = dict[int, PointKind]


class CacheFeeder:
    """Tokens are numbers; a state is as large as the K/V of `state_tokens` tokens (0: K/V only)."""

    def __init__(
        self,
        *,
        state_tokens: int = 1600,
        budget_bytes: int = 1 << 40,
        max_hot: int = 16,
        policy: Policy = coverage_aware,
    ) -> None:
        self.adapter = SizedAdapter(VOCAB_SIZE, state_tokens)
        self.layout = probe(self.adapter)
        self.cache = PrefixCache(
            self.layout, budget_bytes=budget_bytes, max_hot=max_hot, policy=policy
        )

    def turn(self, chat: str, token_ids: Sequence[int], points: Points) -> int:
        """Feed a prompt and its reply, keep points on the way. Returns the tokens that were fed."""
        lease = self.start(chat, token_ids)
        num_fed = len(token_ids) - lease.hot.num_tokens
        self.feed(lease, token_ids, points)
        self.cache.publish(lease)
        return num_fed

    def start(self, chat: str, token_ids: Sequence[int]) -> Lease:
        return self.cache.acquire(
            ConversationId(chat),
            token_ids,
            self.adapter.new_caches,
            room=len(token_ids),
            side=False,
        )

    def feed(self, lease: Lease, token_ids: Sequence[int], points: Points) -> None:
        """Feed what is missing of token_ids, cut at the points."""
        for end in sorted({*points, len(token_ids)}):
            start = lease.hot.num_tokens
            if end <= start:
                continue
            # Before: nothing is held yet by a new conversation.
            self.cache.reserve(lease, len(token_ids))
            logits = self.adapter.forward(token_ids[start:end], lease.hot.caches)
            lease.hot.commit(token_ids[start:end])
            self.cache.reserve(lease, len(token_ids))
            kind = points.get(end)
            is_prompt = kind is PointKind.PROMPT
            if kind is not None and (is_prompt or self.layout.needs_snapshot):
                self.cache.capture(lease, kind, logits if is_prompt else None)
            leaves, newest = lease.hot.leaves, lease.snapshots[-1:]
            evaluate(leaves.buffers)
            evaluate(leaves.states, [point.states for point in newest])
