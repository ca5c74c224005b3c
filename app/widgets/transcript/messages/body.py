"""The rows of a Markdown text that may still grow. Main thread only.

Text is parsed in slices of a few milliseconds, so that a long text never blocks the event loop.
While an answer is streamed, the rows of finished blocks are kept. Only the rows of the last blocks
are made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from markdown_it import MarkdownIt

from app.theme.tokens import TextStyle, Type
from app.viewmodels.blocks import (
    LINE_BREAK,
    Block,
    CodeBlock,
    Container,
    FormulaBlock,
    FrameKind,
    RuleBlock,
    SourceRange,
    TableBlock,
    TextBlock,
    TextMark,
    TextSpan,
)
from app.viewmodels.lexer_shelf import LexerShelf
from app.viewmodels.markdown import normalized
from app.viewmodels.markdown_stream import MarkdownStream, num_marks
from app.widgets.transcript.messages.estimates import estimate_text
from app.widgets.transcript.messages.table_sources import set_table_sources
from app.widgets.transcript.rows.code import CodeRow
from app.widgets.transcript.rows.find_matches import FindMatches
from app.widgets.transcript.rows.formula_row import FormulaRow
from app.widgets.transcript.rows.inset import Inset, gap_between
from app.widgets.transcript.rows.layout_cache import LayoutCache
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import TranscriptRow
from app.widgets.transcript.rows.table import TableRow, table_rows
from app.widgets.transcript.rows.text_row import RuleRow, TextRow

# Number of characters in a slice, and maximum number of marks (markdown_stream.MAX_MARKS). Parsing
# a slice of prose takes about 4 ms.
FEED = 2_000
FEED_MARKS = 600
# Number of marks that are parsed in one frame, which takes 10 to 50 ms. The rest is parsed in idle
# time. Prose has one mark in 15 characters, and each is parsed once or twice.
MARKS_AT_ONCE = 1_500
# The average height of a character is computed from at most this number of parsed characters.
ESTIMATED_FROM = 20_000
MAX_ROW_TEXT = 4_000  # maximum number of characters in a row; a longer paragraph gets several rows
# Container that paints a vertical bar beside the reasoning text.
_BAR = Container(FrameKind.QUOTE, opens=False)


class Tone(Enum):
    """The kind of a Markdown text, which determines its font and colour."""

    ANSWER = auto()
    REASONING = auto()
    TYPED = auto()  # a message of the user, whose lines keep their indentation


@dataclass(slots=True, eq=False)
class RowKit:
    """The objects that all rows of a transcript share."""

    look: Look  # replaced when the theme or the zoom changes
    shelf: LexerShelf  # lexers that colour code blocks
    cache: LayoutCache  # cache of line layouts; it drops the least recently used ones
    # The parsers are shared, because making one takes 0.3 ms.
    parser: MarkdownIt
    typed_parser: MarkdownIt  # for the messages of the user
    matches: FindMatches  # matches of the find text in the rows
    clock: Callable[[], float]  # returns monotonic time in seconds
    allowance: int = MARKS_AT_ONCE  # number of marks that may still be parsed in this frame


@dataclass(frozen=True, slots=True)
class RowsFrom:
    """The rows of a text from index `first` to the end. Rows before `first` are unchanged."""

    first: int
    rows: list[TranscriptRow]


@dataclass(slots=True, eq=False)
class _BlockRows:
    """A Markdown block and its rows. A long table or a very long paragraph has several rows."""

    block: Block
    rows: list[TranscriptRow]


class MarkdownRows:
    """The rows of a Markdown text that may still grow.

    Append text with append_text(), parse it slice by slice with feed(), then call take_rows().

    Args:
        wrapped: Source offsets of the code blocks with wrapped lines. The message owns the set,
            because the message exists longer than this object.
    """

    def __init__(self, kit: RowKit, wrapped: set[int], tone: Tone = Tone.ANSWER) -> None:
        self._kit = kit
        self._wrapped = wrapped
        self._tone = tone
        parser = kit.typed_parser if tone is Tone.TYPED else kit.parser
        self._stream = MarkdownStream(parser)
        self._source = ""  # appended text; the first _fed characters are parsed
        self._fed = 0
        self._growing = True  # True until close() is called
        self._finished = False  # True once finish() of the parser was called
        self._final: list[_BlockRows] = []  # blocks that no later text can change
        self._num_final_rows = 0
        self._tail: list[_BlockRows] = []  # the last blocks, which later text may change
        # The former _tail while some text is not parsed yet. Its rows are hidden, and can be used
        # again later.
        self._hidden_tail: list[_BlockRows] = []
        # Estimated height of a character of unparsed text, in pixels; None if not computed yet.
        self._height_per_char: float | None = None

    @property
    def text(self) -> str:
        """The whole text with normalised line ends, including text that is not parsed yet."""
        return self._stream.text + normalized(self._source[self._fed :])

    @property
    def is_empty(self) -> bool:
        return not self.num_unfed and not self._stream.text

    @property
    def num_parsed_marks(self) -> int:
        """Number of marks in all parses together; a mark that was parsed twice counts twice."""
        return self._stream.num_parsed_marks

    @property
    def num_unfed(self) -> int:
        """Number of characters that are not parsed yet."""
        return len(self._source) - self._fed

    @property
    def is_fed(self) -> bool:
        """True if all text is parsed and, after close(), the last blocks are finished."""
        return not self.num_unfed and (self._growing or self._stream.is_done)

    def append_text(self, text: str) -> None:
        """Append text without parsing it. feed() parses it later."""
        self._source = self._source[self._fed :] + text
        self._fed = 0
        self._height_per_char = None

    def close(self) -> None:
        """Mark the text as complete, so that feed() finishes the last blocks."""
        self._growing = False

    def feed(self) -> None:
        """Parse the next slice of text."""
        if self.num_unfed:
            end = self._fed + FEED
            if num_marks(self._source[self._fed : end]) > FEED_MARKS:
                end = self._fed + FEED_MARKS
            self._stream.append_text(self._source[self._fed : end])
            self._fed = min(len(self._source), end)
        if not self.num_unfed and not self._growing and not self._stream.is_done:
            frozen = self._stream.frozen
            if self._finished:
                self._stream.finish_more()
            else:
                self._finished = True
                self._stream.start_finish()
            if self._stream.frozen is not frozen:
                self._remake()  # a link definition at the end of the text changed earlier blocks

    def take_rows(self) -> RowsFrom:
        """Return the rows that may have changed since the last call, and all rows after them."""
        first = self._num_final_rows
        frozen = self._stream.frozen
        old = self._tail or self._hidden_tail
        self._tail, self._hidden_tail = [], []
        fresh = frozen[len(self._final) :]
        for number, block in enumerate(fresh):
            self._final.append(self._entry(block, old[number] if number < len(old) else None))
        if self.num_unfed:
            self._hidden_tail = old[len(fresh) :]
        else:
            for number, block in enumerate(self._stream.tail, start=len(fresh)):
                self._tail.append(self._entry(block, old[number] if number < len(old) else None))
        final = self._final[len(self._final) - len(fresh) :]
        self._num_final_rows += sum(len(entry.rows) for entry in final)
        return RowsFrom(first, [row for entry in (*final, *self._tail) for row in entry.rows])

    def rebuild(self) -> None:
        """Drop all rows, so that the next call of take_rows() makes new rows."""
        self._final, self._tail, self._hidden_tail = [], [], []
        self._num_final_rows = 0
        self._height_per_char = None

    def _remake(self) -> None:
        """Make the next take_rows() compare all blocks. Rows of unchanged blocks are kept."""
        self._tail = [*self._final, *self._tail, *self._hidden_tail]
        self._final, self._hidden_tail = [], []
        self._num_final_rows = 0

    def estimate_rest(self, width: int) -> int:
        """Return the estimated height in pixels of the text that is not parsed yet."""
        if not self.num_unfed:
            return 0
        if self._height_per_char is None:
            sample = self._source[self._fed : self._fed + ESTIMATED_FROM]
            height = estimate_text(self._kit.look, sample, width)
            self._height_per_char = height / len(sample)
        return round(self.num_unfed * self._height_per_char)

    def _entry(self, block: Block, old: _BlockRows | None) -> _BlockRows:
        if old is not None and old.block == block:
            return old
        if old is not None and len(old.rows) == 1 and old.block.frames == block.frames:
            row = old.rows[0]
            if row.update(block):
                row.width = -1
                row.source = block.source
                return _BlockRows(block, [row])
        before = self._entry_before
        rows = self._make_rows(block)
        rows[0].gap = gap_between(self._kit.look, None if before is None else before.block, block)
        return _BlockRows(block, rows)

    @property
    def _entry_before(self) -> _BlockRows | None:
        """The last block for which take_rows() has made rows, with these rows."""
        entries = self._tail or self._final
        return entries[-1] if entries else None

    def _make_rows(self, block: Block) -> list[TranscriptRow]:
        rows = self._block_rows(block)
        outer = self._with_bar(block)
        if outer.frames:
            _set_insets(self._kit.look, rows, outer)
        if len(rows) == 1:
            rows[0].source = block.source
        elif isinstance(block, TableBlock):
            set_table_sources(rows, block.source, self._stream.text)
        return rows

    def _block_rows(self, block: Block) -> list[TranscriptRow]:
        """Make the rows of a Markdown block, without indentation."""
        look = self._kit.look
        is_answer = self._tone is not Tone.REASONING
        ink = look.colors.text if is_answer else look.colors.secondary
        match block:
            case CodeBlock():
                return [CodeRow(look, self._kit.shelf, block, self._wrapped)]
            case TableBlock():
                before = self._entry_before
                row = before.rows[-1] if block.continues and before is not None else None
                return [
                    *table_rows(look, block, row.columns if isinstance(row, TableRow) else None)
                ]
            case RuleBlock():
                return [RuleRow(look)]
            case FormulaBlock():
                return [FormulaRow(look, Type.BODY if is_answer else Type.REASONING, block, ink)]
            case TextBlock():
                style = look.heading(block.level) if is_answer else Type.REASONING
                rows = text_rows(look, style, block.spans, ink)
                rows[-1].keeps_next = block.level > 0
                return [*rows]
            case _:
                raise AssertionError(f"a block of unknown kind: {block}")

    def _with_bar(self, block: Block) -> Block:
        if self._tone is not Tone.REASONING:
            return block
        joined = block.joined + 1 if self._final or self._tail else 0
        return replace(block, frames=(_BAR, *block.frames), joined=joined)


def _set_insets(look: Look, rows: Sequence[TranscriptRow], block: Block) -> None:
    """Set the insets (indentation) of a block's rows. Only the first row gets list markers."""
    rows[0].inset = Inset(look, block.frames, block.joined)
    continued = tuple(replace(frame, opens=False) for frame in block.frames)
    for row in rows[1:]:
        row.inset = Inset(look, continued, len(continued))


def text_rows(look: Look, style: TextStyle, spans: Sequence[TextSpan], ink: str) -> list[TextRow]:
    """Make one row for a text, or several rows if it is longer than MAX_ROW_TEXT."""
    return [TextRow(look, style, part, ink) for part in split_spans(spans)]


def split_spans(spans: Sequence[TextSpan]) -> list[tuple[TextSpan, ...]]:
    """Split spans into parts of at most MAX_ROW_TEXT characters, at line breaks or else at spaces.

    A line break between two parts is left out, because each part is in a row of its own.
    """
    if sum(len(span.text) for span in spans) <= MAX_ROW_TEXT:
        return [tuple(spans)]
    parts: list[tuple[TextSpan, ...]] = []
    part: list[TextSpan] = []
    room = MAX_ROW_TEXT
    for span in spans:
        text = span.text
        while len(text) > room and TextMark.FORMULA not in span.marks:
            line_end = text.rfind(LINE_BREAK, 0, room + 1)
            cut = line_end if line_end >= 0 else text.rfind(" ", 0, room) + 1 or room
            parts.append((*part, replace(span, text=text[:cut])))
            part, text, room = [], text[cut:].removeprefix(LINE_BREAK), MAX_ROW_TEXT
        part.append(replace(span, text=text))
        room -= len(text)
    return [*parts, tuple(part)]


def plain_rows(look: Look, text: str, start: int) -> list[TranscriptRow]:
    """Make one row for each line of a plain text. `start` is the source offset of the text."""
    rows: list[TranscriptRow] = []
    for line in text.split("\n"):
        made = text_rows(look, Type.BODY, (TextSpan(line),), look.colors.text)
        if len(made) == 1:
            made[0].source = SourceRange(start, start + len(line))
        rows += made
        start += len(line) + 1
    return rows
