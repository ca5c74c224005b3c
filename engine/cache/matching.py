"""Search for the deepest resume point of a prompt in the radix tree.

restoring.py calls this module for each request and each read-ahead. Nothing is changed. A match
leaves at least the last token of the prompt to feed, because the logits after it are needed. The
only exception: a snapshot at the end of the prompt that includes these logits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.cache.hot import KvNode, KvSpan, KvTree
from engine.cache.radix import PathStep, TokenRun, common_end, path_run
from engine.cache.snapshot import Snapshot
from engine.picture_ids import before_picture

_Path = list[PathStep[KvSpan, Snapshot]]


@dataclass(frozen=True, slots=True)
class Match:
    """The deepest resume point of a prompt, and the length of the prompt's stored K/V.

    `restored` is smaller than `matched` if the K/V is stored further than the deepest snapshot.
    Without auxiliary state, a match can end inside a node. With a snapshot, it ends with `node`.
    """

    matched: int = 0  # number of leading prompt tokens whose K/V is stored
    restored: int = 0  # number of tokens before the resume point, at most `matched`
    node: KvNode | None = None  # the node that holds the last restored token
    snapshot: Snapshot | None = None  # auxiliary state at the resume point; None if there is none

    @property
    def run(self) -> TokenRun:
        """The tokens that can be restored, with the forward passes that computed them."""
        return path_run(self.node).part(0, self.restored)


def deepest_match(
    tree: KvTree, prompt_ids: Sequence[int], held: TokenRun, *, needs_snapshot: bool
) -> Match:
    """Return the resume point that leaves the fewest tokens of a prompt to feed.

    Args:
        tree: all stored nodes.
        prompt_ids: the token ids of the prompt.
        held: the tokens in the conversation's own live caches. If two resume points are equally
            deep, the one that shares more leading tokens with `held` is returned.
        needs_snapshot: True if K/V alone cannot restore the model's state.
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
    # Leave the last prompt token to feed: the logits after it are needed to draw the first reply
    # token. A picture is fed as a whole.
    limit = before_picture(prompt_ids, min(matched, len(prompt_ids) - 1))
    if not needs_snapshot:
        return Match(matched, limit, last, None)
    for step in reversed(path):
        if step.is_whole and step.node.end <= limit and step.node.snapshot is not None:
            return Match(matched, step.node.end, step.node, step.node.snapshot)
    return Match(matched)
