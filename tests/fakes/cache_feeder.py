"""A prefix cache filled with prompts of made-up token ids, without model, template or runner.

SizedAdapter stands in for the model. Its caches grow like those of a real model, and a forward pass
takes almost no time.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.cache.holdings import Lease
from engine.cache.points import PointKind
from engine.cache.policy import Policy
from engine.cache.prefix_cache import PrefixCache
from engine.cache.ranking import CoverageRanking
from engine.cache.trees import evaluate
from engine.models.probe import probe
from engine.types import ConversationId
from tests.fakes.sized_model import SizedAdapter

# With this size the logits of one position take as much memory as the K/V of 30 tokens, as in
# Qwen3.5-4B.
VOCAB_SIZE = 480
# The resume points to keep. Key: number of tokens before the point. Value: kind of the point.
Points = dict[int, PointKind]


class CacheFeeder:
    """A prefix cache, and methods that feed requests into it.

    A snapshot of the recurrent state is as large as the K/V of `state_tokens` tokens. If
    `state_tokens` is 0, the model has no recurrent state.
    """

    def __init__(
        self,
        *,
        state_tokens: int = 1600,
        budget_bytes: int = 1 << 40,
        max_hot: int = 16,
        policy: Policy = CoverageRanking,
    ) -> None:
        self.adapter = SizedAdapter(VOCAB_SIZE, state_tokens)
        self.layout = probe(self.adapter)
        self.cache = PrefixCache(
            self.layout, budget_bytes=budget_bytes, max_hot=max_hot, policy=policy
        )

    def turn(self, chat: str, token_ids: Sequence[int], points: Points) -> int:
        """Feed a prompt and its reply, and keep resume points. Return the number of tokens fed."""
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
        """Feed the token ids that the lease lacks. A forward pass ends at each resume point."""
        for end in sorted({*points, len(token_ids)}):
            start = lease.hot.num_tokens
            if end <= start:
                continue
            # Room is reserved before and after the first pass. A new conversation has no buffers
            # before its first pass, so there only the second call has an effect.
            self.cache.reserve_tokens(lease, len(token_ids))
            logits = self.adapter.forward(token_ids[start:end], lease.hot.caches)
            lease.hot.commit(token_ids[start:end])
            self.cache.reserve_tokens(lease, len(token_ids))
            kind = points.get(end)
            is_prompt = kind is PointKind.PROMPT
            if kind is not None and (is_prompt or self.layout.needs_snapshot):
                self.cache.capture_snapshot(lease, kind, logits if is_prompt else None)
            leaves, newest = lease.hot.leaves, lease.snapshots[-1:]
            evaluate(leaves.buffers)
            evaluate(leaves.states, [point.states for point in newest])
