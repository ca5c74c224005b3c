"""The base class of all rows, and the values that rows share: actions, hits, arguments of painting.

Used on the main thread only. A message is a vertical list of rows: paragraphs, code blocks, tables,
buttons. All coordinates in a row are relative to its top left corner. A row does not store its
position in the message. measure() and paint() lay out the lines of a row. Line layouts take memory:
release() drops them, but keeps the height of the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter

from app.theme.tokens import Space
from app.viewmodels.blocks import LINE_BREAK, Block, SourceRange
from app.widgets.transcript.rows.inset import Inset
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.ranges import Range, all_within, within
from app.words import transcript as words

CARET_WIDTH = 9
CARET_HEIGHT = 18


class RowAction(Enum):
    """The actions that a link or button in a row can have."""

    COPY_MESSAGE = auto()
    COPY_CODE = auto()
    TOGGLE_WRAP = auto()
    SAVE_CODE = auto()
    REGENERATE = auto()
    EDIT = auto()
    EDIT_ANSWER = auto()
    FORK = auto()
    PREVIOUS_VERSION = auto()
    NEXT_VERSION = auto()
    SIDE_BY_SIDE = auto()  # show all versions of an answer in columns
    RETRY = auto()
    CONTINUE = auto()
    STOP = auto()
    WHY_READ = auto()  # open the window that explains what was read for an answer
    CHAT_STORAGE = auto()  # open the settings of memory and disk space for chats
    DELETE = auto()
    TOGGLE_THINKING = auto()
    TOGGLE_FOLD = auto()
    TOGGLE_DETAILS = auto()
    COPY_DETAILS = auto()
    TOGGLE_DOCUMENTS = auto()  # show or hide the documents of the folder
    OPEN_LINK = auto()
    OPEN_FILE = auto()
    OPEN_PICTURE = auto()
    OPEN_QUOTE = auto()  # show a document at the words that stand in an answer
    EXPLAIN = auto()  # a click does nothing; the target only has a tooltip


class IdleResult(Enum):
    """The result of TranscriptRow.advance()."""

    DONE = auto()  # nothing is left to do
    WAITING = auto()  # another thread has not finished: call advance() again later
    CHANGED = auto()  # repaint the row and call advance() again


@dataclass(frozen=True, slots=True)
class Target:
    """The identity of a link or button in a row."""

    action: RowAction
    # Address of an OPEN_LINK, place of an OPEN_FILE, OPEN_PICTURE or OPEN_QUOTE, LaTeX of the
    # EXPLAIN of a formula; else empty.
    link: str = ""


@dataclass(frozen=True, slots=True)
class Hit:
    """A link or button: its rectangle in row coordinates, its name and its tooltip."""

    target: Target
    rect: QRectF
    name: str = ""
    tip: str = ""

    def translated(self, x: float, y: float) -> Hit:
        return replace(self, rect=self.rect.translated(x, y))


@dataclass(slots=True)
class Paint:
    """The arguments of TranscriptRow.paint().

    The origin of the painter is the top left corner of the row.
    """

    painter: QPainter
    top: float  # only the part of the row from `top` to `bottom` is visible
    bottom: float
    ground: str  # background colour behind the row
    selected: Range | None = None
    found: Sequence[Range] = ()  # matches of the search text
    hovered: Target | None = None
    confirmed: Target | None = None  # button that shows "Copied" for a moment
    actions_shown: bool = True  # False if the buttons of the message are hidden
    unfinished: dict[TranscriptRow, None] = field(
        default_factory=dict["TranscriptRow", None]
        # An ordered set of rows with idle work left; a row's paint() adds the row if it needs
        # advance().
    )

    def within(self, start: int, length: int) -> tuple[Range | None, list[Range]]:
        """Return the selected range and the matches in [start, start + length) of the text.

        The positions in the result are relative to `start`.
        """
        selected = None if self.selected is None else within(self.selected, start, length)
        return selected, all_within(self.found, start, length)


class TranscriptRow:
    """The base class of rows. Its default methods describe a row without text, links or buttons."""

    gap: int = 0  # empty pixels above the row
    height: int = 0  # measured height; an estimate if `width` is -1
    width: int = -1  # width at the last measurement; -1 if the row must be measured
    inset: Inset | None = None  # indentation with bars and markers; None if the row is not indented
    # Range of the Markdown source that the row shows. None if there is no single range.
    source: SourceRange | None = None
    # The next three fields are set by measure().
    num_lines: int = 1
    natural_width: float = 0.0  # width that the content needs, in pixels
    is_rtl: bool = False  # True if the row is aligned at the right
    continues: bool = False  # True if the row belongs to the table of the row before
    keeps_next: bool = False  # True for a heading: no page ends between it and the next row

    @property
    def indent(self) -> int:
        """Width of the indentation beside the row, in pixels."""
        return 0 if self.inset is None else self.inset.width

    def width_within(self, outer: int) -> int:
        """Return the width of the row itself: `outer` minus the width of the indentation."""
        return outer if self.inset is None else max(1, outer - self.inset.width)

    def estimate(self, width: int) -> int:
        """Estimate the height of the row without laying out its lines."""
        return self.measure(width)

    def measure(self, width: int) -> int:
        """Lay out the row for a width and return its height."""
        raise NotImplementedError

    def paint(self, paint: Paint) -> None:
        raise NotImplementedError

    def page_breaks(self) -> Sequence[int]:
        """Return the y coordinates, from top to bottom, at which a page may end in the row."""
        return ()

    def request_formulas(self) -> None:
        """Request missing formulas of the row again, so that they are typeset next."""

    def release(self) -> None:
        """Drop the line layout to free memory. paint() creates a new line layout."""

    def hits(self) -> Sequence[Hit]:
        """Return the links and buttons in reading order."""
        return ()

    def hit(self, x: float, y: float) -> Hit | None:
        """Return the link or button at a point."""
        return next((hit for hit in self.hits() if hit.rect.contains(x, y)), None)

    @property
    def group(self) -> str:
        """Name for screen readers if the row is a group of buttons. Otherwise empty."""
        return ""

    @property
    def is_waiting(self) -> bool:
        """True while a formula of the row is not typeset yet."""
        return False

    @property
    def is_stale(self) -> bool:
        """True if the row must be measured again.

        A row is stale after a formula in it was typeset or the wrap setting of its code block
        changed.
        """
        return False

    @property
    def text(self) -> str:
        """The selectable text of the row."""
        return ""

    @property
    def file_name(self) -> str:
        """The file name that is suggested when the user saves the text of the row."""
        return words.TEXT_FILE

    def copied(self, part: Range) -> str:
        """Return the text that is copied to the clipboard for a selected range."""
        return self.text[part.start : part.end].replace(LINE_BREAK, "\n")

    def position_at(self, x: float, y: float) -> int:  # noqa: ARG002 - part of the interface
        return 0

    def line_top(self, position: int) -> int:  # noqa: ARG002 - part of the interface
        """Return the y of the top of the line that contains a text position."""
        return 0

    def end_rect(self) -> QRectF:
        """Return a rectangle at the end of the last line: width 0, height of the line."""
        return QRectF(0, 0, 0, self.height)

    def update(self, block: Block) -> bool:  # noqa: ARG002 - part of the interface
        """Show a longer version of the block. Return False if this row cannot show it.

        If the result is False, the caller creates a new row.
        """
        return False

    def advance(self) -> IdleResult:
        """Do a few milliseconds of idle work, such as colouring code."""
        return IdleResult.DONE

    def reveal(self, part: Range) -> None:
        """Scroll the content sideways so that a range of the text is visible."""

    def toggle_wrap(self) -> None:
        """Turn the wrapping of long code lines on or off."""

    def scroll_sideways(self, pixels: int) -> bool:  # noqa: ARG002 - part of the interface
        """Scroll the content sideways. Return False if the whole content is visible."""
        return False


def between_lines(tops: Sequence[int]) -> Sequence[int]:
    """Return the tops of the lines before which a page may end.

    At least two lines of a text stay together at the end of a page and at the start of the next.
    """
    return tops[2:-1]


def paint_caret(painter: QPainter, look: Look, row: TranscriptRow) -> None:
    """Paint the caret of a growing answer, 2 px after the last glyph of a row."""
    width, height, end = look.px(CARET_WIDTH), look.px(CARET_HEIGHT), row.end_rect()
    x = end.x() - Space.HAIR - width if row.is_rtl else end.x() + Space.HAIR
    caret = QRectF(x, end.center().y() - height / 2, width, height)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QColor(look.colors.text))
    painter.drawRoundedRect(caret, Space.HAIR, Space.HAIR)
