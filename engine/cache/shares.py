"""The cached state in memory by conversation: its bytes, and how far a request could resume.

Each byte of the ledger belongs to one conversation, to several conversations, or to none.
`disk.shares` does the same for the records on disk.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from engine.cache.holdings import Holdings
from engine.cache.hot import KvNode, LentSpan
from engine.cache.radix import ancestry
from engine.types import ConversationId


@dataclass(slots=True)
class Shares:
    """Bytes of cached state by conversation. `own`, `shared` and `unused` have all bytes in sum."""

    # Bytes that only this conversation uses
    own: dict[ConversationId, int] = field(default_factory=dict[ConversationId, int])
    shared: int = 0  # bytes that several conversations use
    unused: int = 0  # bytes that no conversation uses: of side requests, or forgotten but locked
    # Number of tokens up to the resume point from which a conversation would continue
    num_tokens: dict[ConversationId, int] = field(default_factory=dict[ConversationId, int])

    @property
    def users(self) -> set[ConversationId]:
        """The conversations that use at least one byte, alone or with others."""
        return {*self.own, *self.num_tokens}

    def add(self, users: AbstractSet[ConversationId], nbytes: int) -> None:
        """Count bytes that these conversations use."""
        if not users:
            self.unused += nbytes
        elif len(users) > 1:
            self.shared += nbytes
        else:
            (user,) = users
            self.own[user] = self.own.get(user, 0) + nbytes

    def move_to_shared(self, user: ConversationId, nbytes: int) -> None:
        """Count bytes as shared that were counted as those of one conversation."""
        moved = min(nbytes, self.own.get(user, 0))
        self.own[user] = self.own.get(user, 0) - moved
        self.shared += moved


def shares_in_memory(holdings: Holdings) -> Shares:
    """Return the shares of all held bytes. Their sum is holdings.ledger().total_bytes."""
    shares = Shares()
    for hot in holdings.parked.values():
        shares.add({hot.conversation_id}, hot.nbytes)
    for lease in holdings.leases:
        users = set[ConversationId]() if lease.side else {lease.hot.conversation_id}
        snapshots = sum(snapshot.nbytes for snapshot in lease.snapshots)
        shares.add(users, lease.hot.nbytes + snapshots)
    newest: dict[ConversationId, KvNode] = {}
    per_token = holdings.kv_bytes_per_token
    for node in holdings.tree.nodes():
        span, snapshot, users = node.span, node.snapshot, node.users
        nbytes = 0 if snapshot is None else snapshot.nbytes
        if not isinstance(span, LentSpan):
            nbytes += span.nbytes
        elif not users <= {owner := span.hot.conversation_id}:
            # Other conversations use a part of this live cache.
            shares.move_to_shared(owner, span.num_tokens * per_token)
        shares.add(users, nbytes)
        for user in ending_at(node):
            known = newest.get(user)
            if known is None or _age(node) > _age(known):
                newest[user] = node
    for user, end in newest.items():
        points = (node.end for node in ancestry(end) if holdings.is_resume_point(node))
        shares.num_tokens[user] = next(points, 0)
    return shares


def ending_at(node: KvNode) -> AbstractSet[ConversationId]:
    """Return the conversations of which a branch ends with this node."""
    users, children = node.users, node.children
    if not children:
        return users
    for child in children.values():
        # The users of a child also use its parent. This is faster than a comparison of the sets.
        if len(child.users) == len(users):
            return frozenset()
    return users.difference(*(child.users for child in children.values()))


def _age(end: KvNode) -> tuple[int, int]:
    """Return a key that is larger for a branch that was used later."""
    return end.last_used, end.end
