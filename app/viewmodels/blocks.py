"""Blocks: frozen values for the paragraphs, code blocks and tables of a Markdown text.

A parsed text is a flat sequence of blocks in document order. Quotes and list items are not blocks.
Instead, each block lists the quotes and list items around it as its frames, so that one block can
be laid out, measured and replaced without the others. markdown.py and markdown_stream.py make the
blocks; the rows of the transcript paint them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag, StrEnum, auto

LINE_BREAK = "\u2028"  # character for a line break in a text block


class TextMark(Flag):
    """The formats of a span of text. Flags can be combined."""

    NONE = 0
    BOLD = auto()
    ITALIC = auto()
    CODE = auto()
    STRIKE = auto()
    FORMULA = auto()
    # with FORMULA: a formula in TeX's display style, which is large; else in inline style
    DISPLAY = auto()


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A run of text with one format."""

    text: str  # the text to show, or the LaTeX source of a formula
    marks: TextMark = TextMark.NONE
    link: str = ""  # URL; empty if the text is not a link


class FrameKind(Enum):
    """The kinds of container around a block: a quote, and three kinds of list item."""

    QUOTE = auto()
    BULLET = auto()
    NUMBER = auto()
    TASK = auto()


@dataclass(frozen=True, slots=True)
class Container:
    """One container around a block: a quote or a list item.

    Its marker is a bullet, a number or a check box, painted beside the container's first block
    only.
    """

    kind: FrameKind
    opens: bool  # True if the block is the first block in the container
    number: int = 0  # for an item of an ordered list: its number
    checked: bool = False  # for a task item: True if its check box is checked


@dataclass(frozen=True, slots=True)
class SourceRange:
    """A half-open range of character offsets in the normalised Markdown source."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The base class of all blocks. A block contains no other block."""

    source: SourceRange
    frames: tuple[Container, ...] = ()  # containers around the block, outermost first
    # number of containers that also contain the previous block, counted from the outermost
    joined: int = 0


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
    text: str  # the code, without its last newline
    closed: bool = True  # False for a fenced block without its closing line


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaBlock(Block):
    """A LaTeX formula on separate lines, outside a paragraph."""

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
    # True if the rows belong to the table of the previous block, so that the first is no header
    continues: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBlock(Block):
    """A thematic break: a horizontal line between blocks."""
