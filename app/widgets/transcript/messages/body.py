"""Markdown of one message as rows, kept in step while it is written. Main thread.

Long texts are fed to the parser in slices, so that no event waits for a whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

from markdown_it import MarkdownIt

from app.theme.tokens import TextStyle, Type
from app.viewmodels.blocks import (
    Block,
    CodeBlock,
    FormulaBlock,
    Frame,
    FrameKind,
    RuleBlock,
    SourceRange,
    TableBlock,
    TextBlock,
    TextMark,
    TextSpan,
)
from app.viewmodels.lexers import LexerShelf
from app.viewmodels.markdown import normalized
from app.viewmodels.markdown_stream import MarkdownStream
from app.widgets.transcript.messages.estimates import estimate_text
from app.widgets.transcript.rows.code import CodeRow
from app.widgets.transcript.rows.formula_row import FormulaRow
from app.widgets.transcript.rows.hits import Hits
from app.widgets.transcript.rows.inset import Inset, gap_between
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import LayoutCache, RuleRow, TextRow, TranscriptRow
from app.widgets.transcript.rows.table import table_rows

FEED = 2_000  # characters parsed at once: about 4 ms
ESTIMATED_FROM = 20_000  # characters
MAX_ROW_TEXT = 4_000  # characters of a paragraph laid out at once
_BAR = Frame(FrameKind.QUOTE, opens=False)


class Tone(Enum):
    """How a text is set."""

    ANSWER = auto()
    REASONING = auto()


@dataclass(slots=True, eq=False)
class Kit:
    """What rows are made with. look is replaced when theme or zoom change."""

    look: Look
    shelf: LexerShelf
    cache: LayoutCache
    parser: MarkdownIt  # costs 0.3 ms to make
    hits: Hits
    clock: Callable[[], float]


@dataclass(frozen=True, slots=True)
class RowsFrom:
    """Rows from the place first on; the ones before have not changed."""

    first: int
    rows: list[TranscriptRow]


@dataclass(slots=True, eq=False)
class _BlockRows:
    """A block and its rows: more than one for a table or a very long paragraph."""

    block: Block
    rows: list[TranscriptRow]


class MarkdownRows:
    """The rows of a text that may still grow.

    wrapped has the places of its code whose lines wrap; it belongs to the message and is kept.
    """

    def __init__(self, kit: Kit, wrapped: set[int], tone: Tone = Tone.ANSWER) -> None:
        self._kit = kit
        self._wrapped = wrapped
        self._tone = tone
        self._stream = MarkdownStream(kit.parser)
        self._source = ""  # what was appended and is not parsed yet, from _fed on
        self._fed = 0
        self._growing = True
        self._finished = False
        self._final: list[_BlockRows] = []  # of frozen blocks
        self._num_final_rows = 0
        self._tail: list[_BlockRows] = []
        self._height_per_char: float | None = None

    @property
    def text(self) -> str:
        """The whole text, normalised."""
        return self._stream.text + normalized(self._source[self._fed :])

    @property
    def is_empty(self) -> bool:
        return not self.num_unfed and not self._stream.text

    @property
    def num_unfed(self) -> int:
        """How many characters are not parsed yet."""
        return len(self._source) - self._fed

    @property
    def is_fed(self) -> bool:
        """Whether everything is parsed."""
        return not self.num_unfed and (self._growing or self._finished)

    def append_text(self, text: str) -> None:
        """Add text that will be parsed by feed()."""
        self._source = self._source[self._fed :] + text
        self._fed = 0
        self._height_per_char = None

    def close(self) -> None:
        """Say that no text follows."""
        self._growing = False

    def feed(self) -> None:
        """Parse the next slice."""
        if self.num_unfed:
            self._stream.append_text(self._source[self._fed : self._fed + FEED])
            self._fed = min(len(self._source), self._fed + FEED)
        if not self.num_unfed and not self._growing and not self._finished:
            self._finished = True
            self._stream.finish()
            if self._stream.num_frozen < len(self._final):
                self.rebuild()  # a late link definition reached back

    def take_rows(self) -> RowsFrom:
        """Return the rows since the first that may have changed after the last call."""
        first = self._num_final_rows
        frozen = self._stream.frozen
        old, self._tail = self._tail, []
        fresh = frozen[len(self._final) :]
        for number, block in enumerate(fresh):
            self._final.append(self._entry(block, old[number] if number < len(old) else None))
        tail = () if self.num_unfed else self._stream.tail
        for number, block in enumerate(tail, start=len(fresh)):
            self._tail.append(self._entry(block, old[number] if number < len(old) else None))
        final = self._final[len(self._final) - len(fresh) :]
        self._num_final_rows += sum(len(entry.rows) for entry in final)
        return RowsFrom(first, [row for entry in (*final, *self._tail) for row in entry.rows])

    def rebuild(self) -> None:
        """Make all rows anew, the look has changed: take_rows will return all."""
        self._final, self._tail = [], []
        self._num_final_rows = 0
        self._height_per_char = None

    def estimate_rest(self, width: int) -> int:
        """Return about how high the text is that is not parsed yet."""
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
        entries = self._tail or self._final
        before = entries[-1].block if entries else None
        rows = self._make_rows(block)
        rows[0].gap = gap_between(self._kit.look, before, block)
        return _BlockRows(block, rows)

    def _make_rows(self, block: Block) -> list[TranscriptRow]:
        rows = self._block_rows(block)
        outer = self._with_bar(block)
        if outer.frames:
            _set_insets(self._kit.look, rows, outer)
        if len(rows) == 1:
            rows[0].source = block.source
        return rows

    def _block_rows(self, block: Block) -> list[TranscriptRow]:
        """Return the rows of a block, without its frames."""
        look = self._kit.look
        is_answer = self._tone is Tone.ANSWER
        ink = look.colors.text if is_answer else look.colors.secondary
        match block:
            case CodeBlock():
                return [CodeRow(look, self._kit.shelf, block, self._wrapped)]
            case TableBlock():
                return [*table_rows(look, block)]
            case RuleBlock():
                return [RuleRow(look)]
            case FormulaBlock():
                return [FormulaRow(look, Type.BODY if is_answer else Type.REASONING, block, ink)]
            case TextBlock():
                style = look.heading(block.level) if is_answer else Type.REASONING
                return [*text_rows(look, style, block.spans, ink)]
            case _:
                raise AssertionError(f"a block of unknown kind: {block}")

    def _with_bar(self, block: Block) -> Block:
        if self._tone is Tone.ANSWER:
            return block
        joined = block.joined + 1 if self._final or self._tail else 0
        return replace(block, frames=(_BAR, *block.frames), joined=joined)


def _set_insets(look: Look, rows: Sequence[TranscriptRow], block: Block) -> None:
    """Give the rows of a block their insets: only the first one has the markers."""
    rows[0].inset = Inset(look, block.frames, block.joined)
    continued = tuple(replace(frame, opens=False) for frame in block.frames)
    for row in rows[1:]:
        row.inset = Inset(look, continued, len(continued))


def text_rows(look: Look, style: TextStyle, spans: Sequence[TextSpan], ink: str) -> list[TextRow]:
    """Return one row, or several for a text too long to be laid out at once."""
    return [TextRow(look, style, part, ink) for part in split_spans(spans)]


def split_spans(spans: Sequence[TextSpan]) -> list[tuple[TextSpan, ...]]:
    """Cut spans into parts of bounded length, at spaces where there are some."""
    if sum(len(span.text) for span in spans) <= MAX_ROW_TEXT:
        return [tuple(spans)]
    parts: list[tuple[TextSpan, ...]] = []
    part: list[TextSpan] = []
    room = MAX_ROW_TEXT
    for span in spans:
        text = span.text
        while len(text) > room and TextMark.FORMULA not in span.marks:
            cut = text.rfind(" ", 0, room) + 1 or room
            parts.append((*part, replace(span, text=text[:cut])))
            part, text, room = [], text[cut:], MAX_ROW_TEXT
        part.append(replace(span, text=text))
        room -= len(text)
    return [*parts, tuple(part)]


def plain_rows(look: Look, text: str, start: int) -> list[TranscriptRow]:
    """Return one row for each line of a plain text that starts at start of its source."""
    rows: list[TranscriptRow] = []
    for line in text.split("\n"):
        made = text_rows(look, Type.BODY, (TextSpan(line),), look.colors.text)
        if len(made) == 1:
            made[0].source = SourceRange(start, start + len(line))
        rows += made
        start += len(line) + 1
    return rows
