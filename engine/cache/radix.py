"""A radix tree over token sequences, in which conversations share their common prefixes.

A node stands for the tokens [start, end) that follow its parent's tokens, and for the forward
passes that computed them (feeding.py). If other passes computed the same tokens, the tree has a
second branch for them. Every path is therefore the result of one series of passes. The span of a
node is the K/V of its tokens. The snapshot of a node, if present, is valid exactly at `end`.
Splitting a node inserts a new node above it, so a node object never changes its `end`.

The module contains no caching policy and imports no mlx: spans and snapshots are type parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from engine.cache.feeding import Feed, add_feeds, clip, common_feeding_end
from engine.sequences import common_prefix_len
from engine.types import ConversationId


class NodeSpan(Protocol):
    """The K/V of one node's tokens."""

    @property
    def num_tokens(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def split(self, at: int, /) -> tuple[Self, Self]: ...


S = TypeVar("S", bound=NodeSpan)
P = TypeVar("P")


# Key of a child node: the id of its first token, and the token range of the pass that computed it.
_Symbol = tuple[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class TokenRun:
    """Consecutive tokens of a sequence, with the forward passes that computed them."""

    token_ids: tuple[int, ...]
    feeds: tuple[Feed, ...]
    start: int = 0  # position of the first token in the sequence

    @property
    def end(self) -> int:
        return self.start + len(self.token_ids)

    def part(self, start: int, end: int) -> TokenRun:
        """Return the tokens [start, end). Positions count from token 0 of the sequence."""
        tokens = self.token_ids[start - self.start : end - self.start]
        return TokenRun(tokens, tuple(clip(self.feeds, start, end)), start)

    def symbol_at(self, position: int) -> _Symbol:
        """Return the id of the token at a position, and the range of the pass that computed it."""
        feed = next(clip(self.feeds, position, position + 1))
        return self.token_ids[position - self.start], feed.pass_of(position)


class RadixNode(Generic[S, P]):
    """A node: tokens [start, end) of a path, shared by all conversations that contain the path.

    A parent has at least the locks and the users of each child.
    """

    __slots__ = (
        "__weakref__",
        "checked",
        "children",
        "is_removed",
        "last_used",
        "lock_count",
        "parent",
        "run",
        "snapshot",
        "span",
        "users",
    )

    def __init__(self, run: TokenRun, span: S, parent: RadixNode[S, P] | None) -> None:
        self.run = run
        self.span = span
        self.parent = parent  # None for a first node of the tree
        self.children: dict[_Symbol, RadixNode[S, P]] = {}
        self.snapshot: P | None = None  # auxiliary state after the last token
        self.lock_count = 0  # number of running requests restored from this node or a node below it
        self.is_removed = False  # True once this node or a node above it is removed from the tree
        self.last_used = 0  # value of the cache's clock (number of turns published) at the last use
        self.checked = 0  # serial number of this node's newest audit; 0 if it was never audited
        self.users: set[ConversationId] = set()  # ids of the conversations that contain the node

    @property
    def token_ids(self) -> tuple[int, ...]:
        return self.run.token_ids

    @property
    def start(self) -> int:
        return self.run.start

    @property
    def end(self) -> int:
        return self.run.end


@dataclass(frozen=True, slots=True)
class PathStep(Generic[S, P]):
    """A node on a matched path. Only the last node of a path can match in part."""

    node: RadixNode[S, P]
    num_matched: int  # number of leading tokens of the node that match

    @property
    def end(self) -> int:
        """Number of tokens that match, counted from token 0 to the end of this step."""
        return self.node.start + self.num_matched

    @property
    def is_whole(self) -> bool:
        return self.num_matched == len(self.node.token_ids)


class RadixTree(Generic[S, P]):
    """Stored token sequences that share their common prefixes. Engine thread only."""

    def __init__(self) -> None:
        self._roots: dict[_Symbol, RadixNode[S, P]] = {}

    def paths(self, token_ids: Sequence[int]) -> Iterator[list[PathStep[S, P]]]:
        """Yield the longest paths that agree with token_ids. Forward passes are not compared.

        No yielded path is the beginning of another yielded path.
        """
        pending: list[list[PathStep[S, P]]] = [[]]
        while pending:
            path = pending.pop()
            while next_steps := self._next_steps(path, token_ids):
                first, *others = next_steps
                pending.extend([*path, step] for step in others)
                path.append(first)
            if path:
                yield path

    def match(self, run: TokenRun, above: RadixNode[S, P] | None = None) -> list[PathStep[S, P]]:
        """Return the path that agrees with a run for the most tokens, in token ids and passes.

        above: a node whose whole path is known to agree with the run. Only the steps below this
        node are returned.
        """
        path: list[PathStep[S, P]] = []
        children = above.children if above else self._roots
        position = above.end if above else 0
        while position < run.end and (node := children.get(run.symbol_at(position))):
            end = common_end(node.run, run)
            path.append(PathStep(node, end - position))
            position = end
            if end < node.end:
                break
            children = node.children
        return path

    def append_leaf(
        self, parent: RadixNode[S, P] | None, run: TokenRun, span: S
    ) -> RadixNode[S, P]:
        """Add a leaf below parent, or at the root if parent is None. Return the leaf."""
        siblings = parent.children if parent else self._roots
        symbol = run.symbol_at(run.start)
        assert run.start == (parent.end if parent else 0)
        assert symbol not in siblings
        assert span.num_tokens == len(run.token_ids)
        node = siblings[symbol] = RadixNode(run, span, parent)
        return node

    def split(self, node: RadixNode[S, P], at: int) -> RadixNode[S, P]:
        """Split a node after its first `at` tokens. Return the new parent with these tokens."""
        assert 0 < at < len(node.token_ids)
        middle = node.start + at
        tail_run = node.run.part(middle, node.end)
        head_span, tail_span = node.span.split(at)
        head: RadixNode[S, P] = RadixNode(node.run.part(node.start, middle), head_span, node.parent)
        head.lock_count, head.last_used, head.users = (
            node.lock_count,
            node.last_used,
            set(node.users),
        )
        # The snapshot stays with the tail, because it is valid only at the tail's end. head.checked
        # stays 0, because no audit has ended at this position.
        self._siblings(node)[_symbol(head)] = head
        node.run, node.span, node.parent = tail_run, tail_span, head
        head.children[_symbol(node)] = node
        return head

    def node_ending_at(
        self, path: Sequence[PathStep[S, P]], num_tokens: int
    ) -> RadixNode[S, P] | None:
        """Return the node on a matched path that ends at num_tokens, or None if there is none.

        If a node of the path contains this position, it is split at the position first.
        """
        for step in path:
            node = step.node
            if node.start < num_tokens < node.end:
                return self.split(node, num_tokens - node.start)
            if node.end == num_tokens:
                return node
        return None

    def remove(self, node: RadixNode[S, P]) -> None:
        assert not node.children
        assert node.lock_count == 0
        node.is_removed = True
        del self._siblings(node)[_symbol(node)]

    def remove_subtree(self, node: RadixNode[S, P]) -> None:
        """Remove a node and all nodes below it. The removed nodes can still be unlocked later."""
        if not node.is_removed:
            del self._siblings(node)[_symbol(node)]
        pending = [node]
        while pending:
            # Break the reference cycles between parents and children. They would keep the arrays in
            # memory until the next garbage collection.
            lost = pending.pop()
            lost.is_removed = True
            pending.extend(lost.children.values())
            lost.children.clear()

    def lock(self, node: RadixNode[S, P] | None) -> None:
        """Protect a node and its ancestors from eviction until unlock is called."""
        for ancestor in ancestry(node):
            ancestor.lock_count += 1

    def unlock(self, node: RadixNode[S, P] | None) -> None:
        for ancestor in ancestry(node):
            assert ancestor.lock_count > 0
            ancestor.lock_count -= 1

    def nodes(self) -> Iterator[RadixNode[S, P]]:
        """Yield all nodes, parents before children."""
        pending = list(self._roots.values())
        while pending:
            node = pending.pop()
            yield node
            pending.extend(node.children.values())

    def _next_steps(
        self, path: Sequence[PathStep[S, P]], token_ids: Sequence[int]
    ) -> list[PathStep[S, P]]:
        """Return one step for each child that continues a path with the next token of token_ids.

        An empty path continues with the first nodes of the tree. A path cannot continue if its last
        node matches only in part.
        """
        end = path[-1].end if path else 0
        if end == len(token_ids) or (path and not path[-1].is_whole):
            return []
        children = path[-1].node.children if path else self._roots
        return [
            PathStep(child, common_prefix_len(child.token_ids, token_ids, end))
            for (token_id, _), child in children.items()
            if token_id == token_ids[end]
        ]

    def _siblings(self, node: RadixNode[S, P]) -> dict[_Symbol, RadixNode[S, P]]:
        return node.parent.children if node.parent else self._roots

    def check_invariants(self) -> None:
        for node in self.nodes():
            assert node.token_ids
            assert node.span.num_tokens == len(node.token_ids)
            assert node.start == (node.parent.end if node.parent else 0)
            assert node.run.feeds == tuple(clip(node.run.feeds, node.start, node.end))
            for symbol, child in node.children.items():
                assert symbol == _symbol(child)
                assert child.parent is node
                assert child.lock_count <= node.lock_count
                assert child.users <= node.users


def _symbol(node: RadixNode[S, P]) -> _Symbol:
    return node.run.token_ids[0], node.run.feeds[0].pass_of(node.run.start)


def ancestry(node: RadixNode[S, P] | None) -> Iterator[RadixNode[S, P]]:
    """Yield a node, its parent, and so on up to the root. Yield nothing for None."""
    while node is not None:
        yield node
        node = node.parent


def path_run(node: RadixNode[S, P] | None) -> TokenRun:
    """Return all tokens from token 0 to a node's end, with the passes that computed them."""
    token_ids: list[int] = []
    feeds: list[Feed] = []
    for ancestor in reversed(list(ancestry(node))):
        token_ids.extend(ancestor.token_ids)
        add_feeds(feeds, ancestor.run.feeds)
    return TokenRun(tuple(token_ids), tuple(feeds))


def common_end(a: TokenRun, b: TokenRun) -> int:
    """Return the position up to which runs `a` and `b` agree in both token ids and passes.

    The comparison begins at a.start, which must not be before b.start.
    """
    same_tokens = common_prefix_len(a.token_ids, b.token_ids, a.start - b.start)
    return common_feeding_end(a.feeds, b.feeds, a.start, a.start + same_tokens)
