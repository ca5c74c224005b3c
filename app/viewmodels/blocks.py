"""Blocks: the frozen values that Markdown text is parsed into, in document order.

Containers (quotes, list items) are not blocks. Each leaf block (a paragraph, a code block, a table)
carries the containers around it as frames, so that one block can be laid out, measured and
replaced without the others. markdown.py and markdown_stream.py make the blocks; the rows of the
transcript paint them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag, StrEnum, auto

LINE_BREAK = "\u2028"  # a hard line break within a text block


class TextMark(Flag):
    """Format of a span of text; flags can be combined."""

    NONE = 0
    BOLD = auto()
    ITALIC = auto()
    CODE = auto()
    STRIKE = auto()
    FORMULA = auto()
    DISPLAY = auto()  # a formula in TeX's display style (large), not in inline style


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A run of text with one format."""

    text: str  # the text to show, or the LaTeX source of a formula
    marks: TextMark = TextMark.NONE
    link: str = ""  # URL; empty if the text is not a link


class FrameKind(Enum):
    """The kinds of container around a block."""

    QUOTE = auto()
    BULLET = auto()
    NUMBER = auto()
    TASK = auto()


@dataclass(frozen=True, slots=True)
class Frame:
    """One container around a block: a quote or a list item.

    The marker (bullet, number or check box) is painted beside the container's first block only.
    """

    kind: FrameKind
    opens: bool  # the block is the first one in the container
    number: int = 0  # the item's number in an ordered list
    checked: bool = False  # state of a task item's check box


@dataclass(frozen=True, slots=True)
class SourceRange:
    """A half-open range of character offsets in the normalised Markdown source."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A leaf of the parsed document: the base of all kinds of block."""

    source: SourceRange
    frames: tuple[Frame, ...] = ()  # containers around the block, outermost first
    joined: int = 0  # number of outermost containers that the previous block is in too


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBlock(Block):
    """A paragraph (level 0) or a heading (level 1 to 6)."""

    spans: tuple[TextSpan, ...]
    level: int = 0

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeBlock(Block):
    """A fenced or indented code block."""

    language: str
    text: str  # without a newline at its end
    closed: bool = True  # False while the closing line of a fence is missing


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaBlock(Block):
    """A LaTeX formula that stands on lines of its own."""

    latex: str


class Align(StrEnum):
    """Alignment of a table column."""

    LEFT = "left"
    CENTER = "center"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Cell:
    """The content of one table cell."""

    spans: tuple[TextSpan, ...]

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableBlock(Block):
    """A table. The first row is the header; every row has as many cells as `aligns`."""

    aligns: tuple[Align, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBlock(Block):
    """A thematic break: a horizontal line between blocks."""
