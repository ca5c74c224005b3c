r"""LaTeX in Markdown, as rules of markdown-it: `$x$`, `$$x$$`, `\(x\)`, `\[x\]`, `\begin{align}`. Pure.

A dollar is also money. Two are a formula only if no space touches them inside, no word or number outside
(stricter than Pandoc's `tex_math_dollars`). Code is never looked into.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

# Types of tokens. Their content is LaTeX; INLINE's markup is what stood before it.
INLINE = "formula"
BLOCK = "formula_block"
# A token of a block whose end has not come yet, in an environment where more text follows.
OPEN = "open"
GROWING = "growing"

_CLOSINGS = {"$$": "$$", "$": "$", r"\(": r"\)", r"\[": r"\]"}
_BLOCK_OPENINGS = ("$$", r"\[")
# Chinese sets no spaces, and $n$th is the ordinal of a formula.
_TOUCHES = re.compile("[0-9A-Za-z$]")
_GOES_ON = re.compile(r"(?!(?:st|nd|rd|th|s)(?![0-9A-Za-z]))[0-9A-Za-z$]")
_ENVIRONMENT = re.compile(r"\\begin\{((?:equation|align|alignat|gather|multline|flalign)\*?)\}")


def formula_rules(parser: MarkdownIt) -> None:
    """Let a parser know formulas."""
    interrupted = ["paragraph", "blockquote", "list", "reference"]
    parser.block.ruler.before("fence", BLOCK, _block, {"alt": interrupted})
    parser.inline.ruler.before("escape", INLINE, _inline)


def is_display(markup: str) -> bool:
    """Whether a formula that begins so is set large."""
    return markup not in {"$", r"\("}


def _inline(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - as markdown-it calls it
    source, start = state.src, state.pos
    opening = next((o for o in _CLOSINGS if source.startswith(o, start)), None)
    if opening is None:
        return False
    closing, first = _CLOSINGS[opening], start + len(opening)
    end = _find_closing(source, closing, first, state.posMax)
    if end is None:
        return False
    content, after = source[first:end], end + len(closing)
    if not content.strip() or "`" in content:
        return False
    if opening == "$" and not _is_formula(source, start, end):
        return False
    if not silent:
        token = state.push(INLINE, "", 0)
        token.content, token.markup = content.strip(), opening
    state.pos = after
    return True


def _is_formula(source: str, start: int, end: int) -> bool:
    """Whether what is between two dollars is no price: see above."""
    before = source[start - 1 : start]
    is_tight = not source[start + 1].isspace() and not source[end - 1].isspace()
    return is_tight and not _TOUCHES.match(before) and not _GOES_ON.match(source, end + 1)


def _find_closing(source: str, closing: str, start: int, stop: int) -> int | None:
    """Where the first one is that no backslash takes back."""
    at = source.find(closing, start, stop)
    while at >= 0:
        backslashes = at - len(source[start:at].rstrip("\\")) - start
        if backslashes % 2 == 0:
            return at
        at = source.find(closing, at + 1, stop)
    return None


def _block(state: StateBlock, first: int, last: int, silent: bool) -> bool:  # noqa: FBT001
    """A formula that begins a line and ends one, without an empty line between."""
    if state.is_code_block(first):
        return False
    opening, closing = _block_markup(_line(state, first))
    if not closing:
        return False
    end = _closing_line(state, opening, closing, first, last)
    if end is None:
        return False
    if silent:
        return True
    token = state.push(BLOCK, "", 0)
    is_open = end == last
    state.line = last if is_open else end + 1
    token.map = [first, state.line]
    token.info = OPEN if is_open else ""
    text = state.getLines(first, state.line, state.sCount[first], False).strip()
    token.content = text if is_open or not opening else text[len(opening) : -len(closing)].strip()
    return True


def _block_markup(line: str) -> tuple[str, str]:
    """What stands before a formula (nothing before an environment, which is part of it) and ends it."""
    if (environment := _ENVIRONMENT.match(line)) is not None:
        return "", rf"\end{{{environment[1]}}}"
    opening = next((o for o in _BLOCK_OPENINGS if line.startswith(o)), "")
    return opening, _CLOSINGS[opening] if opening else ""


def _closing_line(
    state: StateBlock, opening: str, closing: str, first: int, last: int
) -> int | None:
    """The line that ends a formula; `last` if it may still come; None if this is none."""
    for number in range(first, last):
        line = _line(state, number)
        if not line or state.sCount[number] < state.blkIndent:
            return None
        content = line[len(opening) :] if number == first else line
        at = _find_closing(content, closing, 0, len(content))
        if at is not None:
            is_whole = at + len(closing) == len(content) and (
                number > first or content[:at].strip()
            )
            return number if is_whole else None
    is_end_of_text = last == len(state.bMarks) - 1
    return last if state.env.get(GROWING) and is_end_of_text else None


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()
