"""The invariants of a prefix cache, checked by tests and by the debug option."""

from __future__ import annotations

from engine.cache.holdings import Holdings
from engine.cache.hot import LentSpan


def check_invariants(holdings: Holdings) -> None:
    """Assert the invariants of the stored data that hold between two steps of the engine."""
    holdings.tree.check_invariants()
    known = {id(hot) for hot in holdings.parked.values()}
    known |= {id(lease.hot) for lease in holdings.leases}
    for node in holdings.tree.nodes():
        if node.snapshot is not None:
            assert node.snapshot.num_tokens == node.end
        if isinstance(node.span, LentSpan):
            assert id(node.span.hot) in known
            assert (node.start, node.end) == (node.span.start, node.span.end)
            assert node.span.hot.run.part(node.start, node.end) == node.run
    for conversation_id, hot in holdings.parked.items():
        assert hot.conversation_id == conversation_id
        assert hot.is_consistent()
    if not holdings.leases:
        assert all(node.lock_count == 0 and node.users for node in holdings.tree.nodes())
