"""Text that comes from a person: made storable, and shortened to a title.

Pure functions.
"""

from __future__ import annotations

import re

TITLE_LEN = 120

_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")
_LINE_START = re.compile(r"^\s*(?:(?:#{1,6}|[>*+-]|\d{1,3}[.)])\s+|>)*")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_BOLD = re.compile(r"\*\*(\S|\S.*?\S)\*\*")
_EMPHASIS = re.compile(r"(?<!\w)\*(\S|\S.*?\S)\*(?!\w)")
# A first line is cut here before it is searched, so that a pasted megabyte costs nothing.
_SEARCHED_LEN = 400


def clean_text(text: str) -> str:
    """The text with halves of surrogate pairs joined or replaced: neither UTF-8 nor SQLite takes them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def one_line(text: str, max_len: int) -> str:
    """A name that a person gave, as it is kept; empty if there is none in it."""
    return " ".join(clean_text(text).split())[:max_len]


def message_text(text: str) -> str:
    """What a person typed as it is kept: without blank lines in front.

    They say nothing, but some tokenizers join them with what stands before the
    message, and then nothing that was read for it in advance would fit.
    """
    return _BLANK_LINES.sub("", clean_text(text))


def title_from(text: str) -> str:
    """The first line that says something, without Markdown, at most TITLE_LEN characters."""
    lines = text.strip()[:_SEARCHED_LEN].splitlines()
    titles = (_without_markdown(line) for line in lines if not line.lstrip().startswith("```"))
    return _shorten(next(filter(None, titles), " ".join(lines)))


def _without_markdown(line: str) -> str:
    line = _LINE_START.sub("", line, count=1)
    for pattern in (_LINK, _BOLD, _EMPHASIS):
        line = pattern.sub(r"\1", line)
    return " ".join(line.replace("`", "").split())


def _shorten(title: str) -> str:
    if len(title) <= TITLE_LEN:
        return title
    cut = title[: TITLE_LEN - 1]
    at_word = cut.rpartition(" ")[0]
    return (at_word if len(at_word) > TITLE_LEN // 2 else cut).rstrip(" ,;:.-") + "…"
