"""The branch on show of a conversation as Markdown, HTML or plain text. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from html import escape

from markdown_it import MarkdownIt

from app.conversation.attachments import AttachedPicture, document_text
from app.conversation.tree import Conversation, MessageNode, shown_path
from app.conversation.typed_lines import keep_typed_lines
from app.exchange.data_urls import make_data_url
from app.words import exchange as words
from engine.types import Role

_RULE = "-" * 60
_FENCE = re.compile(r"`{3,}|~{3,}")

# Nothing is loaded when the page is opened: no script, no picture of another server. The pictures
# are in the page.
_HEAD = """<!DOCTYPE html>
<html><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<style>
body { font: 11pt/1.5 -apple-system, "Segoe UI", sans-serif; max-width: 46em; margin: 2em auto; padding: 0 1em }
h1 { font-size: 1.5em } h2 { font-size: 1em; margin: 1.8em 0 .3em; color: #555; break-after: avoid }
.chat + .chat { break-before: page } .user { background: #f3f3f5; border-radius: .6em; padding: .1em 1em }
pre { background: #f6f6f8; padding: .8em; white-space: pre-wrap; overflow-wrap: anywhere; break-inside: avoid-page }
code { font-family: ui-monospace, Menlo, monospace; font-size: .9em }
table { border-collapse: collapse } td, th { border: 1px solid #ccc; padding: .2em .6em }
img { max-width: 100%; max-height: 24em; border-radius: .4em }
details, blockquote { color: #555 } p, li { orphans: 3; widows: 3 }
@media print { body { max-width: none; margin: 0 } }
</style>
"""
_HTML_END = "</body></html>\n"

# Function that returns a PNG file with a picture, or None to show its name only.
Thumbnail = Callable[[AttachedPicture], bytes | None]


def _make_parser() -> MarkdownIt:
    """Make a parser that shows each line end in a paragraph as a line break, as the window does."""
    options = {"html": False, "breaks": True}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


_markdown = _make_parser()
_typed = _make_parser().use(keep_typed_lines)  # for the messages of the user


def to_markdown(conv: Conversation) -> str:
    """Return a title, and a heading and the text of each message. The text is unchanged."""
    parts = [f"# {conv.title}"]
    if conv.system_prompt.strip():
        parts += [f"## {words.SYSTEM_PROMPT}", conv.system_prompt]
    for node in shown_path(conv):
        if has_text(node):
            parts += [f"## {author(node)}", message_markdown(node)]
    return "\n\n".join(parts) + "\n"


def message_markdown(node: MessageNode) -> str:
    """Return the text of a message, with its open code block closed. Thoughts are quoted."""
    text = _closed(document_text(node.attachments, node.content.strip("\n")))
    if not node.reasoning.strip():
        return text
    lines = (f"> {line}".rstrip() for line in node.reasoning.strip().splitlines())
    return "\n".join((f"> **{words.THOUGHTS}**", ">", *lines)) + f"\n\n{text}"


def to_text(conv: Conversation) -> str:
    """Return the messages without Markdown headings; the Markdown in a message stays."""
    parts = [conv.title, _RULE]
    if conv.system_prompt.strip():
        parts += [f"{words.SYSTEM_PROMPT}:", conv.system_prompt, _RULE]
    for node in shown_path(conv):
        if has_text(node):
            parts += [f"{author(node)} ({date(node)}):", _text(node), _RULE]
    return "\n\n".join(parts) + "\n"


def _html_start(title: str) -> str:
    return f"{_HEAD}<title>{escape(title)}</title></head><body>\n"


def to_html(conv: Conversation, thumbnail: Thumbnail = lambda _picture: None) -> str:
    """Return a section for a page that _html_start() begins. HTML in a message is escaped."""
    parts = [f'<section class="chat"><h1>{escape(conv.title)}</h1>']
    if conv.system_prompt.strip():
        prompt = _markdown.render(conv.system_prompt)
        parts.append(f"<details><summary>{words.SYSTEM_PROMPT}</summary>{prompt}</details>")
    for node in shown_path(conv):
        if not has_text(node):
            continue
        parts.append(f"<h2>{escape(author(node))} · {date(node)}</h2>")
        if node.reasoning.strip():
            thoughts = _markdown.render(node.reasoning)
            parts.append(f"<details><summary>{words.THOUGHTS}</summary>{thoughts}</details>")
        parser = _typed if node.role is Role.USER else _markdown
        images = {
            file: content
            for file in node.attachments
            if file.picture is not None and (content := thumbnail(file.picture)) is not None
        }
        shown = "".join(_image(file.name, content) for file, content in images.items())
        named = [file for file in node.attachments if file not in images]
        text = parser.render(document_text(named, node.content))
        parts.append(f'<div class="{node.role}">{shown}{text}</div>')
    return "\n".join((*parts, "</section>\n"))


def _image(name: str, png: bytes) -> str:
    return f'<p><img src="{make_data_url(png, "png")}" alt="{escape(name)}"></p>'


def has_text(node: MessageNode) -> bool:
    """Return True if a message has anything to export."""
    return bool(node.content.strip() or node.reasoning.strip() or node.attachments)


def _text(node: MessageNode) -> str:
    """Return the text of a message, below the names of its attached files."""
    return document_text(node.attachments, node.content)


def author(node: MessageNode) -> str:
    """Return "You", the name of the model, or "Assistant" if the model is unknown."""
    if node.role is Role.USER:
        return words.YOU
    return (node.generation and node.generation.model_title) or words.ASSISTANT


def date(node: MessageNode) -> str:
    """Return the local date and time of a message."""
    return datetime.fromtimestamp(node.created_at).astimezone().strftime("%Y-%m-%d %H:%M")


def _closed(text: str) -> str:
    """Close a code block that a cut-off reply left open, so that what follows is not in it."""
    fence = ""
    for line in text.splitlines():
        match = _FENCE.match(line.lstrip())
        if match is None:
            continue
        if not fence:
            fence = match[0]
        elif match[0].startswith(fence) and not line.strip().strip(fence[0]):
            fence = ""
    return f"{text}\n{fence}" if fence else text


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """A kind of file with conversations as text. A new kind also needs a name in words.KINDS."""

    write: Callable[[Conversation, Thumbnail], str]
    start: Callable[[str], str] = lambda _title: ""  # gets the name of the file
    between: str = "\n\n"  # text between two conversations
    end: str = ""


# By the ending of the file.
KINDS = {
    ".html": DocumentKind(to_html, _html_start, "", _HTML_END),
    ".md": DocumentKind(lambda conv, _thumbnail: to_markdown(conv)),
    ".txt": DocumentKind(lambda conv, _thumbnail: to_text(conv)),
}
