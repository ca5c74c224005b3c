from __future__ import annotations

from hypothesis import given, strategies as st

from app.conversation.tree import NodeId
from app.viewmodels.branch_layout import BranchLayout, Children


def _tree(parents: list[int]) -> Children:
    """Return a tree whose message number n + 1 follows message parents[n] % (n + 1); 0 is none."""
    children: dict[NodeId | None, tuple[NodeId, ...]] = {}
    for number, parent in enumerate(parents, start=1):
        above = parent % number
        key = NodeId(str(above)) if above else None
        children[key] = (*children.get(key, ()), NodeId(str(number)))
    return children


def _drawn(children: Children) -> list[str]:
    """Return the rows as text: one character for each column."""
    layout = BranchLayout(children)
    rows = [["."] * layout.num_columns for _ in layout.rows]
    for node, place in layout.places.items():
        rows[place.row][place.column] = node
    return ["".join(row) for row in rows]


def test_versions_stand_side_by_side_and_branches_as_far_left_as_they_fit() -> None:
    long_first = _tree([0, 1, 2, 3, 1, 5, 2])

    assert _drawn(long_first) == ["1..", "2.5", "376", "4.."]


def test_branch_that_begins_below_a_short_one_uses_its_column() -> None:
    """Messages 5 and 6 are versions of 2 and of 4; both stand in the second column."""
    assert _drawn(_tree([0, 1, 2, 3, 1, 3])) == ["1.", "25", "3.", "46"]


def test_layout_of_an_empty_tree_has_no_place() -> None:
    layout = BranchLayout({})
    assert (layout.rows, layout.num_columns) == ([], 0)


@given(st.lists(st.integers(0, 30), max_size=40))
def test_no_two_messages_share_a_place_and_no_line_crosses_a_branch(parents: list[int]) -> None:
    children = _tree(parents)
    layout = BranchLayout(children)

    places = list(layout.places.values())
    assert len(set(places)) == len(places) == len(parents)
    for node, place in layout.places.items():
        below = [layout.places[child] for child in children.get(node, ())]
        assert all(one.row == place.row + 1 for one in below)
        columns = [one.column for one in below]
        assert columns[:1] in ([], [place.column]), "the first version stands below"
        assert columns == sorted(columns)
    for row in layout.rows:
        found = [layout.places[child].column for node in row for child in children.get(node, ())]
        assert found == sorted(found), "branches do not cross"


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(0, 12), st.integers(0, 12))
def test_seen_yields_all_messages_that_reach_into_the_columns(
    parents: list[int], first: int, more: int
) -> None:
    children = _tree(parents)
    layout = BranchLayout(children)

    for number, row in enumerate(layout.rows):
        seen = {node for node, _, _ in layout.seen(number, first, first + more)}
        for node in row:
            begin = layout.places[node].column
            end = max([begin, *(layout.places[one].column for one in children.get(node, ()))])
            if begin <= first + more and end >= first:
                assert node in seen


def test_neighbours_are_in_the_same_row() -> None:
    layout = BranchLayout(_tree([0, 1, 1, 2, 3]))

    assert layout.beside(NodeId("2"), 1) == NodeId("3")
    assert layout.beside(NodeId("5"), -1) == NodeId("4")
    assert layout.beside(NodeId("2"), -1) is None


def test_deep_chat_is_laid_out() -> None:
    layout = BranchLayout(_tree(list(range(5000))))
    assert (len(layout.rows), layout.num_columns) == (5000, 1)
