from __future__ import annotations

from itertools import accumulate

from hypothesis import given, strategies as st

from app.viewmodels.heights import HeightTree

heights_st = st.lists(st.integers(0, 500), max_size=60)


class ListOfHeights:
    """A plain list with the same results as a HeightTree."""

    def __init__(self, heights: list[int]) -> None:
        self.heights = list(heights)

    def top(self, index: int) -> int:
        return sum(self.heights[:index])

    def find(self, y: int) -> int:
        tops = [0, *accumulate(self.heights)][: len(self.heights)]
        return max((at for at, top in enumerate(tops) if top <= y), default=0)


def assert_same(tree: HeightTree, model: ListOfHeights) -> None:
    assert len(tree) == len(model.heights)
    assert [tree[at] for at in range(len(tree))] == model.heights
    assert [tree.top(at) for at in range(len(tree) + 1)] == [
        model.top(at) for at in range(len(tree) + 1)
    ]
    assert tree.total == sum(model.heights)
    for y in range(-1, tree.total + 2, 7):
        assert tree.find(y) == model.find(y)


@given(
    heights_st,
    st.lists(
        st.tuples(
            st.sampled_from(["set", "append", "truncate"]), st.integers(0, 99), st.integers(0, 500)
        ),
        max_size=20,
    ),
)
def test_height_tree_matches_a_plain_list(
    heights: list[int], steps: list[tuple[str, int, int]]
) -> None:
    tree, model = HeightTree(heights), ListOfHeights(heights)
    for step, at, height in steps:
        if step == "append":
            tree.append_height(height)
            model.heights.append(height)
        elif step == "truncate":
            tree.truncate(at % (len(model.heights) + 1))
            del model.heights[at % (len(model.heights) + 1) :]
        elif model.heights:
            tree.set(at % len(model.heights), height)
            model.heights[at % len(model.heights)] = height
    assert_same(tree, model)


def test_empty_tree_has_total_0_and_finds_index_0() -> None:
    assert HeightTree().total == 0
    assert HeightTree().find(10) == 0
