"""Clean-up of text that the user enters, and titles made from it. Pure functions."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

TITLE_LEN = 120
FILE_NAME_LEN = 200

_LINE_START = re.compile(r"^\s*(?:(?:#{1,6}|[>*+-]|\d{1,3}[.)])\s+|>)*")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_BOLD = re.compile(r"\*\*(\S|\S.*?\S)\*\*")
_EMPHASIS = re.compile(r"(?<!\w)\*(\S|\S.*?\S)\*(?!\w)")
# Number of characters that are searched for a title. Without a limit, a pasted line of a megabyte
# would take long.
_SEARCHED_LEN = 400
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_KEPT = "\n\t\u200c\u200d"  # characters that are not printable and harmless
# Invisible characters that belong to words and emoji: two joiners, and the tags of some flags.
_JOINING = frozenset("\u200c\u200d") | frozenset(map(chr, range(0xE0020, 0xE0080)))


def clean_text(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates, which UTF-8 and SQLite cannot store."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def harmless_text(text: str) -> str:
    """Return text in which each character that is not printable is U+FFFD.

    Such characters control a terminal, or hide letters and change their order. Line breaks, tabs,
    blanks of other widths, and the invisible characters that join letters and emoji are kept.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or _is_harmless(c) else _REPLACEMENT for c in text)


def _is_harmless(char: str) -> bool:
    return char in _KEPT or unicodedata.category(char) == "Zs"


def one_line(text: str, max_len: int) -> str:
    """Return a name on one line, cut to max_len characters.

    Replace each run of white space by one space, and remove invisible characters.
    """
    visible = _visible(" ".join(clean_text(text).split()))
    return " ".join(visible.split())[:max_len]


def file_label(path: Path) -> str:
    """Return the name of a file for sentences and labels."""
    return one_line(path.name, FILE_NAME_LEN)


def _visible(text: str) -> str:
    """Return text without control and format characters, or U+FFFD if it has no others.

    The format character U+202E shows the letters after it from right to left: in a name, an ending
    such as .exe then stands before another one.
    """
    if text.isprintable():
        return text
    shown = "".join(c for c in text if c in _JOINING or unicodedata.category(c) not in ("Cc", "Cf"))
    return shown if shown.strip() or not text.strip() else _REPLACEMENT


def message_text(text: str) -> str:
    """Return a user's message as it is stored: without blank lines at the start.

    Some tokenizers merge line breaks at the start of a message with the template's text before the
    message. Such a merge changes the token ids of the template's text, which the engine may have
    fed ahead already and would have to feed again.
    """
    text = clean_text(text)
    num_blanks = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, num_blanks) + 1 :]


def title_from(text: str) -> str:
    """Return the first line that has text, without Markdown, cut to TITLE_LEN characters."""
    lines = [_visible(line) for line in text.strip()[:_SEARCHED_LEN].splitlines()]
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
