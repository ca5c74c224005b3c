"""The reasons why the app's Markdown intentionally differs from the specifications."""

from __future__ import annotations

from collections.abc import Iterable

_CODE = "Blanks in code are shown as they are, not as one space: code is copied."
_LISTS = "Two lists side by side: the same markers are shown, but not where one list ends."
_FORMULA = r"What is between \[ and \] is a formula."
_LINE_END = "A line end written as an entity is a blank: the source has no line end there."
_FIRST_BLANK = "A blank written as an entity at the beginning of a paragraph is shown."


def _numbered(edition: str, reasons: dict[str, Iterable[int]]) -> dict[tuple[str, int], str]:
    return {(edition, number): reason for reason, numbers in reasons.items() for number in numbers}


REASONS = _numbered(
    "CommonMark 0.31.2",
    {
        _CODE: (138, 331, 332, 334, 335, 336, 337, 640),
        _LISTS: (301, 302),
        _FORMULA: (12,),
        _LINE_END: (39,),
        _FIRST_BLANK: (40,),
    },
) | _numbered(
    "GitHub Flavored Markdown 0.29",
    {
        _CODE: (108, 341, 342, 344, 345, 346, 347, 661),
        _LISTS: (281, 282),
        _FORMULA: (308,),
        _LINE_END: (335,),
        _FIRST_BLANK: (336,),
    },
)
