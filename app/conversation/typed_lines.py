"""A rule for the Markdown parser that keeps the lines of a text as the user typed them.

Markdown drops the blanks at the beginning of a line. In a message that a person has typed, they are
meant.
"""

from __future__ import annotations

from collections.abc import Sequence

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

_BLANKS = " \t"


def keep_typed_lines(parser: MarkdownIt) -> None:
    """Turn each line end in a paragraph into a hard break. Its content is the indentation."""
    parser.inline.ruler.at("newline", _break)
    parser.add_render_rule("hardbreak", _render_break)


def _break(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 (the parser's interface)
    if state.src[state.pos] != "\n":
        return False
    start = end = state.pos + 1
    while end < state.posMax and state.src[end] in _BLANKS:
        end += 1
    if not silent:
        state.pending = state.pending.rstrip(" ")
        state.push("hardbreak", "br", 0).content = state.src[start:end]
    state.pos = end
    return True


def _render_break(
    _renderer: RendererProtocol,
    tokens: Sequence[Token],
    at: int,
    _options: OptionsDict,
    _env: EnvType,
) -> str:
    """Return HTML with blanks that a browser keeps."""
    return "<br>\n" + tokens[at].content.expandtabs(4).replace(" ", "&nbsp;")
