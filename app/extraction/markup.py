"""The readable text of HTML and XHTML."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from typing_extensions import override

_HIDDEN = frozenset({"script", "style", "template", "noscript", "head", "svg", "math", "iframe"})
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "caption",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "html",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tr",
        "ul",
        "br",
    ]
)
_SPACED = frozenset(
    [
        "blockquote",
        "dl",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "ol",
        "p",
        "pre",
        "table",
        "ul",
        "section",
        "article",
    ]
)
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
# In preformatted text, blanks and line breaks are kept. These characters stand for them meanwhile.
_KEEP = str.maketrans(" \n", "\x01\x02")
_RESTORE = str.maketrans("\x01\x02", " \n")
_MANY_BREAKS = re.compile(r"\n{3,}")


class _TextParser(HTMLParser):
    """Collects the text that a page shows. Blocks begin on their own lines."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden: list[str] = []  # open elements whose text is not shown
        self._num_pre = 0

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
        elif tag == "body":
            self._hidden.clear()  # a page may leave out the end of its head
        if tag in _BLOCKS:
            self.parts.append("\n\n" if tag in _SPACED else "\n")
        self._num_pre += tag == "pre"
        if tag in _HEADINGS:
            self.parts.append(_HEADINGS[tag])
        elif tag == "li":
            self.parts.append("- ")
        elif tag in ("td", "th"):
            self.parts.append("\t")

    @override
    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _HIDDEN:
            super().handle_startendtag(tag, attrs)

    @override
    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        self._num_pre = max(0, self._num_pre - (tag == "pre"))
        if tag in _BLOCKS:
            self.parts.append("\n\n" if tag in _SPACED else "\n")

    @override
    def handle_data(self, data: str) -> None:
        if self._hidden:
            return
        if self._num_pre:
            self.parts.append(data.translate(_KEEP))
        else:
            self.parts.append(re.sub(r"\s+", " ", data))


def html_text(source: str) -> str:
    """Return the text that a page shows, without scripts, styles and comments."""
    parser = _TextParser()
    parser.feed(source)
    parser.close()
    lines = re.sub(r" {2,}", " ", "".join(parser.parts)).split("\n")
    text = "\n".join(line.strip(" \t") for line in lines)
    return _MANY_BREAKS.sub("\n\n", text).strip().translate(_RESTORE)
