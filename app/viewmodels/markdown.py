"""Markdown parser: CommonMark, tables, strikethrough, task lists and formulas. No Qt, no I/O.

markdown-it makes tokens. This module converts them to a flat sequence of blocks (blocks.py). Raw
HTML stays text, but for a <br> in a table, which has no other line break. Each line end in a
paragraph is a line break, as in a poem. Images become links to their address, so that nothing is
fetched from the network. Loose and tight lists give the same blocks. So the layout of a list does
not change when a blank line arrives between its items.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, takewhile

from markdown_it import MarkdownIt
from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token

from app.conversation.typed_lines import keep_typed_lines
from app.viewmodels import formulas
from app.viewmodels.blocks import (
    LINE_BREAK,
    Align,
    Block,
    Cell,
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
from app.viewmodels.table_rule import limit_tables

_BLANKS = re.compile(r"[ \t\n\r\f]+")
_TASK = re.compile(r"\[([ xX])\](?:\s+|$)")
_MARKS = {"strong": TextMark.BOLD, "em": TextMark.ITALIC, "s": TextMark.STRIKE}
_BREAKS = {"<br>", "<br/>"}  # without blanks
_ALIGNS = {f"text-align:{align}": align for align in Align}


def make_parser() -> MarkdownIt:
    """Create a markdown-it parser with our rules. The parser keeps no state between parses."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    return parser.use(limit_tables).use(formulas.formula_rules)


def make_typed_parser() -> MarkdownIt:
    """Create a parser for the messages of the user, whose lines stay as they were typed."""
    return make_parser().use(keep_typed_lines)


def normalized(text: str) -> str:
    """Normalise text for the parser: convert line ends to LF, and NUL to U+FFFD."""
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def parse_markdown(text: str) -> tuple[Block, ...]:
    """Parse a complete text. Source ranges of the blocks refer to normalized(text)."""
    text = normalized(text)
    return read_blocks(make_parser().parse(text), Lines(text))


class Lines:
    """The offset of the start of each line, counted from the start of the whole Markdown source.

    `text` can be a part of the source; `base` is the offset of that part.
    """

    def __init__(self, text: str, base: int = 0) -> None:
        self._starts = [base]
        self._starts += [base + match.end() for match in re.finditer("\n", text)]
        self._end = base + len(text)

    def start(self, line: int) -> int:
        return self._starts[line] if line < len(self._starts) else self._end

    def source(self, lines: Sequence[int] | None) -> SourceRange:
        """Return the source range of lines [first, end), without the newline at its end."""
        if lines is None:
            return SourceRange(self._end, self._end)
        start, end = self.start(lines[0]), self.start(lines[1])
        at_line_start = lines[1] < len(self._starts)
        return SourceRange(start, max(start, end - 1 if at_line_start else end))


def read_blocks(
    tokens: Sequence[Token], lines: Lines, *, first_number: int | None = None
) -> tuple[Block, ...]:
    """Convert parser tokens to blocks.

    If the tokens begin with an ordered list, its first item gets the number `first_number`.
    MarkdownStream sets `first_number` when it parses the rest of a list without the earlier items.
    """
    return tuple(_Reader(tokens, lines, first_number).blocks())


@dataclass(slots=True, eq=False)
class _Container:
    """A quote, list or list item that is open at the current token."""

    frame: Container | None  # None for a list, because only quotes and list items are frames
    source: SourceRange
    number: int | None = None  # for an ordered list: number of its next item
    empty: bool = True  # True until the first block is placed in the container


class _Reader:
    """A single-use converter from tokens to blocks: blocks() yields the blocks."""

    def __init__(self, tokens: Sequence[Token], lines: Lines, first_number: int | None) -> None:
        self._tokens = tokens
        self._lines = lines
        self._first_number = first_number
        self._open: list[_Container] = []
        self._last: list[_Container] = []  # quotes and list items around the previous block

    def blocks(self) -> Iterator[Block]:
        at = 0
        while at < len(self._tokens):
            token = self._tokens[at]
            if token.type == "table_open":
                end = self._closing(at)
                yield self._placed(self._table(at, end))
                at = end
            else:
                yield from self._block(token, at)
            at += 1

    def _block(self, token: Token, at: int) -> Iterator[Block]:
        match token.type:
            case "blockquote_open":
                source = self._lines.source(token.map)
                self._open.append(_Container(Container(FrameKind.QUOTE, opens=True), source))
            case "bullet_list_open" | "ordered_list_open":
                self._open.append(self._list(token))
            case "list_item_open":
                self._open.append(self._item(token))
            case "list_item_close" | "blockquote_close":
                if self._open[-1].empty:
                    yield self._placed(TextBlock(source=self._open[-1].source, spans=()))
                self._open.pop()
            case "bullet_list_close" | "ordered_list_close":
                self._open.pop()
            case _:
                block = self._leaf(token, at)
                if block is not None:
                    yield self._placed(block)

    def _leaf(self, token: Token, at: int) -> Block | None:
        source = self._lines.source(token.map)
        match token.type:
            case "paragraph_open" | "heading_open":
                return self._text(token, at, source)
            case "html_block":
                return TextBlock(source=source, spans=_verbatim(token.content))
            case formulas.BLOCK:
                return read_formula(token, source)
            case "fence" | "code_block":
                return read_code(token, source)
            case "hr":
                return RuleBlock(source=source)
            case _:
                return None

    def _text(self, token: Token, at: int, source: SourceRange) -> TextBlock:
        spans = _spans(self._tokens[at + 1].children or ())
        if token.type == "heading_open":
            return TextBlock(source=source, spans=spans, level=int(token.tag[1:]))
        return TextBlock(source=source, spans=self._without_task(spans))

    def _list(self, token: Token) -> _Container:
        source = self._lines.source(token.map)
        if token.type == "bullet_list_open":
            return _Container(None, source)
        number = int(token.attrs.get("start", 1))
        if self._first_number is not None and token is self._tokens[0]:
            number = self._first_number
        return _Container(None, source, number)

    def _item(self, token: Token) -> _Container:
        parent, source = self._open[-1], self._lines.source(token.map)
        if parent.number is None:
            return _Container(Container(FrameKind.BULLET, opens=True), source)
        frame = Container(FrameKind.NUMBER, opens=True, number=parent.number)
        parent.number += 1
        return _Container(frame, source)

    def _without_task(self, spans: tuple[TextSpan, ...]) -> tuple[TextSpan, ...]:
        """Remove "[x] " or "[ ] " from the start of a list item. Mark the item as a task item.

        Return the spans of the item without the check box. An item without a check box is
        unchanged.
        """
        item = self._open[-1] if self._open else None
        if item is None or not item.empty or item.frame is None or not spans:
            return spans
        box = _TASK.match(spans[0].text)
        if box is None or item.frame.kind is FrameKind.QUOTE or spans[0].marks or spans[0].link:
            return spans
        item.frame = Container(FrameKind.TASK, opens=True, checked=box[1] != " ")
        rest = spans[0].text[box.end() :]
        return (TextSpan(rest), *spans[1:]) if rest else spans[1:]

    def _table(self, start: int, end: int) -> TableBlock:
        rows: list[tuple[Cell, ...]] = []
        aligns: list[Align] = []
        row: list[Cell] = []
        for at in range(start, end):
            token = self._tokens[at]
            if token.type in {"th_open", "td_open"}:
                row.append(Cell(_spans(_with_breaks(self._tokens[at + 1].children or ()))))
                if token.type == "th_open":
                    aligns.append(_ALIGNS.get(str(token.attrs.get("style")), Align.LEFT))
            elif token.type == "tr_close":
                rows.append(tuple(row))
                row = []
        source = self._lines.source(self._tokens[start].map)
        return TableBlock(source=source, aligns=tuple(aligns), rows=tuple(rows))

    def _closing(self, at: int) -> int:
        """Return the index of the closing token for the opening token with index `at`."""
        level = self._tokens[at].level
        while self._tokens[at].nesting != -1 or self._tokens[at].level != level:
            at += 1
        return at

    def _placed(self, block: Block) -> Block:
        """Add frames to a block: one for each quote and list item that is open."""
        framed = [container for container in self._open if container.frame is not None]
        joined = sum(
            1
            for _ in takewhile(
                lambda pair: pair[0] is pair[1], zip(framed, self._last, strict=False)
            )
        )
        frames = tuple(
            replace(container.frame, opens=container.empty)
            for container in framed
            if container.frame is not None
        )
        for container in self._open:
            container.empty = False
        self._last = framed
        return replace(block, frames=frames, joined=joined)


def read_code(token: Token, source: SourceRange) -> CodeBlock:
    """Convert the token of a fenced or indented code block to a CodeBlock."""
    words = unescapeAll(token.info).split(maxsplit=1)
    text = token.content.removesuffix("\n")
    language = words[0] if words else ""
    return CodeBlock(source=source, language=language, text=text, closed=is_closed(token))


def read_formula(token: Token, source: SourceRange) -> Block:
    """Convert a formula token. If its closing delimiter is missing, return its source as text."""
    if token.info == formulas.OPEN:
        return TextBlock(source=source, spans=_verbatim(token.content))
    return FormulaBlock(source=source, latex=token.content)


def is_closed(token: Token) -> bool:
    """Return True if a code block is complete: indented, or fenced with a closing line."""
    if token.type == "code_block" or token.map is None:
        return True
    content = token.content
    num_content_lines = content.count("\n") + (bool(content) and not content.endswith("\n"))
    return token.map[1] - token.map[0] == num_content_lines + 2


def _verbatim(text: str) -> tuple[TextSpan, ...]:
    return (TextSpan(text.strip("\n").replace("\n", LINE_BREAK)),)


def _with_breaks(children: Sequence[Token]) -> list[Token]:
    """Replace the <br> tags of a table cell by line breaks. A new line begins without a blank."""
    tokens: list[Token] = []
    for token in children:
        if token.type == "html_inline" and token.content.lower().replace(" ", "") in _BREAKS:
            tokens.append(Token("hardbreak", "br", 0))
        elif token.type == "text" and tokens and tokens[-1].type == "hardbreak":
            tokens.append(token.copy(content=token.content.lstrip()))
        else:
            tokens.append(token)
    return tokens


def _spans(children: Sequence[Token]) -> tuple[TextSpan, ...]:
    """Convert inline tokens to spans. Merge adjacent spans with the same format and link."""
    shown = (span for span in _token_spans(children) if span.text)
    return tuple(
        TextSpan("".join(span.text for span in alike), marks, link)
        for (marks, link, _), alike in groupby(shown, _look)
    )


def _token_spans(children: Sequence[Token]) -> Iterator[TextSpan]:
    """Yield a span for each inline token that has text."""
    marks = TextMark.NONE
    links: list[str] = []
    for token in children:
        kind = token.type.rpartition("_")[0]
        if kind in _MARKS:
            marks = marks | _MARKS[kind] if token.nesting == 1 else marks & ~_MARKS[kind]
        elif token.type == "link_open":
            links.append(str(token.attrs.get("href", "")))
        elif token.type == "link_close":
            links.pop()
        else:
            yield _inline(token, marks, links[-1] if links else "")


def _look(span: TextSpan) -> tuple[TextMark, str, object]:
    """Return a key: adjacent spans with equal keys can be merged. A formula's key is unique."""
    return span.marks, span.link, object() if TextMark.FORMULA in span.marks else None


def _inline(token: Token, marks: TextMark, link: str) -> TextSpan:
    match token.type:
        case "softbreak" | "hardbreak":
            # The content is the indentation of the new line (keep_typed_lines), else empty.
            return TextSpan(LINE_BREAK + token.content, marks, link)
        case "code_inline":
            return TextSpan(token.content, marks | TextMark.CODE, link)
        case formulas.INLINE:
            size = TextMark.DISPLAY if formulas.is_display(token.markup) else TextMark.NONE
            return TextSpan(token.content, marks | TextMark.FORMULA | size, link)
        case "image":
            address = str(token.attrs.get("src", ""))
            label = "".join(span.text for span in _token_spans(token.children or ()))
            return TextSpan(label or address, marks, link or address)
        case _:
            # Collapse white space, as a browser does. The text can have line ends, from entities
            # or from HTML tags.
            return TextSpan(_BLANKS.sub(" ", token.content), marks, link)
