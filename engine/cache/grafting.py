"""Adding state to the radix tree that no running request has computed: state read from disk.

The new nodes own their arrays. A request then restores them as any other nodes, with the same
checks. Engine thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.cache.holdings import Holdings
from engine.cache.kv import KvArrays
from engine.cache.radix import TokenRun
from engine.cache.snapshot import Snapshot
from engine.types import ConversationId


@dataclass(frozen=True, slots=True)
class Graft:
    """The state of a path that the tree lacks: K/V of its last tokens and a snapshot at its end."""

    run: TokenRun  # the path from token 0
    # K/V of consecutive tokens, in order. They begin where the tree's path ends (stored_end) and
    # end with the run. Empty if the tree has all K/V of the path.
    spans: Sequence[KvArrays]
    snapshot: Snapshot | None

    @property
    def nbytes(self) -> int:
        snapshot_bytes = self.snapshot.nbytes if self.snapshot else 0
        return snapshot_bytes + sum(span.nbytes for span in self.spans)


def stored_end(holdings: Holdings, run: TokenRun) -> int:
    """Return the number of leading tokens of a path whose K/V is in the tree."""
    path = holdings.tree.match(run)
    return path[-1].end if path else 0


def graft(holdings: Holdings, conversation_id: ConversationId, new: Graft) -> None:
    """Add nodes for the spans of a graft, and attach its snapshot."""
    tree, run = holdings.tree, new.run
    path = tree.match(run)
    position = path[-1].end if path else 0
    parent = tree.node_ending_at(path, position)
    for span in new.spans:
        end = position + span.num_tokens
        parent = tree.append_leaf(parent, run.part(position, end), span)
        position = end
    assert position == run.end
    if new.snapshot is not None:
        assert new.snapshot.num_tokens == run.end
        node = tree.node_ending_at(tree.match(run), run.end)
        assert node is not None
        if node.snapshot is None or new.snapshot.logits is not None:
            node.snapshot = new.snapshot
    for step in tree.match(run):
        step.node.users.add(conversation_id)
        step.node.last_used = holdings.clock
