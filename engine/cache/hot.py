"""Hot caches: the model's live cache objects for one conversation, and the tokens they hold.

A hot cache stays in memory between two requests of its conversation. While no request uses it, it
is called parked. The next request takes over the whole object without a copy. A node of the radix
tree may reference a range of the K/V buffers (LentSpan). Before this range is overwritten,
lending.py copies the K/V for the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.cache import kv
from engine.cache.feeding import Feed, add_feeds, add_pass, clip
from engine.cache.kv import KvArrays, KvPart
from engine.cache.layout import Leaves
from engine.cache.points import PointKind
from engine.cache.positions import ConversationCaches
from engine.cache.radix import RadixNode, RadixTree, TokenRun
from engine.cache.snapshot import Snapshot, capture, restore
from engine.picture_ids import position_shift
from engine.types import ConversationId


@dataclass(slots=True, eq=False)
class HotCache:
    """The model's cache objects for one conversation. They hold exactly the tokens token_ids.

    While a hot cache is parked, only its K/V is valid: the auxiliary state is reset.
    """

    conversation_id: ConversationId
    caches: ConversationCaches
    token_ids: list[int] = field(default_factory=list[int])
    feeds: list[Feed] = field(default_factory=list[Feed])  # forward passes that computed token_ids
    last_used: int = 0  # value of Holdings.clock when this cache was last parked
    leaves: Leaves = field(init=False)  # the leaves of `caches`, grouped by kind
    _empty: Snapshot = field(init=False)  # the auxiliary state before any token

    def __post_init__(self) -> None:
        self.leaves = Leaves.of(self.caches)
        self._empty = capture(self.leaves, 0, PointKind.TAIL)

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def nbytes(self) -> int:
        """Number of bytes of the K/V buffers in all stages, including unused capacity."""
        return kv.buffer_bytes(self.leaves)

    @property
    def run(self) -> TokenRun:
        """The tokens in the caches, and the forward passes that computed these tokens."""
        return TokenRun(tuple(self.token_ids), tuple(self.feeds))

    def commit(self, token_ids: Sequence[int], pass_len: int | None = None) -> None:
        """Record that one forward pass has fed token_ids to the caches.

        pass_len: number of tokens of the pass, if its last tokens are removed again.
        """
        add_pass(self.feeds, self.num_tokens, self.num_tokens + (pass_len or len(token_ids)))
        self.token_ids.extend(token_ids)

    def adopt(self, run: TokenRun) -> None:
        """Record that the K/V of a run of tokens was appended to the caches."""
        assert run.start == self.num_tokens
        add_feeds(self.feeds, run.feeds)
        self.token_ids.extend(run.token_ids)
        self.caches.shift = position_shift(self.token_ids)

    def cut(self, num_tokens: int) -> None:
        """Remove the tokens after num_tokens and their K/V. The auxiliary state stays as it is."""
        kv.cut(self.leaves, num_tokens)
        del self.token_ids[num_tokens:]
        self.feeds[:] = clip(self.feeds, 0, num_tokens)
        self.caches.shift = position_shift(self.token_ids)

    def set_state(self, snapshot: Snapshot | None) -> None:
        """Restore the auxiliary state from a snapshot. None restores the state before any token."""
        restore(self.leaves, snapshot or self._empty)

    def is_consistent(self) -> bool:
        """Return True if every K/V leaf holds exactly the committed tokens."""
        return all(
            leaf.offset == self.num_tokens and kv.capacity(leaf) >= self.num_tokens
            for leaf in self.leaves.kv
        ) and all(caches.num_tokens == self.num_tokens for caches in self.leaves.far)

    def is_restored(self, num_tokens: int, snapshot: Snapshot | None) -> bool:
        """Return True if the caches and a snapshot hold the state after exactly num_tokens tokens.

        Only numbers of tokens are compared: of token_ids, of the K/V, of the snapshot, and of the
        auxiliary layers that count their tokens.
        """
        counts = {leaf.num_tokens for leaf in self.leaves.aux if num_tokens > 0}
        return (
            self.num_tokens == num_tokens
            and self.is_consistent()
            and (snapshot is None or snapshot.num_tokens == num_tokens)
            and counts <= {None, num_tokens}
        )


@dataclass(frozen=True, slots=True, eq=False)
class LentSpan:
    """K/V of a node, stored as a reference to the tokens [start, end) of a hot cache.

    nbytes is 0, because HotCache.nbytes already counts this K/V.
    """

    hot: HotCache
    start: int
    end: int

    @property
    def num_tokens(self) -> int:
        return self.end - self.start

    @property
    def nbytes(self) -> int:
        return 0

    def split(self, at: int) -> tuple[LentSpan, LentSpan]:
        middle = self.start + at
        return LentSpan(self.hot, self.start, middle), LentSpan(self.hot, middle, self.end)

    def range(self, start: int, end: int) -> KvPart:
        """Return lazy slices of the tokens [start, end). Positions count from this span's start."""
        return kv.read_range(self.hot.leaves, self.start + start, self.start + end)

    def copied(self) -> KvArrays:
        """Return the K/V of this span, copied into new arrays."""
        return kv.copy_range(self.hot.leaves, self.start, self.end)


KvSpan = KvArrays | LentSpan
KvNode = RadixNode[KvSpan, Snapshot]
KvTree = RadixTree[KvSpan, Snapshot]


def lender(node: KvNode) -> HotCache | None:
    """Return the hot cache that contains the K/V of a node, or None if the node owns its arrays.

    The hot cache holds all tokens of the path from token 0 to the end of the node.
    """
    return node.span.hot if isinstance(node.span, LentSpan) else None
