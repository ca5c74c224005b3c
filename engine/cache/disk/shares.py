"""The records on disk by conversation: their bytes, and how far a request could resume."""

from __future__ import annotations

from typing import cast

from engine.cache.disk.index import Index
from engine.cache.disk.record import RecordKind
from engine.cache.shares import Shares
from engine.types import ConversationId


def shares_on_disk(index: Index, *, needs_state: bool) -> Shares:
    """Return the shares of all records. Their sum is index.stored_bytes.

    needs_state: True if K/V alone cannot restore the model's state.
    """
    shares = Shares()
    resumes_at = RecordKind.STATE if needs_state else RecordKind.KV
    num_tokens = shares.num_tokens
    for entry in index.entries.values():
        # The names of conversations. A point is kept as long as the K/V record that it belongs to.
        users = cast("set[ConversationId]", entry.users)
        if entry.kind is not RecordKind.KV:
            users = users | cast("set[ConversationId]", index.entries[entry.parent].users)
        shares.add(users, entry.stored_bytes)
        end = entry.end if entry.kind is resumes_at else 0
        for user in users:
            if end >= num_tokens.get(user, 0):
                num_tokens[user] = end
    return shares
