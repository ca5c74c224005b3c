"""How much of a prompt is known, and the deepest point from which it can go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.cache.hot import KvNode, KvSpan, KvTree
from engine.cache.radix import PathStep, TokenRun, common_end, path_run
from engine.cache.snapshot import Snapshot

_Path = list[PathStep[KvSpan, Snapshot]]


@dataclass(frozen=True, slots=True)
class Match:
    """How much of a prompt is known, and the deepest point from which it can go on.

    matched counts tokens whose K/V is there; restored <= matched tokens can be used: node holds the
    last of them, snapshot the state after it where K/V alone is not enough.
    """

    matched: int = 0
    restored: int = 0
    node: KvNode | None = None
    snapshot: Snapshot | None = None

    @property
    def run(self) -> TokenRun:
        """The tokens that can be used, and how they were fed."""
        return path_run(self.node).part(0, self.restored)


def deepest_match(
    tree: KvTree, prompt_ids: Sequence[int], held: TokenRun, *, needs_snapshot: bool
) -> Match:
    """The point that leaves the fewest tokens to feed.

    Args:
        tree: what is known.
        prompt_ids: the prompt.
        held: what the conversation's own live caches hold; decides between equal points.
        needs_snapshot: K/V alone cannot bring the model back.
    """
    paths = tree.paths(prompt_ids)
    matches = [_match_path(path, prompt_ids, needs_snapshot=needs_snapshot) for path in paths]
    if len(matches) <= 1:
        return matches[0] if matches else Match()

    def rank(match: Match) -> tuple[int, int]:
        return match.restored, common_end(match.run, held)

    return replace(max(matches, key=rank), matched=max(match.matched for match in matches))


def _match_path(path: _Path, prompt_ids: Sequence[int], *, needs_snapshot: bool) -> Match:
    last = path[-1].node
    matched = path[-1].end
    if matched == len(prompt_ids) == last.end:
        snapshot = last.snapshot
        if snapshot is not None and snapshot.logits is not None:
            return Match(matched, matched, last, snapshot)
    # At least one token is fed: its logits begin the reply.
    limit = min(matched, len(prompt_ids) - 1)
    if not needs_snapshot:
        return Match(matched, limit, last, None)
    for step in reversed(path):
        if step.is_whole and step.node.end <= limit and step.node.snapshot is not None:
            return Match(matched, step.node.end, step.node, step.node.snapshot)
    return Match(matched)
