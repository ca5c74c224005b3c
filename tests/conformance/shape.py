"""Converts Markdown to a tree of visible blocks, as the app's parser sees them.

The module html_reader makes such a tree from HTML, so that both trees can be compared. Adjacent
items form a list if they all have bullets, or if each number is one more than the number before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from app.viewmodels.blocks import (
    LINE_BREAK,
    Block,
    CodeBlock,
    Container,
    FormulaBlock,
    FrameKind,
    RuleBlock,
    TableBlock,
    TextBlock,
)
from app.viewmodels.markdown import parse_markdown


@dataclass(slots=True)
class ShapeNode:
    """A block in the tree of the visible blocks of a text.

    `kind` is the type of the block with its visible properties: "h2", "ol 3", "code python".
    """

    kind: str
    text: str = ""
    children: list[ShapeNode] = field(default_factory=list["ShapeNode"])

    def lines(self, indent: str = "") -> Iterator[str]:
        """Yield the block and its children as indented lines."""
        yield f"{indent}{self.kind} {self.text!r}" if self.text else f"{indent}{self.kind}"
        for child in self.children:
            yield from child.lines(indent + "  ")


def add_item(parent: ShapeNode, item: ShapeNode, number: int | None, *, begins_list: bool) -> None:
    """Add an item to the last list of `parent`, or to a new list."""
    if begins_list or not parent.children:
        parent.children.append(ShapeNode("ul" if number is None else f"ol {number}"))
    parent.children[-1].children.append(item)


def shape_of_text(markdown: str) -> ShapeNode:
    """Parse a Markdown text with the app's parser and return the tree of its blocks."""
    root = ShapeNode("text")
    open_: list[ShapeNode] = [root]
    for block in parse_markdown(markdown):
        del open_[1 + block.joined :]
        for frame in block.frames[block.joined :]:
            open_.append(_enter(open_[-1], frame))
        leaf = _leaf(block)
        stands_for_nothing = leaf == ShapeNode("p") and block.frames and block.frames[-1].opens
        if not stands_for_nothing:
            open_[-1].children.append(leaf)
    return root


def _enter(parent: ShapeNode, frame: Container) -> ShapeNode:
    if frame.kind is FrameKind.QUOTE:
        container = ShapeNode("quote")
        parent.children.append(container)
        return container
    container = ShapeNode("li")
    if frame.kind is FrameKind.TASK:
        container.kind = "li [x]" if frame.checked else "li [ ]"
    number = frame.number if frame.kind is FrameKind.NUMBER else None
    before = parent.children[-1] if parent.children else ShapeNode("")
    add_item(parent, container, number, begins_list=not _continues(before, number))
    return container


def _continues(before: ShapeNode, number: int | None) -> bool:
    if number is None:
        return before.kind == "ul"
    kind, _, start = before.kind.partition(" ")
    return kind == "ol" and int(start) + len(before.children) == number


def _leaf(block: Block) -> ShapeNode:
    match block:
        case TextBlock():
            text = block.text.replace(LINE_BREAK, "\n")
            return ShapeNode(f"h{block.level}" if block.level else "p", text)
        case CodeBlock():
            return ShapeNode(f"code {block.language}".strip(), block.text)
        case TableBlock():
            return ShapeNode("table", children=[_row(block, at) for at in range(len(block.rows))])
        case RuleBlock():
            return ShapeNode("rule")
        case FormulaBlock():
            return ShapeNode("formula", block.latex)
        case _:
            raise TypeError(block)


def _row(table: TableBlock, at: int) -> ShapeNode:
    kind = "td" if at else "th"
    cells = zip(table.rows[at], table.aligns, strict=True)
    return ShapeNode(
        "tr", children=[ShapeNode(f"{kind} {align}", cell.text) for cell, align in cells]
    )
