"""Two branches side by side: which words of their messages differ. No Qt, no I/O.

Two texts are compared by lines, then the lines that differ by words. Both look for the longest
common items. The time and the memory grow with the product of the lengths, so steps are counted.
Where they run out, the words between the first and the last difference are marked.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from app.conversation.tree import MessageNode

# Most steps of a comparison of two branches. A step compares an item with up to _BITS items.
MAX_STEPS = 200_000
_BITS = 1_000

# A word, a character of a script without blanks between words, or a punctuation mark.
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]"
    r"|[^\W\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+|[^\w\s]"
)


class ComparisonSteps:
    """The steps that a comparison may still take."""

    def __init__(self) -> None:
        self.left = MAX_STEPS


Span = tuple[int, int]  # begin and end in a text


@dataclass(frozen=True, slots=True)
class ComparedText:
    """A part of a message, and the spans in it that the other branch does not have there."""

    text: str
    marks: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class ComparedPart:
    """Lines that stand beside each other: the same in both messages, or different."""

    first: ComparedText
    second: ComparedText

    @property
    def is_same(self) -> bool:
        return self.first.text == self.second.text


@dataclass(frozen=True, slots=True)
class ComparedMessage:
    """The messages of both branches at one place. One is missing if its branch is shorter."""

    first: MessageNode | None
    second: MessageNode | None
    parts: tuple[ComparedPart, ...]

    @property
    def num_differences(self) -> int:
        """Number of places that differ. A missing message is one of them, and has no marks."""
        if self.first is None or self.second is None:
            return 1
        return sum(max(len(part.first.marks), len(part.second.marks)) for part in self.parts)


def compare_branches(
    first: Sequence[MessageNode], second: Sequence[MessageNode]
) -> tuple[ComparedMessage, ...]:
    """Compare the messages of two branches, one after the other, from the first of both."""
    steps = ComparisonSteps()
    return tuple(
        ComparedMessage(one, other, _compare_messages(one, other, steps))
        for one, other in zip_longest(first, second)
    )


def _compare_messages(
    first: MessageNode | None, second: MessageNode | None, steps: ComparisonSteps
) -> tuple[ComparedPart, ...]:
    if first is not None and second is not None:
        return compare_texts(_text(first), _text(second), steps)
    texts = ("" if node is None else _text(node) for node in (first, second))
    return (ComparedPart(*map(ComparedText, texts)),)


def _text(node: MessageNode) -> str:
    """Return the names of the files of a message, one on a line, and then its text."""
    return "\n".join([*(attachment.name for attachment in node.attachments), node.content])


def compare_texts(first: str, second: str, steps: ComparisonSteps) -> tuple[ComparedPart, ...]:
    """Return the lines of both texts beside each other, with the words marked that differ."""
    lines, others = first.splitlines(keepends=True), second.splitlines(keepends=True)
    parts: list[ComparedPart] = []
    for is_same, (begin, end), (start, stop) in _hunks(lines, others, steps):
        one, other = "".join(lines[begin:end]), "".join(others[start:stop])
        if is_same:
            parts.append(ComparedPart(ComparedText(one), ComparedText(other)))
        else:
            parts.append(_compare_words(one, other, steps))
    return tuple(parts)


def _compare_words(first: str, second: str, steps: ComparisonSteps) -> ComparedPart:
    words, others = list(_WORD.finditer(first)), list(_WORD.finditer(second))
    texts, other_texts = [one.group() for one in words], [one.group() for one in others]
    marks: list[Span] = []
    other_marks: list[Span] = []
    for is_same, (begin, end), (start, stop) in _hunks(texts, other_texts, steps):
        if not is_same and end > begin:
            marks.append((words[begin].start(), words[end - 1].end()))
        if not is_same and stop > start:
            other_marks.append((others[start].start(), others[stop - 1].end()))
    return ComparedPart(ComparedText(first, tuple(marks)), ComparedText(second, tuple(other_marks)))


Hunk = tuple[bool, Span, Span]  # True if both spans have the same items


def _hunks(
    first: Sequence[Hashable], second: Sequence[Hashable], steps: ComparisonSteps
) -> Iterator[Hunk]:
    """Yield the parts of two lists, in order: those with the same items, and those that differ."""
    a, b = _numbered(first, second)
    most = min(len(a), len(b))
    begin = next((at for at in range(most) if a[at] != b[at]), most)
    most -= begin
    end = next((at for at in range(most) if a[-1 - at] != b[-1 - at]), most)
    middle = _runs(a[begin : len(a) - end], b[begin : len(b) - end], steps)
    runs = [
        (0, 0, begin),
        *((x + begin, y + begin, length) for x, y, length in middle),
        (len(a) - end, len(b) - end, end),
    ]
    at = other_at = 0
    for x, y, length in runs:
        if at < x or other_at < y:
            yield False, (at, x), (other_at, y)
        at, other_at = x + length, y + length
        if length:
            yield True, (x, at), (y, other_at)


def _numbered(first: Sequence[Hashable], second: Sequence[Hashable]) -> tuple[list[int], list[int]]:
    """Return a number for each item, the same for equal ones. Numbers are compared fast."""
    numbers: dict[Hashable, int] = {}
    return (
        [numbers.setdefault(one, len(numbers)) for one in first],
        [numbers.setdefault(one, len(numbers)) for one in second],
    )


Run = tuple[int, int, int]  # begin in the first list, begin in the second, length


def _runs(a: list[int], b: list[int], steps: ComparisonSteps) -> list[Run]:
    """Return the longest common items of two lists, as runs in order; nothing if the steps run out.

    A row is an integer for the first items of `a`. Its bit y is 0 if b[y] makes the longest common
    items of them and b[: y + 1] longer (Hyyrö, "Bit-parallel LCS-length computation revisited",
    2004).
    """
    num_steps = len(a) * (1 + len(b) // _BITS)
    if not a or not b or num_steps > steps.left:
        return []
    steps.left -= num_steps
    places = _places(a, b)
    every = row = (1 << len(b)) - 1
    rows = [row]
    for item in a:
        found = row & places[item]
        row = ((row + found) | (row - found)) & every
        rows.append(row)
    return _way_back(rows, len(b))


def _places(a: list[int], b: list[int]) -> dict[int, int]:
    """Return for each item of `a` an integer with a bit for each place in `b`."""
    bits = {item: bytearray(len(b) // 8 + 1) for item in set(a)}
    for at, item in enumerate(b):
        if item in bits:
            bits[item][at // 8] |= 1 << at % 8
    return {item: int.from_bytes(found, "little") for item, found in bits.items()}


def _way_back(rows: list[int], y: int) -> list[Run]:
    """Return the runs that the rows have found, for the first `y` items of the second list."""
    runs: list[Run] = []
    x, length = len(rows) - 1, 0
    while x and y:
        is_in_second_only = rows[x] >> (y - 1) & 1
        if not is_in_second_only and rows[x - 1] >> (y - 1) & 1:
            x, y, length = x - 1, y - 1, length + 1
            continue
        if length:
            runs.append((x, y, length))
            length = 0
        if is_in_second_only:
            y -= 1
        else:
            x -= 1
    if length:
        runs.append((x, y, length))
    return list(reversed(runs))
