"""Converts HTML to a tree of its visible blocks, to compare with the app's own blocks.

The Markdown specifications give HTML for each example. The reader handles all elements that
Markdown produces, and is independent of the app's parser. Outside code blocks each line end is a
line break, as CommonMark allows for soft line breaks. Other white space is treated as in a browser:
a run of it becomes one space, and it is removed at the ends of a line. An image becomes its
description, or its address if it has no description: the app does the same, because it fetches no
images. A column without alignment is aligned left.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

from typing_extensions import override

from tests.conformance.shape import ShapeNode, add_item

Attributes = dict[str, str | None]

_HEADINGS = {f"h{level}" for level in range(1, 7)}
_LOOKS = {"em", "strong", "a", "del", "code"}
_VOID = {"br", "img", "input", "hr"}
_GROUPS = {"thead", "tbody"}
_BLANKS = re.compile(r"[ \t\r\f]+")


def shape_of_html(html: str) -> ShapeNode:
    """Return the tree of blocks of an HTML text.

    Raise ValueError if the text has an element that Markdown never produces.
    """
    reader = _HtmlReader()
    reader.feed(html)
    reader.close()
    reader.end_text()
    return reader.root


class _HtmlReader(HTMLParser):
    """An HTML parser that builds a tree of blocks while elements open and close."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = ShapeNode("text")
        self._open = [self.root]
        self._lists: list[tuple[bool, int]] = []  # open lists: (True if ordered, first number)
        self._is_new_list = False  # True until the list that was opened last has an item
        self._text: list[str] = []

    def end_text(self) -> None:
        """Add the text read so far to the open paragraph or heading, or to a new paragraph."""
        node = self._open[-1]
        raw = "".join(self._text)
        self._text = []
        if node.kind.startswith("code"):
            node.text = raw.removesuffix("\n")
            return
        text = raw.replace("\0\n", "\n").replace("\0", "\n").strip("\n")
        text = "\n".join(_BLANKS.sub(" ", line).strip(" ") for line in text.split("\n"))
        if _is_leaf(node):
            node.text = text
        elif text:
            node.children.append(ShapeNode("p", text))

    @override
    def handle_data(self, data: str) -> None:
        self._text.append(data)

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag in _LOOKS or tag in _VOID - {"hr"}:
            self._inline(tag, attributes)
            return
        self.end_text()
        match tag:
            case "ul" | "ol":
                self._lists.append((tag == "ol", int(attributes.get("start") or 1)))
                self._is_new_list = True
            case "li":
                self._item()
            case "hr":
                self._open[-1].children.append(ShapeNode("rule"))
            case _ if tag not in _GROUPS:
                self._begin(ShapeNode(_kind(tag, attributes)))
            case _:
                pass

    @override
    def handle_endtag(self, tag: str) -> None:
        if tag in _LOOKS or tag in _VOID:
            return
        self.end_text()
        if tag in {"ul", "ol"}:
            self._lists.pop()
            self._is_new_list = False
        elif tag not in _GROUPS:
            self._open.pop()

    def _inline(self, tag: str, attributes: Attributes) -> None:
        match tag:
            case "br":
                self._text.append("\0")
            case "img":
                self._text.append(attributes.get("alt") or attributes.get("src") or "")
            case "input":
                self._open[-1].kind = "li [x]" if "checked" in attributes else "li [ ]"
            case "code" if self._open[-1].kind == "pre":
                language = (attributes.get("class") or "").removeprefix("language-")
                self._open[-1].kind = f"code {language}".strip()
            case _:
                pass

    def _item(self) -> None:
        is_ordered, number = self._lists[-1]
        item = ShapeNode("li")
        first = number if is_ordered else None
        add_item(self._open[-1], item, first, begins_list=self._is_new_list)
        self._is_new_list = False
        self._open.append(item)

    def _begin(self, node: ShapeNode) -> None:
        self._open[-1].children.append(node)
        self._open.append(node)


def _is_leaf(node: ShapeNode) -> bool:
    return node.kind == "p" or node.kind in _HEADINGS or node.kind[:3] in {"th ", "td "}


def _kind(tag: str, attributes: Attributes) -> str:
    if tag in {"p", "pre", "table", "tr"} or tag in _HEADINGS:
        return tag
    if tag in {"th", "td"}:
        return f"{tag} {attributes.get('align') or 'left'}"
    if tag == "blockquote":
        return "quote"
    raise ValueError(f"<{tag}> is none of Markdown's elements")
