"""A Fenwick tree of heights, for items stacked on top of each other. No Qt, no I/O.

The transcript is a stack of messages, and a message is a stack of rows. Painting has to find the
item at a y coordinate. Scrolling has to find the y coordinate of an item. Each layout of an item
changes its height. With a plain list, each of these operations would add up thousands of heights.
In this tree they take logarithmic time, and so does an append. Heights and y coordinates are
integers in the caller's unit; the app uses pixels.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate


class HeightTree:
    """A sequence of non-negative integer heights with fast prefix sums."""

    def __init__(self, heights: Iterable[int] = ()) -> None:
        self._heights: list[int] = list(heights)
        # _sums[i] == sum(heights[i - lowbit(i) : i]), where lowbit(i) = i & -i.
        self._sums: list[int] = [0, *self._heights]
        for at in range(1, len(self._sums)):
            above = at + (at & -at)
            if above < len(self._sums):
                self._sums[above] += self._sums[at]

    def __len__(self) -> int:
        return len(self._heights)

    def __getitem__(self, index: int) -> int:
        return self._heights[index]

    @property
    def total(self) -> int:
        return self.top(len(self._heights))

    def top(self, index: int) -> int:
        """Return the y coordinate of the top of an item: the sum of all heights before `index`.

        An index equal to the length gives the total height.
        """
        assert 0 <= index <= len(self._heights)
        total = 0
        while index:
            total += self._sums[index]
            index -= index & -index
        return total

    def tops(self) -> list[int]:
        """Return the top of every item and, as the last value, the total height."""
        return list(accumulate(self._heights, initial=0))

    def set(self, index: int, height: int) -> None:
        change = height - self._heights[index]
        if change == 0:
            return
        self._heights[index] = height
        at = index + 1
        while at < len(self._sums):
            self._sums[at] += change
            at += at & -at

    def append_height(self, height: int) -> None:
        at = len(self._sums)
        first = at - (at & -at)
        self._heights.append(height)
        self._sums.append(self.top(at - 1) - self.top(first) + height)

    def truncate(self, length: int) -> None:
        """Remove all heights from index `length` on."""
        del self._heights[length:]
        del self._sums[length + 1 :]

    def find(self, y: int) -> int:
        """Return the index of the item at the coordinate y.

        If y is outside the stack, return the nearest item. If the tree is empty, return 0.
        """
        index, step = 0, 1 << len(self._sums).bit_length()
        while step:
            after = index + step
            if after < len(self._sums) and self._sums[after] <= y:
                index = after
                y -= self._sums[after]
            step >>= 1
        return max(0, min(index, len(self._heights) - 1))
