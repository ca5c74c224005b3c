"""One request while it is being answered: its tokens, its caches, its clock."""

from __future__ import annotations

from dataclasses import dataclass, field

import mlx.core as mx

from engine.cache.prefix_cache import Lease
from engine.chat.prompt import Prompt
from engine.chat.reply import ReplyStream
from engine.models.filters import LogitsFilter
from engine.runner.chunks import Chunk
from engine.types import PromptPlan, Request


@dataclass(slots=True, kw_only=True)
class Clock:
    """Moments of a request, in seconds of time.perf_counter()."""

    submitted: float
    started: float
    rendered: float = 0.0
    restored: float = 0.0
    first_token: float = 0.0
    last_token: float = 0.0


@dataclass(slots=True, kw_only=True, eq=False)
class Sequence:
    """A request inside the engine.

    The lease's caches hold prompt[:fed] and then all but the newest of the reply's tokens: the
    newest is fed together with what follows it.
    """

    request: Request
    prompt: Prompt
    plan: PromptPlan
    lease: Lease
    reply: ReplyStream
    chunks: list[Chunk]  # prefill chunks still to be fed, in order
    filter: LogitsFilter
    forced_ids: tuple[int, ...] | None
    clock: Clock
    logits: mx.array | None = None  # (V,) after everything fed, None while the prompt is being fed
    recorded: list[mx.array] = field(default_factory=list[mx.array])

    @property
    def fed(self) -> int:
        """Tokens in the caches."""
        return self.lease.hot.n_tokens

    @property
    def num_output(self) -> int:
        return len(self.reply.token_ids)
