"""The places of the messages in the branch map: a row for each depth, a column for each branch.

    row 0   one
    row 1   answer
    row 2   two ------ two b        versions stand side by side, oldest first
    row 3   answer     answer

The first version of a message stands in the column of the message that it follows. Each further
version stands as far left as the branches before it leave room. All of it takes linear time: two
branches are compared on the rows that both have, and these rows are one branch from then on. No Qt.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate, chain

from app.conversation.tree import NodeId

Children = Mapping[NodeId | None, tuple[NodeId, ...]]


@dataclass(frozen=True, slots=True)
class MapPlace:
    """The place of a message in the map. Numbers begin at 0."""

    row: int
    column: int


class _Outline:
    """The leftmost and rightmost columns of a part of the tree, by row.

    The lists begin with the lowest row, so that a row is added at the top without a copy. A column
    is an item of a list plus the shift of the list.
    """

    __slots__ = ("left", "left_shift", "right", "right_shift")

    def __init__(self) -> None:
        self.left, self.right = [0], [0]
        self.left_shift = self.right_shift = 0

    def add_top(self) -> None:
        """Add a row above, with one message in column 0."""
        self.left.append(-self.left_shift)
        self.right.append(-self.right_shift)

    def add_beside(self, other: _Outline) -> int:
        """Put another part at the right, in the same rows. Return its first message's column."""
        common = min(len(self.left), len(other.left))
        own, others = self.right[-common:], other.left[-common:]
        gap = max(a - b for a, b in zip(own, others, strict=True))
        column = gap + self.right_shift - other.left_shift + 1
        other.left_shift += column
        other.right_shift += column
        if len(self.left) < len(other.left):
            change = self.left_shift - other.left_shift
            other.left[-common:] = [a + change for a in self.left]
            self.left, self.left_shift = other.left, other.left_shift
        if len(self.right) > len(other.right):
            change = other.right_shift - self.right_shift
            self.right[-common:] = [a + change for a in other.right]
        else:
            self.right, self.right_shift = other.right, other.right_shift
        return column


class BranchLayout:
    """The places of all messages of a tree."""

    def __init__(self, children: Children) -> None:
        """Lay out the messages that can be reached from the key None of `children`."""
        order = _from_top(children)
        offsets = _offsets(order, children)
        self.places: dict[NodeId, MapPlace] = {}
        self.rows: list[list[NodeId]] = []  # the messages of each row, from left to right
        self._columns: list[list[int]] = []  # their columns
        # The column of the last message below each of them, or their own column without one. If a
        # message before them reaches further, that column: each list is in ascending order.
        self._reaches: list[list[int]] = []
        level: list[tuple[NodeId, int]] = [(node, offsets[node]) for node in children.get(None, ())]
        while level:
            below = [
                [(one, at + offsets[one]) for one in children.get(node, ())] for node, at in level
            ]
            self._add_row(level, below)
            level = list(chain.from_iterable(below))
        self.num_columns = 1 + max((columns[-1] for columns in self._columns), default=-1)

    def _add_row(
        self, level: list[tuple[NodeId, int]], below: list[list[tuple[NodeId, int]]]
    ) -> None:
        row = len(self.rows)
        self.rows.append([node for node, _ in level])
        self._columns.append([column for _, column in level])
        ends = [after[-1] if after else own for own, after in zip(level, below, strict=True)]
        self._reaches.append(list(accumulate((column for _, column in ends), max)))
        for node, column in level:
            self.places[node] = MapPlace(row, column)

    def seen(self, row: int, first: int, last: int) -> Iterator[tuple[NodeId, int, int]]:
        """Yield the messages of a row that reach into the columns from `first` to `last`.

        A message reaches from its own column to that of the last message below it. A few others may
        be yielded too. The results are (message, its column, column of the next one in its row or
        -1).
        """
        columns = self._columns[row]
        begin = bisect_left(self._reaches[row], first)
        for at in range(begin, bisect_right(columns, last)):
            after = columns[at + 1] if at + 1 < len(columns) else -1
            yield self.rows[row][at], columns[at], after

    def before(self, row: int, column: int) -> int:
        """Return the index in the row of the last message at a column or left of it; -1: none."""
        return bisect_right(self._columns[row], column) - 1

    def beside(self, node_id: NodeId, step: int) -> NodeId | None:
        """Return the message `step` places to the right in the same row, or None."""
        place = self.places[node_id]
        at = self.before(place.row, place.column) + step
        return self.rows[place.row][at] if 0 <= at < len(self.rows[place.row]) else None


def _from_top(children: Children) -> list[NodeId]:
    """Return all messages, each after the message that it follows."""
    order = list(children.get(None, ()))
    for node in order:  # the list grows meanwhile
        order.extend(children.get(node, ()))
    return order


def _offsets(order: list[NodeId], children: Children) -> dict[NodeId, int]:
    """Return how many columns each message stands to the right of the message that it follows."""
    offsets: dict[NodeId, int] = {}
    outlines: dict[NodeId, _Outline] = {}

    def join(below: tuple[NodeId, ...]) -> _Outline | None:
        joined: _Outline | None = None
        for child in below:
            outline = outlines.pop(child)
            if joined is None:
                offsets[child], joined = 0, outline
            else:
                offsets[child] = joined.add_beside(outline)
        return joined

    for node in reversed(order):
        outline = join(children.get(node, ()))
        if outline is None:
            outline = _Outline()
        else:
            outline.add_top()
        outlines[node] = outline
    join(children.get(None, ()))
    return offsets
