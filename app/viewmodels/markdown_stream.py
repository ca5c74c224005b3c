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
texts: a tail of more than MAX_BLOCK characters was cut, or a link definition came late in a text of
more than MAX_REPARSE characters.

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
from app.viewmodels.blocks import Block, CodeBlock, SourceRange
from app.viewmodels.markdown import (
    Lines,
    is_closed,
    normalized,
    read_blocks,
    read_code,
)

# In characters. finish() does not parse a longer text again, so its link definitions do not apply
# to frozen blocks.
MAX_REPARSE = 200_000
# In characters. A longer tail is frozen at once, because parsing it at every update would be too
# slow. An open code fence is an exception: it is not parsed again.
MAX_BLOCK = 50_000

# Matches a last line that has only markup. It is not shown yet, because the text that follows
# decides its meaning.
_UNDECIDED = re.compile(r"[ \t]*(?:\d{1,9}[.)]?|[-+*=_#>`~|: \t])*$")
_FENCE = re.compile(r"(`{3,}|~{3,})[^\n]*\n")


@dataclass(frozen=True, slots=True)
class _OpenFence:
    """A top-level code fence whose closing line has not arrived."""

    block: CodeBlock  # block as parsed when the fence was found; its text is outdated
    content: int  # offset of the first character of code
    marker: str  # character of the fence: "`" or "~"
    closing: re.Pattern[str]  # pattern for the closing line


@dataclass(frozen=True, slots=True)
class _Cut:
    """The line at which the tail begins."""

    line: int  # index of the line in the parsed text
    number: int | None  # number of the list item on that line, if it is in an ordered list


class MarkdownStream:
    """The blocks of a Markdown text that is appended piece by piece.

    `frozen` blocks never change before finish(). `tail` blocks may change with every append.
    Streams may share one parser, because it keeps no state between parses.
    """

    def __init__(self, parser: MarkdownIt) -> None:
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
        self._references: dict[str, object] = {}  # link definitions before the tail, by label
        self._late_references = False  # True if a link definition came after frozen blocks
        self._fence: _OpenFence | None = None  # the open fence, if the tail is one
        self._finished = False

    @property
    def text(self) -> str:
        """The text so far, normalised. Source ranges of blocks refer to this text."""
        return self._text

    @property
    def num_frozen(self) -> int:
        return len(self._frozen)

    @property
    def frozen(self) -> list[Block]:
        """Final blocks. The list grows only at its end, but finish() may replace it."""
        return self._frozen

    @property
    def tail(self) -> tuple[Block, ...]:
        """Blocks after the frozen ones. They are parsed on access, not at every append."""
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

    def finish(self) -> None:
        """End the text: show its last line, close its blocks and apply late link definitions.

        Call it once; append_text() is not allowed after it. If a link definition came after frozen
        blocks, parse the whole text again: `frozen` becomes empty and `tail` has all blocks.
        """
        if self._held:
            self._add(self._held)
            self._held = ""
        self._finished = True
        self._tail = self._parse_tail()
        if self._late_references and len(self._text) <= MAX_REPARSE:
            self._frozen, self._tail_start, self._number = [], 0, None
            self._references, self._fence = {}, None
            self._tail = self._parse_tail()

    def _add(self, text: str) -> None:
        """Append text that does not end between CR and LF, and freeze what has become final."""
        self._text += normalized(text)
        self._tail = None
        end = self._text.rfind("\n") + 1
        if end > self._seen:
            if self._fence is not None:
                self._close_fence(self._fence, end)
            if self._fence is None:
                self._freeze(end)
            self._seen = end
        if self._fence is None and len(self._text) - self._tail_start > MAX_BLOCK:
            self._cut_off()

    def _parse_tail(self) -> tuple[Block, ...]:
        """Return the blocks of the tail. Before finish(), leave out an undecided last line."""
        if self._fence is not None:
            return (self._fence_block(self._fence),)
        text = self._text[self._tail_start :]
        if not self._finished:
            text = text[: _decided_len(text)]
        environment = self._environment()
        tokens = self._parser.parse(text, environment)
        if self._finished:
            # finish() needs to know whether the tail has late link definitions. A cut at line 0
            # stores none of them.
            self._note_references(environment["references"], _Cut(0, None))
        return read_blocks(tokens, Lines(text, self._tail_start), first_number=self._number)

    def _fence_block(self, fence: _OpenFence) -> CodeBlock:
        """Return the open fence as a block.

        If the last line may become the closing line, the block does not include it.
        """
        end = len(self._text)
        last = self._text.rfind("\n") + 1
        line = self._text[last:]
        if self._finished and line and fence.closing.fullmatch(line):
            return self._code(fence, last, end, closed=True)
        if self._finished and not line.strip(" \t"):
            return self._code(fence, last, max(last - 1, self._tail_start), closed=False)
        is_undecided = not self._finished and not line.strip(fence.marker + " ")
        return self._code(fence, last if is_undecided else end, end, closed=False)

    def _close_fence(self, fence: _OpenFence, end: int) -> None:
        """Look for the closing line in the new complete lines. If it is there, freeze the fence."""
        start = self._seen
        while start < end:
            line_end = self._text.index("\n", start)
            if fence.closing.fullmatch(self._text, start, line_end):
                self._frozen.append(self._code(fence, start, line_end, closed=True))
                self._tail_start = line_end + 1
                self._number, self._fence = None, None
                return
            start = line_end + 1

    def _code(self, fence: _OpenFence, content_end: int, end: int, *, closed: bool) -> CodeBlock:
        return replace(
            fence.block,
            text=self._text[fence.content : content_end].removesuffix("\n"),
            source=SourceRange(self._tail_start, end),
            closed=closed,
        )

    def _freeze(self, end: int) -> None:
        """Freeze the blocks of the tail that new text can no longer change."""
        self._fence = None
        start = self._tail_start
        text = self._text[start:end]
        environment = self._environment()
        tokens = self._parser.parse(text, environment)
        lines = Lines(text, start)
        cut = _find_cut(tokens, self._number)
        if cut.line:
            self._tail_start = lines.start(cut.line)
            blocks = read_blocks(tokens, lines, first_number=self._number)
            self._frozen += [block for block in blocks if block.source.start < self._tail_start]
            self._number = cut.number
        self._note_references(environment["references"], cut)
        self._fence = self._open_fence(tokens, cut)

    def _cut_off(self) -> None:
        """Freeze the whole tail, because it is too long to be parsed at every update.

        This cuts the last block in two. If it is a list or a quote, the text after the cut is no
        longer part of it, and a numbered list loses its count.
        """
        self._frozen += self._parse_tail()
        self._tail_start += _decided_len(self._text[self._tail_start :])
        self._number = None

    def _environment(self) -> dict[str, Any]:
        # A formula without closing delimiter is a block of its own while text may follow (GROWING).
        return {"references": dict(self._references), formulas.GROWING: not self._finished}

    def _note_references(self, found: Mapping[str, object], cut: _Cut) -> None:
        """Store the link definitions before the cut. Definitions after it will be parsed again.

        If a definition comes after frozen blocks, finish() parses the whole text again, because the
        definition may turn labels in those blocks into links.
        """
        new = {label: found[label] for label in found if label not in self._references}
        self._late_references |= bool(new) and bool(self._frozen)
        for label, reference in new.items():
            assert isinstance(reference, dict)
            if reference["map"][1] <= cut.line:
                self._references[label] = reference

    def _open_fence(self, tokens: Sequence[Token], cut: _Cut) -> _OpenFence | None:
        """Return the open fence if the tail is an open top-level fence, otherwise None."""
        # An indented fence does not match. Such a tail is parsed again like any other one.
        opening = _FENCE.match(self._text, self._tail_start)
        token = tokens[-1] if tokens else None
        if opening is None or token is None or token.type != "fence" or token.level != 0:
            return None
        if token.map is None or token.map[0] != cut.line:
            return None
        block = read_code(token, SourceRange(self._tail_start, len(self._text)))
        marker = opening[1]
        closing = re.compile(rf" {{0,3}}{re.escape(marker)}{re.escape(marker[0])}*[ \t]*")
        return _OpenFence(block, opening.end(), marker[0], closing)


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
            # a list at the start of the tail may continue a list with frozen items
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
