"""Incremental Markdown parser for a reply that is still being written. No Qt, no I/O.

If every update parsed the whole text, long replies would become slower and slower. But new text can
change only the last top-level block, or the last item of a top-level list. MarkdownStream freezes
all earlier blocks. The text after them is the tail. Only the tail is parsed again. If the tail is
an open code fence, it is not parsed again: new text is added to its block. An incomplete line
freezes no block, because a line such as `***` can still become bold text.

There is one exception: a link definition turns labels in earlier text into links. finish() then
parses the whole text again. A list can become loose when a blank line arrives, but loose and tight
lists give the same blocks (markdown.py).

    text:    | frozen: parsed once | tail: parsed after each append | last line of markup: not shown
                                   ^ _tail_start

After finish() the blocks equal those of parse_markdown(text), with two exceptions for very long
texts: a tail of more than MAX_BLOCK characters or MAX_MARKS marks was cut, or a link definition
came late in a text of more than MAX_REPARSE characters. A table that was cut continues in a
TableBlock of its own, which has no header.

app/widgets/transcript/messages/body.py makes one stream per text, appends the text and makes rows
from the blocks. The rows of frozen blocks are made only once, unless finish() replaces the blocks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.viewmodels import formulas
from app.viewmodels.blocks import Block, SourceRange, TableBlock
from app.viewmodels.markdown import (
    Lines,
    is_closed,
    normalized,
    read_blocks,
)
from app.viewmodels.open_fence import OpenFence, open_fence

# In characters. finish() does not parse a longer text again. In such a text, a link definition has
# no effect on the blocks before it.
MAX_REPARSE = 200_000
# In characters. A longer tail is frozen at once, because parsing it at every update would be too
# slow. An open code fence is an exception: it is not parsed again.
MAX_BLOCK = 50_000
# A mark is a line end or a character with a meaning in Markdown. A tail with more marks than this
# is frozen, because parsing takes 5 to 11 us per mark. Prose has one mark in 15 characters.
MAX_MARKS = 1_500
# If finish() parses the whole text again, it parses this number of characters at a time.
_SLICE = 2_000

# Matches a last line that has only markup. It is not shown yet, because the text that follows
# decides its meaning.
_UNDECIDED = re.compile(r"(?:\d[.)]?|[-+*=_#>`~|: \t])*$")
_MARKS = '\n.!"#$%&*+-:<=>@[\\]^_`{|}~\t'


@dataclass(frozen=True, slots=True)
class _Cut:
    """The line at which the tail begins."""

    line: int  # index of the line in the parsed text
    # Number of the ordered list item on that line; None if there is no such item.
    number: int | None


@dataclass(frozen=True, slots=True)
class _Parsed:
    """The result of parsing the tail."""

    tokens: Sequence[Token]
    lines: Lines
    blocks: tuple[Block, ...]
    references: Mapping[str, object]  # link definitions before the tail and in it, by label


class MarkdownStream:
    """The blocks of a Markdown text that is appended piece by piece.

    `frozen` blocks never change before finish(). `tail` blocks may change with every append.
    Streams may share one parser, because it keeps no state between parses.
    """

    def __init__(self, parser: MarkdownIt, references: Mapping[str, object] | None = None) -> None:
        # Number of marks (see MAX_MARKS) in all parses together. A mark that was parsed twice
        # counts twice.
        self.num_parsed_marks = 0
        self._parser = parser
        self._text = ""
        self._held = ""  # a CR at the end of the text, held back because an LF may follow
        self._frozen: list[Block] = []
        self._tail: tuple[Block, ...] | None = ()  # None if the tail must be parsed again
        self._tail_start = 0  # offset of the tail in _text
        self._seen = 0  # offset after the last complete line
        # Number of the list item at the start of the tail, if it is in an ordered list. Markdown
        # numbers the items by counting from the first one, which the tail may no longer contain.
        self._number: int | None = None
        # link definitions before the tail, by label
        self._references: dict[str, object] = dict(references or {})
        self._late_references = False  # True if a link definition stands below a frozen block
        # The tail, if the tail is an open code fence; otherwise None.
        self._fence: OpenFence | None = None
        # Header row of the cut table that the tail continues; "" if the tail continues no table.
        self._table_head = ""
        self._finished = False
        # A second stream, which parses the whole text again with all link definitions, and the
        # number of characters that were appended to it.
        self._again: MarkdownStream | None = None
        self._num_again = 0

    @property
    def text(self) -> str:
        """The text so far, normalised. Source ranges of blocks refer to this text."""
        return self._text

    @property
    def frozen(self) -> list[Block]:
        """Final blocks. The list grows only at its end, but finish() may replace it."""
        return self._frozen

    @property
    def tail(self) -> tuple[Block, ...]:
        """Blocks after the frozen ones. The text is parsed on access, not at every append."""
        if self._tail is None:
            self._tail = self._parse_tail()
        return self._tail

    @property
    def blocks(self) -> tuple[Block, ...]:
        return (*self._frozen, *self.tail)

    def append_text(self, text: str) -> None:
        """Append text. The run time depends on the length of the tail, not on the whole text."""
        assert not self._finished, "append_text() was called after finish()"
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        self._add(text.removesuffix("\r") if self._held else text)

    @property
    def is_done(self) -> bool:
        """True if start_finish() was called and the blocks are final."""
        return self._finished and self._again is None

    def finish(self) -> None:
        """End the text: show its last line, close its blocks and apply late link definitions.

        Call this method once, after the last append_text(). If a link definition stands below a
        frozen block, the whole text is parsed again and `frozen` is replaced.
        """
        self.start_finish()
        while not self.is_done:
            self.finish_more()

    def start_finish(self) -> None:
        """End the text like finish(), but leave a second parse of the text to finish_more()."""
        if self._held:
            self._add(self._held)
            self._held = ""
        self._finished = True
        self._tail = self._parse_tail()
        if self._late_references and len(self._text) <= MAX_REPARSE:
            self._again = MarkdownStream(self._parser, self._references)

    def finish_more(self) -> None:
        """Parse the next slice of the whole text again. Call this method until is_done is True."""
        again = self._again
        assert again is not None
        before = again.num_parsed_marks
        again.append_text(self._text[self._num_again : self._num_again + _SLICE])
        self._num_again += _SLICE
        if self._num_again >= len(self._text):
            again.start_finish()
            self._frozen, self._tail = again.frozen, again.tail
            self._again = None
        self.num_parsed_marks += again.num_parsed_marks - before

    def _add(self, text: str) -> None:
        """Append text that does not end between CR and LF, and freeze what has become final."""
        self._text += normalized(text)
        self._tail = None
        end = self._text.rfind("\n") + 1
        if end > self._seen:
            if self._fence is not None:
                self._close_fence(self._fence)
            if self._fence is None:
                self._freeze(end)
            self._seen = end
        if self._fence is None and self._is_tail_long(len(self._text)):
            self._cut_off()

    def _is_tail_long(self, end: int) -> bool:
        length = end - self._tail_start
        return length > MAX_BLOCK or (
            length > MAX_MARKS and num_marks(self._text[self._tail_start : end]) > MAX_MARKS
        )

    def _parse_tail(self) -> tuple[Block, ...]:
        """Return the blocks of the tail. Before finish(), leave out an undecided last line."""
        if self._fence is not None:
            return (self._fence.block(self._text, is_finished=self._finished),)
        text = self._text[self._tail_start :]
        if not self._finished:
            text = text[: _decided_len(text)]
        parsed = self._parse(text)
        if self._finished:
            # Store the link definitions of the tail too: finish() needs all definitions of the
            # text.
            self._note_references(parsed.references, _Cut(0, None))
            self._references.update(parsed.references)
        return parsed.blocks

    def _parse(self, text: str) -> _Parsed:
        """Parse the tail. If the tail continues a cut table, put the table's header before it."""
        self.num_parsed_marks += num_marks(text)
        # While text may follow (GROWING), a formula without closing delimiter is parsed as a
        # formula.
        environment: dict[str, Any] = {
            "references": dict(self._references),
            formulas.GROWING: not self._finished,
        }
        head = self._table_head
        tokens = self._parser.parse(head + text, environment)
        lines = Lines(head + text, self._tail_start - len(head))
        blocks = read_blocks(tokens, lines, first_number=self._number)
        if head and blocks and isinstance(blocks[0], TableBlock):
            blocks = (*_without_head(blocks[0], self._tail_start), *blocks[1:])
        return _Parsed(tokens, lines, blocks, environment["references"])

    def _close_fence(self, fence: OpenFence) -> None:
        """Freeze the open fence if its closing line is among the new complete lines."""
        closed = fence.close(self._text, self._seen)
        if closed is not None:
            self._frozen.append(closed)
            self._tail_start = closed.source.end + 1
            self._number, self._fence = None, None

    def _freeze(self, end: int) -> None:
        """Move blocks that new text can no longer change from the tail to `frozen`."""
        self._fence = None
        parsed = self._parse(self._text[self._tail_start : end])
        cut = _find_cut(parsed.tokens, self._number)
        if cut.line:
            self._tail_start = parsed.lines.start(cut.line)
            self._frozen += [
                block for block in parsed.blocks if block.source.start < self._tail_start
            ]
            self._number, self._table_head = cut.number, ""
        self._note_references(parsed.references, cut)
        self._fence = open_fence(parsed.tokens, cut.line, self._text, self._tail_start)
        if self._fence is None and self._is_tail_long(end):
            rest = [block for block in parsed.blocks if block.source.start >= self._tail_start]
            self._cut_at(end, rest)

    def _cut_off(self) -> None:
        """Freeze the whole tail, because it is too long to be parsed at every update."""
        text = self._text[self._tail_start :]
        # If the whole tail is one line that has only markup, no text decides its meaning in time.
        text = text[: _decided_len(text) or len(text)]
        self._cut_at(self._tail_start + len(text), self._parse(text).blocks)

    def _cut_at(self, end: int, blocks: Sequence[Block]) -> None:
        """Freeze the blocks of the tail. The tail then begins at the offset `end`.

        The cut divides the last block. Text after the cut does not belong to a list or quote before
        it, and a numbered list starts again at 1. Only a table is continued.
        """
        self._frozen += blocks
        last_lines = self._text[max(0, end - 2) : end]
        is_open = bool(blocks) and last_lines.endswith("\n") and last_lines != "\n\n"
        self._table_head = self._head_of(blocks[-1]) if is_open else ""
        self._tail_start, self._number = end, None

    def _head_of(self, block: Block) -> str:
        """Return the header and delimiter row of the table at the end of the tail, or ""."""
        if not isinstance(block, TableBlock) or block.frames:
            return ""
        if block.continues:
            return self._table_head
        end = self._text.index("\n", self._text.index("\n", block.source.start) + 1)
        return self._text[block.source.start : end + 1]

    def _note_references(self, found: Mapping[str, object], cut: _Cut) -> None:
        """Store the link definitions before the cut. Definitions after it will be parsed again.

        If a definition stands below a frozen block, finish() parses the whole text again, because
        the definition may turn labels in that block into links.
        """
        new = {label: found[label] for label in found if label not in self._references}
        self._late_references |= bool(new) and bool(self._frozen)
        for label, reference in new.items():
            assert isinstance(reference, dict)
            if reference["map"][1] <= cut.line:
                self._references[label] = reference


def num_marks(text: str) -> int:
    """Return the number of marks in a text. See MAX_MARKS."""
    return sum(map(text.count, _MARKS))


def _without_head(table: TableBlock, start: int) -> tuple[TableBlock, ...]:
    """Remove the header from a table that continues a cut table. Return () if no row is left."""
    rows = table.rows[1:]
    source = SourceRange(start, max(start, table.source.end))
    return (replace(table, rows=rows, source=source, continues=True),) if rows else ()


def _decided_len(text: str) -> int:
    """Return the length of the text to show. A last line that has only markup is left out."""
    last = text.rfind("\n") + 1
    return last if _UNDECIDED.match(text, last) else len(text)


def _find_cut(tokens: Sequence[Token], first_number: int | None) -> _Cut:
    """Return the line at which the tail begins: the start of the last top-level block or list item.

    If new lines cannot continue that block, the tail begins after it. The tail does not begin at an
    open formula directly below another block: if the formula never ends, it is text of that block.
    """
    cut, number, end = _Cut(0, None), None, -1
    for token in tokens:
        if token.map is None or token.nesting < 0:
            continue
        if token.level == 0:
            is_doubtful = token.info == formulas.OPEN and token.map[0] == end
            end = token.map[1]
            if is_doubtful:
                continue
            number = _list_number(token)
            # the list at the start of the tail may be the rest of a list whose first items are
            # frozen
            if cut.line == 0 and token.map[0] == 0 and number is not None:
                number = first_number or number
            cut = _Cut(token.map[1] if _is_final(token) else token.map[0], None)
        if token.level == 1 and token.type == "list_item_open":
            cut = _Cut(token.map[0], number)
            number = number + 1 if number is not None else None
    return cut


def _list_number(token: Token) -> int | None:
    return int(token.attrs.get("start", 1)) if token.type == "ordered_list_open" else None


def _is_final(token: Token) -> bool:
    match token.type:
        case "heading_open" | "hr":
            return True
        case formulas.BLOCK:
            return token.info != formulas.OPEN
        case _:
            return token.type == "fence" and is_closed(token)
