"""Tokens that the engine prepared before a request asked for them. Pure Python, without mlx.

While the engine is idle, it reads the state of a conversation's next prompt from disk, and feeds
what it lacks (next_prompts.py). The request then restores all of it. Its plan tells these tokens
apart.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.sequences import common_prefix_len
from engine.types import ConversationId

_MAX_CONVERSATIONS = 256  # largest number of conversations; the least recently used are dropped


@dataclass(frozen=True, slots=True)
class Ahead:
    """Numbers of a prompt's tokens that were prepared before its request."""

    num_fed: int = 0
    num_on_disk: int = 0  # number of tokens whose state was read from disk


@dataclass(slots=True)
class _Prepared:
    """The ranges of a prompt that were prepared."""

    token_ids: tuple[int, ...]
    fed: list[range] = field(default_factory=list[range])
    on_disk: list[range] = field(default_factory=list[range])


class AheadRecord:
    """The tokens prepared for each conversation since its last request. Engine thread only."""

    def __init__(self) -> None:
        self._prepared: OrderedDict[ConversationId, _Prepared] = OrderedDict()

    def note_fed(
        self, conversation_id: ConversationId, token_ids: Sequence[int], start: int
    ) -> None:
        """Record that the tokens of a prompt from start on were fed."""
        self._prompt(conversation_id, token_ids).fed.append(range(start, len(token_ids)))

    def note_on_disk(
        self, conversation_id: ConversationId, token_ids: Sequence[int], start: int
    ) -> None:
        """Record that the state of a prompt's tokens from start on was read from disk."""
        self._prompt(conversation_id, token_ids).on_disk.append(range(start, len(token_ids)))

    def take(self, conversation_id: ConversationId, restored_ids: Sequence[int]) -> Ahead:
        """Return how many of a request's restored tokens were prepared, and forget them."""
        ahead = self.peek(conversation_id, restored_ids)
        self._prepared.pop(conversation_id, None)
        return ahead

    def peek(self, conversation_id: ConversationId, restored_ids: Sequence[int]) -> Ahead:
        """Return how many of the tokens that a request would restore were prepared."""
        prepared = self._prepared.get(conversation_id)
        if prepared is None:
            return Ahead()
        end = common_prefix_len(prepared.token_ids, restored_ids)
        return Ahead(_num_in(prepared.fed, end), _num_in(prepared.on_disk, end))

    def _prompt(self, conversation_id: ConversationId, token_ids: Sequence[int]) -> _Prepared:
        """Return the ranges that a prompt shares with the one before it."""
        before = self._prepared.pop(conversation_id, None) or _Prepared(())
        end = common_prefix_len(before.token_ids, token_ids)
        prepared = _Prepared(tuple(token_ids), _until(before.fed, end), _until(before.on_disk, end))
        self._prepared[conversation_id] = prepared
        if len(self._prepared) > _MAX_CONVERSATIONS:
            self._prepared.popitem(last=False)
        return prepared


def _until(ranges: Sequence[range], end: int) -> list[range]:
    return [range(one.start, min(one.stop, end)) for one in ranges if one.start < end]


def _num_in(ranges: Sequence[range], end: int) -> int:
    """Return the number of positions before end that lie in at least one of the ranges."""
    num = reached = 0
    for one in sorted(_until(ranges, end), key=lambda one: one.start):
        num += max(0, one.stop - max(one.start, reached))
        reached = max(reached, one.stop)
    return num
