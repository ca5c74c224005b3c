"""A conversation's live caches: the model's cache objects and the tokens that they hold.

Owned by one conversation at a time and handed over whole, never copied. Nodes of the radix tree may
reference a range of its buffers (`LentSpan`) until that range is about to be overwritten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from engine.cache import kv
from engine.cache.feeding import Feed, add_feeds, add_pass, clip
from engine.cache.kv import KvArrays
from engine.cache.layout import Leaves
from engine.cache.points import PointKind
from engine.cache.radix import RadixNode, RadixTree, TokenRun
from engine.cache.snapshot import Snapshot, capture, restore
from engine.cache.trees import tree_bytes
from engine.types import ConversationId


@dataclass(slots=True, eq=False)
class HotCache:
    """Live caches holding exactly token_ids. Parked, only their K/V is valid."""

    conversation_id: ConversationId
    caches: list[object]
    token_ids: list[int] = field(default_factory=list[int])
    feeds: list[Feed] = field(default_factory=list[Feed])
    last_used: int = 0
    leaves: Leaves = field(init=False)
    _empty: Snapshot = field(init=False)

    def __post_init__(self) -> None:
        self.leaves = Leaves.of(self.caches)
        self._empty = capture(self.leaves.aux, 0, PointKind.TAIL)

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def nbytes(self) -> int:
        """Bytes of the K/V buffers, spare room included."""
        return sum(tree_bytes((leaf.keys, leaf.values)) for leaf in self.leaves.kv)

    @property
    def run(self) -> TokenRun:
        """What is held: tokens and how they were fed."""
        return TokenRun(tuple(self.token_ids), tuple(self.feeds))

    def commit(self, token_ids: Sequence[int]) -> None:
        """Say that one pass fed token_ids."""
        add_pass(self.feeds, self.num_tokens, self.num_tokens + len(token_ids))
        self.token_ids.extend(token_ids)

    def adopt(self, run: TokenRun) -> None:
        """Say that what follows was copied in, fed as the run says."""
        assert run.start == self.num_tokens
        add_feeds(self.feeds, run.feeds)
        self.token_ids.extend(run.token_ids)

    def cut(self, num_tokens: int) -> None:
        """Forget K/V after num_tokens."""
        kv.cut(self.leaves.kv, num_tokens)
        del self.token_ids[num_tokens:]
        self.feeds[:] = clip(self.feeds, 0, num_tokens)

    def set_state(self, snapshot: Snapshot | None) -> None:
        """Put auxiliary state back; None is the state before the first token."""
        restore(self.leaves.aux, (snapshot or self._empty).states)

    def is_consistent(self) -> bool:
        """Whether every K/V leaf holds exactly the committed tokens."""
        return all(
            leaf.offset == self.num_tokens and kv.capacity(leaf) >= self.num_tokens
            for leaf in self.leaves.kv
        )

    def is_restored(self, num_tokens: int, snapshot: Snapshot | None) -> bool:
        """Return whether tokens, K/V, snapshot and other layers' counts all stand at num_tokens."""
        counts = {leaf.num_tokens for leaf in self.leaves.aux if num_tokens > 0}
        return (
            self.num_tokens == num_tokens
            and self.is_consistent()
            and (snapshot is None or snapshot.num_tokens == num_tokens)
            and counts <= {None, num_tokens}
        )


@dataclass(frozen=True, slots=True, eq=False)
class LentSpan:
    """Tokens [start, end) of a hot cache: bytes that the cache already counts."""

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

    def range(self, start: int, end: int) -> tuple[object, ...]:
        """Lazy slices of tokens [start, end) of this span."""
        return kv.read_range(self.hot.leaves.kv, self.start + start, self.start + end)

    def copied(self) -> KvArrays:
        """The same tokens in arrays of their own."""
        return kv.copy_range(self.hot.leaves.kv, self.start, self.end)


KvSpan = KvArrays | LentSpan
KvNode = RadixNode[KvSpan, Snapshot]
KvTree = RadixTree[KvSpan, Snapshot]


def lender(node: KvNode) -> HotCache | None:
    """Return the hot cache that a node's K/V lies in, None if the node owns its arrays.

    Such a cache holds all tokens of the path to the node's end.
    """
    return node.span.hot if isinstance(node.span, LentSpan) else None
