"""A radix tree over token ids. It decides nothing and knows no arrays: nodes carry opaque spans.

A node stands for a run of tokens after its parent's. Its span holds (or borrows) their K/V; its
snapshot, if it has one, is valid exactly at its end. Splitting a node puts a new node above it, so
a node keeps its identity, its end and its snapshot for as long as it lives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

from engine.types import ConversationId


class Span(Protocol):
    """The K/V of a run of tokens."""

    @property
    def n_tokens(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

    def split(self, at: int, /) -> tuple[Self, Self]: ...


S = TypeVar("S", bound=Span)
P = TypeVar("P")


class Node(Generic[S, P]):
    """A run of tokens [start, end) of every conversation that passes here."""

    __slots__ = (
        "children",
        "last_used",
        "lock_count",
        "parent",
        "snapshot",
        "span",
        "start",
        "token_ids",
        "users",
    )

    def __init__(
        self, token_ids: tuple[int, ...], start: int, span: S, parent: Node[S, P] | None
    ) -> None:
        self.token_ids = token_ids
        self.start = start
        self.span = span
        self.parent = parent
        self.children: dict[int, Node[S, P]] = {}
        self.snapshot: P | None = None
        self.lock_count = 0
        self.last_used = 0
        self.users: set[ConversationId] = set()

    @property
    def end(self) -> int:
        return self.start + len(self.token_ids)


@dataclass(frozen=True, slots=True)
class Step(Generic[S, P]):
    """A node on a matched path and how many of its tokens matched (all but perhaps the last's)."""

    node: Node[S, P]
    n_matched: int

    @property
    def is_whole(self) -> bool:
        return self.n_matched == len(self.node.token_ids)


class RadixTree(Generic[S, P]):
    """Token sequences sharing their common prefixes. Owned by the engine thread."""

    def __init__(self) -> None:
        self._roots: dict[int, Node[S, P]] = {}

    def match(self, token_ids: Sequence[int]) -> list[Step[S, P]]:
        """The path of nodes that agrees longest with token_ids."""
        path: list[Step[S, P]] = []
        children = self._roots
        position = 0
        while position < len(token_ids) and (node := children.get(token_ids[position])):
            n_matched = common_prefix_len(node.token_ids, token_ids, position)
            path.append(Step(node, n_matched))
            position += n_matched
            if n_matched < len(node.token_ids):
                break
            children = node.children
        return path

    def append(self, parent: Node[S, P] | None, token_ids: Sequence[int], span: S) -> Node[S, P]:
        """A new leaf below parent (None: at the root)."""
        start = parent.end if parent else 0
        siblings = parent.children if parent else self._roots
        assert token_ids
        assert token_ids[0] not in siblings
        assert span.n_tokens == len(token_ids)
        node: Node[S, P] = Node(tuple(token_ids), start, span, parent)
        siblings[node.token_ids[0]] = node
        return node

    def split(self, node: Node[S, P], at: int) -> Node[S, P]:
        """Cut a node before its token number `at`; returns the new node above it."""
        assert 0 < at < len(node.token_ids)
        head_span, tail_span = node.span.split(at)
        head: Node[S, P] = Node(node.token_ids[:at], node.start, head_span, node.parent)
        head.lock_count, head.last_used, head.users = (
            node.lock_count,
            node.last_used,
            set(node.users),
        )
        siblings = node.parent.children if node.parent else self._roots
        siblings[head.token_ids[0]] = head
        node.token_ids, node.start = node.token_ids[at:], node.start + at
        node.span, node.parent = tail_span, head
        head.children[node.token_ids[0]] = node
        return head

    def node_ending_at(self, path: Sequence[Step[S, P]], n_tokens: int) -> Node[S, P] | None:
        """The node on a whole path that ends at n_tokens, splitting one if need be."""
        for step in path:
            node = step.node
            if node.start < n_tokens < node.end:
                return self.split(node, n_tokens - node.start)
            if node.end == n_tokens:
                return node
        return None

    def remove(self, node: Node[S, P]) -> None:
        """Take an unlocked leaf out."""
        assert not node.children
        assert node.lock_count == 0
        siblings = node.parent.children if node.parent else self._roots
        del siblings[node.token_ids[0]]

    def remove_subtree(self, node: Node[S, P]) -> None:
        """Take a node out with all below it. Whoever has locked it may still unlock it."""
        siblings = node.parent.children if node.parent else self._roots
        if siblings.get(node.token_ids[0]) is node:
            del siblings[node.token_ids[0]]

    def lock(self, node: Node[S, P] | None) -> None:
        for ancestor in ancestry(node):
            ancestor.lock_count += 1

    def unlock(self, node: Node[S, P] | None) -> None:
        for ancestor in ancestry(node):
            assert ancestor.lock_count > 0
            ancestor.lock_count -= 1

    def nodes(self) -> Iterator[Node[S, P]]:
        """All nodes, parents before children."""
        pending = list(self._roots.values())
        while pending:
            node = pending.pop()
            yield node
            pending.extend(node.children.values())

    def check_invariants(self) -> None:
        for node in self.nodes():
            assert node.token_ids
            assert node.span.n_tokens == len(node.token_ids)
            assert node.start == (node.parent.end if node.parent else 0)
            assert node.lock_count >= max((c.lock_count for c in node.children.values()), default=0)
            for first, child in node.children.items():
                assert first == child.token_ids[0]
                assert child.parent is node
                assert child.users <= node.users


def ancestry(node: Node[S, P] | None) -> Iterator[Node[S, P]]:
    """A node and the nodes above it."""
    while node is not None:
        yield node
        node = node.parent


def common_prefix_len(a: Sequence[int], b: Sequence[int], b_start: int = 0) -> int:
    """How many tokens of a agree with b[b_start:].

    Compared in slices first: the interpreter's own loop is far faster than ours on long paths.
    """
    limit = min(len(a), len(b) - b_start)
    position = 0
    width = 1024
    while position < limit:
        width = min(width, limit - position)
        if list(a[position : position + width]) == list(
            b[b_start + position : b_start + position + width]
        ):
            position += width
        elif width == 1:
            break
        else:
            width //= 2
    return position
