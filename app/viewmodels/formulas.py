r"""markdown-it rules for LaTeX formulas: `$x$`, `$$x$$`, `\(x\)`, `\[x\]`, `\begin{align}`.

A dollar sign can also mean money. Two single dollar signs enclose a formula only if there is no
white space directly inside them, and no letter, digit or dollar sign directly outside. This rule is
stricter than Pandoc's `tex_math_dollars`. Text inside code is never a formula.
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline

# The two types of formula token. token.content is the LaTeX source. For an INLINE token,
# token.markup is the opening delimiter, such as "$".
INLINE = "formula"
BLOCK = "formula_block"
OPEN = "open"  # token.info of a BLOCK token if its closing delimiter has not arrived yet
GROWING = "growing"  # key in the parser's environment; its value is True while text may follow

# Key in the parser's environment while text may follow. Its value is the last text, or None if
# something stands behind that. A dollar at the end of the last text may be money: $5/$ becomes
# $5/$6.
_LAST = "last"
_CLOSINGS = {"$$": "$$", "$": "$", r"\(": r"\)", r"\[": r"\]"}
# Largest number of lines of a block formula. Without a limit, each line of a text of
# `\begin{align}` would be compared with all later lines.
_MAX_LINES = 100
_BLOCK_OPENINGS = ("$$", r"\[")
# A dollar sign next to an ASCII letter or digit means money. Chinese characters are allowed next to
# a formula, because Chinese text has no spaces between words. The suffixes in $n$th and $n$s are
# allowed too.
_TOUCHES = re.compile("[0-9A-Za-z$]")
_GOES_ON = re.compile(r"(?!(?:st|nd|rd|th|s)(?![0-9A-Za-z]))[0-9A-Za-z$]")
_ENVIRONMENT = re.compile(r"\\begin\{((?:equation|align|alignat|gather|multline|flalign)\*?)\}")


def formula_rules(parser: MarkdownIt) -> None:
    """Add the inline rule and the block rule for formulas to a parser."""
    interrupted = ["paragraph", "blockquote", "list", "reference"]
    parser.block.ruler.before("fence", BLOCK, _block, {"alt": interrupted})
    parser.inline.ruler.before("escape", INLINE, _inline)
    parser.core.ruler.before("inline", _LAST, _note_last)


def is_display(markup: str) -> bool:
    """Return True if this opening delimiter means display style (large), False for inline style."""
    return markup not in {"$", r"\("}


def _note_last(state: StateCore) -> None:
    if state.env.get(GROWING):
        texts = [token.content for token in state.tokens if token.type == "inline"]
        state.env[_LAST] = texts[-1] if texts and state.src.endswith(texts[-1]) else None


def _inline(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - markdown-it's signature
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
    if opening == "$" and not (_is_formula(source, start, end) and _is_known(state, after)):
        return False
    if not silent:
        token = state.push(INLINE, "", 0)
        token.content, token.markup = content.strip(), opening
    state.pos = after
    return True


def _is_formula(source: str, start: int, end: int) -> bool:
    """Return True if two single dollar signs enclose a formula, False if they mean money."""
    before = source[start - 1 : start]
    is_tight = not source[start + 1].isspace() and not source[end - 1].isspace()
    return is_tight and not _TOUCHES.match(before) and not _GOES_ON.match(source, end + 1)


def _is_known(state: StateInline, after: int) -> bool:
    """Return True if the text behind a formula is known. At the end of growing text it is not."""
    return after < len(state.src) or state.env.get(_LAST) != state.src


def _find_closing(source: str, closing: str, start: int, stop: int) -> int | None:
    """Return the offset of the first closing delimiter without a backslash escape, or None."""
    at = source.find(closing, start, stop)
    while at >= 0:
        backslashes = at - len(source[start:at].rstrip("\\")) - start
        if backslashes % 2 == 0:
            return at
        at = source.find(closing, at + 1, stop)
    return None


def _block(state: StateBlock, first: int, last: int, silent: bool) -> bool:  # noqa: FBT001
    """Parse a block formula (a markdown-it block rule).

    The formula must begin at the start of a line, end at the end of a line, and have no empty line.
    """
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
    r"""Return the opening and closing delimiters of a formula at the start of a line.

    Both are empty if there is no formula. For an environment only the opening delimiter is empty,
    because \begin is part of the LaTeX source.
    """
    if (environment := _ENVIRONMENT.match(line)) is not None:
        return "", rf"\end{{{environment[1]}}}"
    opening = next((o for o in _BLOCK_OPENINGS if line.startswith(o)), "")
    return opening, _CLOSINGS[opening] if opening else ""


def _closing_line(
    state: StateBlock, opening: str, closing: str, first: int, last: int
) -> int | None:
    """Return the index of the formula's last line, or None if the text is not a formula.

    Return `last` if the closing delimiter is missing but more text may follow.
    """
    for number in range(first, min(last, first + _MAX_LINES)):
        line = _line(state, number)
        if not line or state.sCount[number] < state.blkIndent:
            return None
        content = line[len(opening) :] if number == first else line
        at = _find_closing(content, closing, 0, len(content))
        if at is not None:
            is_whole = at + len(closing) == len(content) and (
                number > first or content[:at].strip()
            )
            if not is_whole:
                return None
            # Text may follow on the line, and make the formula a part of a paragraph.
            return last if number == last - 1 and _is_growing_line(state, last) else number
    is_end_of_text = last == len(state.bMarks) - 1 and last - first <= _MAX_LINES
    return last if state.env.get(GROWING) and is_end_of_text else None


def _is_growing_line(state: StateBlock, last: int) -> bool:
    is_end_of_text = last == len(state.bMarks) - 1
    return bool(state.env.get(GROWING)) and is_end_of_text and not state.src.endswith("\n")


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()
