"""The examples of a Markdown specification, read from its spec.txt."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

_FENCE = "`" * 32
_EXAMPLE = re.compile(
    rf"^{_FENCE} example[^\n]*\n(?P<markdown>.*?)^\.\n(?P<html>.*?)^{_FENCE}$"
    r"|^#{1,6} +(?P<section>[^\n]+)$",
    re.DOTALL | re.MULTILINE,
)
_TITLE = re.compile(
    r"^title: (?P<title>.+?)(?: Spec)?$.*?^version: '?(?P<version>[^'\n]+)",
    re.MULTILINE | re.DOTALL,
)
_TAB = "\u2192"  # the character that stands for a tab in spec.txt
_REFERENCE = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@dataclass(frozen=True, slots=True)
class Example:
    """An example of a specification.

    `number` counts from 1 through all sections of the file, as on the published page.
    """

    number: int
    section: str
    markdown: str
    html: str

    @property
    def has_raw_html(self) -> bool:
        """True if the reference parser finds an HTML tag or an HTML block in the example."""
        tokens = _REFERENCE.parse(self.markdown)
        inline = [child for token in tokens for child in token.children or ()]
        return any(token.type in {"html_block", "html_inline"} for token in (*tokens, *inline))


@dataclass(frozen=True, slots=True)
class Specification:
    """The contents of a spec.txt. `edition` is the title and version of the specification."""

    edition: str
    examples: tuple[Example, ...]


def read_specification(path: Path) -> Specification:
    """Read a spec.txt. Raise ValueError if the file is not a specification."""
    text = path.read_text(encoding="utf-8")
    title = _TITLE.search(text)
    examples = tuple(_examples(text))
    if title is None or not examples:
        raise ValueError(f"{path} is no spec.txt")
    return Specification(f"{title['title']} {title['version']}", examples)


def _examples(text: str) -> Iterator[Example]:
    number, section = 0, ""
    for match in _EXAMPLE.finditer(text):
        if match["section"] is not None:
            section = match["section"]
        else:
            number += 1
            markdown, html = (match[name].replace(_TAB, "\t") for name in ("markdown", "html"))
            yield Example(number, section, markdown, html)
