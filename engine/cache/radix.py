"""A radix tree over fed tokens. It decides nothing and knows no arrays: nodes carry opaque spans.

A node stands for a run of tokens after its parent's, fed in a certain way (feeding.py): the same
tokens fed otherwise are another branch, so that a path is always what one run of passes gave. Its
span owns or references their K/V; its snapshot, if it has one, is valid exactly at its end.
Splitting a node puts a new node above it, so a node keeps its identity, its end and its snapshot
for as long as it lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from engine.cache.feeding import Feed, add_feeds, clip, common_feeding_end
from engine.sequences import common_prefix_len
from engine.types import ConversationId


class NodeSpan(Protocol):
    """The K/V of a run of tokens."""

    @property
    def num_tokens(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def split(self, at: int, /) -> tuple[Self, Self]: ...


S = TypeVar("S", bound=NodeSpan)
P = TypeVar("P")


# What tells two children apart: their first token's id and the pass that computed it.
_Symbol = tuple[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class TokenRun:
    """Fed tokens from position start on."""

    token_ids: tuple[int, ...]
    feeds: tuple[Feed, ...]
    start: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.token_ids)

    def part(self, start: int, end: int) -> TokenRun:
        """Tokens [start, end), counted from token 0."""
        tokens = self.token_ids[start - self.start : end - self.start]
        return TokenRun(tokens, tuple(clip(self.feeds, start, end)), start)

    def symbol_at(self, position: int) -> _Symbol:
        """A token's id and the pass that computed it."""
        feed = next(clip(self.feeds, position, position + 1))
        return self.token_ids[position - self.start], feed.pass_of(position)


class RadixNode(Generic[S, P]):
    """A run of tokens [start, end) of every conversation that passes here."""

    __slots__ = (
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
        self.parent = parent
        self.children: dict[_Symbol, RadixNode[S, P]] = {}
        self.snapshot: P | None = None
        self.lock_count = 0
        self.is_removed = False  # from the tree, by itself or with a node above
        self.last_used = 0
        self.checked = 0  # when an audit last looked at it
        self.users: set[ConversationId] = set()

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
    """A node on a matched path and how many of its tokens matched (all but perhaps the last's)."""

    node: RadixNode[S, P]
    num_matched: int

    @property
    def end(self) -> int:
        """Tokens matched up to here, from token 0 on."""
        return self.node.start + self.num_matched

    @property
    def is_whole(self) -> bool:
        return self.num_matched == len(self.node.token_ids)


class RadixTree(Generic[S, P]):
    """Token sequences sharing their common prefixes. Owned by the engine thread."""

    def __init__(self) -> None:
        self._roots: dict[_Symbol, RadixNode[S, P]] = {}

    def paths(self, token_ids: Sequence[int]) -> Iterator[list[PathStep[S, P]]]:
        """The paths that agree with token_ids, however they were fed, none the beginning of another."""
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
        """The path that agrees longest with a run from token 0, in tokens and in feeding.

        above: a node whose path is known to agree; the path below it is returned.
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
        """A new leaf below parent (None: at the root)."""
        siblings = parent.children if parent else self._roots
        symbol = run.symbol_at(run.start)
        assert run.start == (parent.end if parent else 0)
        assert symbol not in siblings
        assert span.num_tokens == len(run.token_ids)
        node = siblings[symbol] = RadixNode(run, span, parent)
        return node

    def split(self, node: RadixNode[S, P], at: int) -> RadixNode[S, P]:
        """Cut a node before its token number `at`; returns the new node above it."""
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
        self._siblings(node)[_symbol(head)] = head
        node.run, node.span, node.parent = tail_run, tail_span, head
        head.children[_symbol(node)] = node
        return head

    def node_ending_at(
        self, path: Sequence[PathStep[S, P]], num_tokens: int
    ) -> RadixNode[S, P] | None:
        """The node on a whole path that ends at num_tokens, splitting one if need be."""
        for step in path:
            node = step.node
            if node.start < num_tokens < node.end:
                return self.split(node, num_tokens - node.start)
            if node.end == num_tokens:
                return node
        return None

    def remove(self, node: RadixNode[S, P]) -> None:
        """Take an unlocked leaf out."""
        assert not node.children
        assert node.lock_count == 0
        node.is_removed = True
        del self._siblings(node)[_symbol(node)]

    def remove_subtree(self, node: RadixNode[S, P]) -> None:
        """Take a node out with all below it. Whoever has locked it may still unlock it."""
        if not node.is_removed:
            del self._siblings(node)[_symbol(node)]
        pending = [node]
        while pending:
            # Else parents and children would keep each other, and their arrays, until a collection.
            lost = pending.pop()
            lost.is_removed = True
            pending.extend(lost.children.values())
            lost.children.clear()

    def lock(self, node: RadixNode[S, P] | None) -> None:
        for ancestor in ancestry(node):
            ancestor.lock_count += 1

    def unlock(self, node: RadixNode[S, P] | None) -> None:
        for ancestor in ancestry(node):
            assert ancestor.lock_count > 0
            ancestor.lock_count -= 1

    def nodes(self) -> Iterator[RadixNode[S, P]]:
        """All nodes, parents before children."""
        pending = list(self._roots.values())
        while pending:
            node = pending.pop()
            yield node
            pending.extend(node.children.values())

    def _next_steps(
        self, path: Sequence[PathStep[S, P]], token_ids: Sequence[int]
    ) -> list[PathStep[S, P]]:
        """Return the steps below a whole path (empty: below the root) that agree with token_ids."""
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
            assert node.lock_count >= max((c.lock_count for c in node.children.values()), default=0)
            assert node.run.feeds == tuple(clip(node.run.feeds, node.start, node.end))
            for symbol, child in node.children.items():
                assert symbol == _symbol(child)
                assert child.parent is node
                assert child.users <= node.users


def _symbol(node: RadixNode[S, P]) -> _Symbol:
    return node.run.token_ids[0], node.run.feeds[0].pass_of(node.run.start)


def ancestry(node: RadixNode[S, P] | None) -> Iterator[RadixNode[S, P]]:
    """A node and the nodes above it."""
    while node is not None:
        yield node
        node = node.parent


def path_run(node: RadixNode[S, P] | None) -> TokenRun:
    """Everything from token 0 to a node's end."""
    token_ids: list[int] = []
    feeds: list[Feed] = []
    for ancestor in reversed(list(ancestry(node))):
        token_ids.extend(ancestor.token_ids)
        add_feeds(feeds, ancestor.run.feeds)
    return TokenRun(tuple(token_ids), tuple(feeds))


def common_end(a: TokenRun, b: TokenRun) -> int:
    """How far b, which starts no later than a, agrees with a from a's start on, fed alike."""
    same_tokens = common_prefix_len(a.token_ids, b.token_ids, a.start - b.start)
    return common_feeding_end(a.feeds, b.feeds, a.start, a.start + same_tokens)
