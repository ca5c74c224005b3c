"""The pairs of ink (foreground colour) and background that widgets may paint.

One test records all pairs that the window paints, and fails on a pair that is not listed here.
Another test checks that each pair has its minimum contrast in every appearance.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import cast

from app.theme.tokens import Colors


class PaintKind(StrEnum):
    """The kinds of ink (foreground colour), each with its own minimum contrast."""

    TEXT = "text"
    MARK = "mark"  # an icon, a dot, a ring, the border of a control, a focus ring


# Minimum contrast ratios, from the WCAG.
MIN_CONTRAST = {PaintKind.TEXT: 4.5, PaintKind.MARK: 3.0}

# Background colours. There is no minimum contrast between two backgrounds.
SURFACES = frozenset(
    (
        *("canvas", "sidebar", "raised", "composer_chip", "hover", "selected", "user_bubble"),
        *("code_background", "code_header", "inline_code"),
        *("instant.tint", "on_disk.tint", "must_read.tint", "error.tint"),
    )
)
# Inks without a minimum contrast: separators, lines of the high-contrast appearances, disabled
# controls.
EXEMPT = frozenset(("hairline", "strong_line", "selection_line", "fill_line", "track", "disabled"))


@dataclass(frozen=True, slots=True)
class Pair:
    """An ink and the background below it, given as names of fields of Colors."""

    ink: str
    background: str
    over: str = "canvas"  # the opaque colour below a translucent background
    kind: PaintKind = PaintKind.TEXT


TRANSCRIPT_PAIRS = (
    Pair("text", "canvas"),
    Pair("secondary", "canvas"),
    Pair("tertiary", "canvas"),
    Pair("link", "canvas"),
    Pair("text", "inline_code"),
    Pair("text", "user_bubble"),
    Pair("secondary", "user_bubble"),
    Pair("link", "user_bubble"),
    Pair("text", "inline_code", "user_bubble"),
    Pair("secondary", "inline_code"),
    Pair("secondary", "hover"),
    Pair("tertiary", "hover"),
    Pair("on_accent", "accent"),
    Pair("secondary", "code_header"),
    Pair("text", "code_header"),
    Pair("secondary", "code_background"),
    *(
        Pair(f"syntax.{name}", "code_background")
        for name in ("default", "keyword", "string", "number", "function", "type", "comment")
    ),
    Pair("instant.ink", "canvas"),
    Pair("instant.ink", "instant.tint"),
    Pair("on_disk.ink", "canvas"),
    Pair("on_disk.ink", "on_disk.tint"),
    Pair("must_read.ink", "canvas"),
    Pair("must_read.ink", "must_read.tint"),
    Pair("error.ink", "error.tint"),
    Pair("text", "error.tint"),
    Pair("secondary", "error.tint"),
    Pair("error.tint", "error.ink"),
)

CONTROL_PAIRS = (
    Pair("text", "raised"),
    Pair("text", "selected"),
    Pair("secondary", "selected"),
    Pair("tertiary", "raised"),
    Pair("error.ink", "raised"),
    Pair("error.ink", "canvas"),
    Pair("error.ink", "hover"),
    Pair("text", "hover"),
    Pair("text", "sidebar"),
    Pair("secondary", "sidebar"),
    Pair("tertiary", "sidebar"),
    Pair("instant.ink", "sidebar"),
    Pair("instant.ink", "selected"),
    Pair("secondary", "raised"),
    Pair("secondary", "composer_chip"),
    # the map of memory and storage, whose lower part is the share on disk
    Pair("instant.ink", "on_disk.tint"),
    Pair("must_read.ink", "on_disk.tint"),
    Pair("text", "composer_chip"),
    Pair("text", "code_background"),
    Pair("canvas", "text"),
    Pair("send_glyph", "send"),
)


def _marks(ink: str, *backgrounds: str) -> tuple[Pair, ...]:
    return tuple(Pair(ink, background, kind=PaintKind.MARK) for background in backgrounds)


MARK_PAIRS = (
    *_marks("accent", "canvas", "sidebar", "raised", "hover", "selected", "composer_chip"),
    *_marks("accent", "user_bubble", "code_background", "code_header", "error.tint"),
    *_marks("border", "canvas", "raised", "hover", "user_bubble", "code_background", "error.tint"),
    *_marks("border", "selected"),
    *_marks("text", "canvas", "sidebar", "raised", "hover", "selected", "code_header"),
    *_marks("text", "user_bubble"),
    *_marks("secondary", "canvas", "sidebar", "raised", "hover", "selected", "code_header"),
    *_marks("secondary", "user_bubble", "error.tint"),
    *_marks("tertiary", "canvas", "sidebar"),
    *(
        pair
        for name in ("gray", "blue", "green", "orange", "red", "purple")
        for pair in _marks(f"folder.{name}", "canvas", "sidebar", "hover", "selected", "raised")
    ),
    *_marks("link", "canvas"),
    *_marks("error.ink", "error.tint"),
    *_marks("must_read.ink", "canvas", "user_bubble", "code_background"),
    *_marks("instant.ink", "canvas", "sidebar", "selected"),
    *_marks("on_disk.ink", "canvas", "sidebar"),
    *_marks("canvas", "text"),
    *_marks("on_accent", "accent"),
    *_marks("send", "raised"),
    *_marks("send_glyph", "send"),
)

PAINTED_PAIRS = TRANSCRIPT_PAIRS + CONTROL_PAIRS + MARK_PAIRS


def contrast(pair: Pair, colors: Colors) -> float:
    """Return the WCAG contrast ratio of a pair, from 1 to 21."""
    base = _rgb(_color(colors, pair.over))
    background = _blend(_color(colors, pair.background), base)
    ink = _blend(_color(colors, pair.ink), background)
    low, high = sorted((_luminance(ink), _luminance(background)))
    return (high + 0.05) / (low + 0.05)


def _color(colors: Colors, name: str) -> str:
    return cast("str", attrgetter(name)(colors))


def _rgb(color: str) -> tuple[float, ...]:
    digits = color[-6:]
    return tuple(int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4))


def _blend(color: str, base: tuple[float, ...]) -> tuple[float, ...]:
    alpha = int(color[1:3], 16) / 255 if len(color) == len("#AARRGGBB") else 1.0
    return tuple(
        alpha * top + (1 - alpha) * below for top, below in zip(_rgb(color), base, strict=True)
    )


def _luminance(rgb: tuple[float, ...]) -> float:
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
