"""The radix tree of token runs, compared with a plain list of the stored runs."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass

from hypothesis import given, settings, strategies as st

from engine.cache.feeding import Feed, add_pass, clip
from engine.cache.radix import PathStep, RadixTree, TokenRun, common_end, path_run
from engine.sequences import common_prefix_len


@dataclass(frozen=True)
class TextNodeSpan:
    """A span that holds the token ids of its node, so that a test can compare the two."""

    token_ids: tuple[int, ...]

    @property
    def num_tokens(self) -> int:
        return len(self.token_ids)

    @property
    def nbytes(self) -> int:
        return len(self.token_ids)

    def split(self, at: int) -> tuple[TextNodeSpan, TextNodeSpan]:
        return TextNodeSpan(self.token_ids[:at]), TextNodeSpan(self.token_ids[at:])


Tree = RadixTree[TextNodeSpan, int]

tokens = st.lists(st.integers(0, 2), min_size=1, max_size=12).map(tuple)


@st.composite
def runs(draw: st.DrawFn) -> TokenRun:
    """Draw a run of tokens that were fed in passes of one to four tokens."""
    token_ids = draw(tokens)
    feeds: list[Feed] = []
    end = 0
    while end < len(token_ids):
        start, end = end, end + draw(st.integers(1, 4))
        add_pass(feeds, start, end)
    return TokenRun(token_ids, tuple(clip(feeds, 0, len(token_ids))))


def one_pass(*token_ids: int) -> TokenRun:
    feeds: list[Feed] = []
    add_pass(feeds, 0, len(token_ids))
    return TokenRun(token_ids, tuple(feeds))


def insert(tree: Tree, run: TokenRun) -> None:
    path = tree.match(run)
    matched = end_of(path)
    parent = tree.node_ending_at(path, matched)
    if matched < run.end:
        tree.append_leaf(parent, run.part(matched, run.end), TextNodeSpan(run.token_ids[matched:]))


def end_of(path: list[PathStep[TextNodeSpan, int]]) -> int:
    return path[-1].end if path else 0


@settings(deadline=None)
@given(st.lists(runs(), max_size=12), runs())
def test_match_is_the_longest_common_prefix(stored: list[TokenRun], wanted: TokenRun) -> None:
    tree: Tree = RadixTree()
    for run in stored:
        insert(tree, run)
    tree.check_invariants()
    fed_alike = max((common_end(s, wanted) for s in stored), default=0)
    any_feeding = max((common_prefix_len(s.token_ids, wanted.token_ids) for s in stored), default=0)
    paths = list(tree.paths(wanted.token_ids))

    assert end_of(tree.match(wanted)) == fed_alike
    assert max(map(end_of, paths), default=0) == any_feeding
    for path in paths:
        run = path_run(path[-1].node).part(0, end_of(path))
        assert any(common_end(run, s) == run.end for s in stored)
    for node in tree.nodes():
        assert node.span.token_ids == node.token_ids


def test_same_tokens_fed_in_other_passes_are_another_branch() -> None:
    tree: Tree = RadixTree()
    in_one, in_two = one_pass(1, 2, 3, 4), one_pass(1, 2)
    feeds = list(in_two.feeds)
    add_pass(feeds, 2, 4)
    in_two = TokenRun((1, 2, 3, 4), tuple(feeds))
    insert(tree, in_one)
    insert(tree, in_two)

    assert [end_of(path) for path in tree.paths((1, 2, 3, 4))] == [4, 4]
    assert {path_run(path[-1].node) for path in tree.paths((1, 2, 3, 4))} == {in_one, in_two}


@given(tokens, st.lists(st.integers(0, 2), max_size=12))
def test_common_prefix_len_equals_a_comparison_token_by_token(
    a: tuple[int, ...], b: list[int]
) -> None:
    expected = 0
    while expected < min(len(a), len(b)) and a[expected] == b[expected]:
        expected += 1

    assert common_prefix_len(a, b) == expected


def test_common_prefix_len_is_exact_for_long_sequences() -> None:
    a = list(range(5000))
    b = [*range(4321), -1, *range(4322, 5000)]

    assert common_prefix_len(a, b) == 4321
    assert common_prefix_len(a, [-7, *a], 1) == 5000


def test_split_of_a_node_leaves_its_snapshot_on_the_lower_part() -> None:
    tree: Tree = RadixTree()
    insert(tree, one_pass(1, 2, 3, 4))
    (node,) = tree.nodes()
    node.snapshot = 4
    tree.lock(node)
    head = tree.split(node, 2)

    assert (head.token_ids, head.snapshot, head.lock_count) == ((1, 2), None, 1)
    assert (node.token_ids, node.snapshot, node.parent) == ((3, 4), 4, head)
    tree.unlock(node)
    assert head.lock_count == 0
    tree.check_invariants()


def test_removed_subtree_is_freed_without_a_collection() -> None:
    tree: Tree = RadixTree()
    insert(tree, one_pass(1, 2, 3, 4))
    (node,) = tree.nodes()
    spans = [weakref.ref(part.span) for part in (tree.split(node, 2), node)]
    del node
    gc.disable()
    try:
        (head,) = (node for node in tree.nodes() if node.parent is None)
        tree.remove_subtree(head)
        del head
        assert [span() for span in spans] == [None, None]
    finally:
        gc.enable()
