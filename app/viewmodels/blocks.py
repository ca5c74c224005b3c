"""What Markdown is parsed to: a flat sequence of frozen leaf blocks.

Containers (quotes, list items) are not nested values: every leaf carries the frames that it sits
in, so that each leaf can be laid out, measured and replaced by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, Flag, StrEnum, auto

LINE_BREAK = "\u2028"  # a hard line break within a text block


class TextMark(Flag):
    """How a span is set."""

    NONE = 0
    BOLD = auto()
    ITALIC = auto()
    CODE = auto()
    STRIKE = auto()
    FORMULA = auto()
    DISPLAY = auto()  # of a formula: set large


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A run of text of one look; of a formula the LaTeX. link is a URL or empty."""

    text: str
    marks: TextMark = TextMark.NONE
    link: str = ""


class FrameKind(Enum):
    """What a block can sit in."""

    QUOTE = auto()
    BULLET = auto()
    NUMBER = auto()
    TASK = auto()


@dataclass(frozen=True, slots=True)
class Frame:
    """One container around a block.

    The marker (bullet, number, box) is drawn beside the first block of the container only.
    """

    kind: FrameKind
    opens: bool
    number: int = 0
    checked: bool = False


@dataclass(frozen=True, slots=True)
class SourceRange:
    """A half-open range of the Markdown source."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A leaf. The outermost `joined` frames are shared with the block before."""

    source: SourceRange
    frames: tuple[Frame, ...] = ()
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
    """A fence or an indented block; text ends without a newline. Open fences are still growing."""

    language: str
    text: str
    closed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FormulaBlock(Block):
    """A formula on lines of its own."""

    latex: str


class Align(StrEnum):
    """How a table column is set."""

    LEFT = "left"
    CENTER = "center"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Cell:
    """One table cell."""

    spans: tuple[TextSpan, ...]

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableBlock(Block):
    """A table. The first row is the header; all rows are as long as aligns."""

    aligns: tuple[Align, ...]
    rows: tuple[tuple[Cell, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleBlock(Block):
    """A thematic break."""
