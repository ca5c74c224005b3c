"""The radix tree against a set of token sequences."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings, strategies as st

from engine.cache.radix import RadixTree, Step, common_prefix_len


@dataclass(frozen=True)
class TextSpan:
    """A span that knows which tokens it should hold."""

    token_ids: tuple[int, ...]

    @property
    def n_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def nbytes(self) -> int:
        return len(self.token_ids)

    def split(self, at: int) -> tuple[TextSpan, TextSpan]:
        return TextSpan(self.token_ids[:at]), TextSpan(self.token_ids[at:])


Tree = RadixTree[TextSpan, int]

tokens = st.lists(st.integers(0, 2), min_size=1, max_size=12).map(tuple)


def insert(tree: Tree, token_ids: tuple[int, ...]) -> None:
    path = tree.match(token_ids)
    matched = matched_len(path)
    parent = tree.node_ending_at(path, matched)
    if matched < len(token_ids):
        tree.append(parent, token_ids[matched:], TextSpan(token_ids[matched:]))


def matched_len(path: list[Step[TextSpan, int]]) -> int:
    return sum(step.n_matched for step in path)


@settings(deadline=None)
@given(st.lists(tokens, max_size=12), tokens)
def test_match_is_the_longest_common_prefix(
    stored: list[tuple[int, ...]], wanted: tuple[int, ...]
) -> None:
    tree: Tree = RadixTree()
    for token_ids in stored:
        insert(tree, token_ids)
    tree.check_invariants()
    expected = max((common_prefix_len(s, wanted) for s in stored), default=0)

    assert matched_len(tree.match(wanted)) == expected
    for node in tree.nodes():
        assert node.span.token_ids == node.token_ids


@given(tokens, st.lists(st.integers(0, 2), max_size=12))
def test_common_prefix_len(a: tuple[int, ...], b: list[int]) -> None:
    expected = 0
    while expected < min(len(a), len(b)) and a[expected] == b[expected]:
        expected += 1

    assert common_prefix_len(a, b) == expected


def test_common_prefix_len_of_long_sequences() -> None:
    a = list(range(5000))
    b = [*range(4321), -1, *range(4322, 5000)]

    assert common_prefix_len(a, b) == 4321
    assert common_prefix_len(a, [-7, *a], 1) == 5000


def test_split_keeps_the_node_and_its_snapshot_below() -> None:
    tree: Tree = RadixTree()
    insert(tree, (1, 2, 3, 4))
    (node,) = tree.nodes()
    node.snapshot = 4
    tree.lock(node)
    head = tree.split(node, 2)

    assert (head.token_ids, head.snapshot, head.lock_count) == ((1, 2), None, 1)
    assert (node.token_ids, node.snapshot, node.parent) == ((3, 4), 4, head)
    tree.unlock(node)
    assert head.lock_count == 0
    tree.check_invariants()
