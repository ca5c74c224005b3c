"""The records on disk by conversation: their bytes, and how far a request could resume."""

from __future__ import annotations

from engine.cache.disk.index import Index
from engine.cache.disk.record import RecordKind
from engine.cache.shares import Shares
from engine.types import ConversationId


def shares_on_disk(index: Index, *, needs_state: bool) -> Shares:
    """Return the shares of all records. Their sum is index.nbytes.

    needs_state: True if K/V alone cannot restore the model's state.
    """
    shares = Shares()
    resumes_at = RecordKind.STATE if needs_state else RecordKind.KV
    for entry in index.entries.values():
        # A point is kept as long as the K/V record that it belongs to.
        names = entry.users
        if entry.kind is not RecordKind.KV:
            names = names | index.entries[entry.parent].users
        users = {ConversationId(name) for name in names}
        shares.add(users, entry.nbytes)
        num_tokens = entry.end if entry.kind is resumes_at else 0
        for user in users:
            shares.num_tokens[user] = max(shares.num_tokens.get(user, 0), num_tokens)
    return shares
