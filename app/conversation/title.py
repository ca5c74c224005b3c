"""Titles that the model writes: which conversation needs one, and what makes a usable title.

A conversation begins with an automatic title, the first words of its first message. After its
first answers the model is asked for a better one (controllers/titles.py), until one is usable. Each
version of the first message keeps the title that was written for it (MessageNode.chat_title). After
an edit of the first message the title before stays until the model has written one for the edit.
The flag Conversation.title_is_manual says that the user has set the title: such a title is never
replaced.
"""

from __future__ import annotations

import re
from dataclasses import replace

from app.conversation.text import clean_text, title_from
from app.conversation.tree import (
    Conversation,
    MessageNode,
    MessageStatus,
    NodeId,
    first_title,
    replace_node,
    shown_path,
)
from engine.types import Role

# Answers after which the model is asked for a title. A weak model that has written none by then
# writes none later.
_MAX_ANSWERS = 3
# A longer answer is no title: it is a sentence, or an answer to the conversation itself.
MAX_CHARACTERS = 60
MAX_WORDS = 10
# Characters that are searched for a title. The engine writes far fewer.
_SEARCHED = 2000

_KEPT = (MessageStatus.COMPLETE, MessageStatus.STOPPED)
_THOUGHTS = re.compile(
    r"<(think|thinking|reasoning)>.*?(</\1>|\Z)|</(think|thinking|reasoning)>", re.DOTALL
)
_LABEL = re.compile(
    r"^\W*(title|titel|titre|título|titolo|标题|タイトル)\W*[:\uff1a]\s*", re.IGNORECASE
)
_AROUND = " \t*_#~`\"'“”„‟‘’‚«»‹›「」『』《》[]"  # noqa: RUF001 (quotation marks)
_AT_END = ".,;:…。、，；："  # noqa: RUF001 (Chinese)
# A control token that the tokenizer wrote as text, or a character that no title has.
_BROKEN = re.compile(r"<\|?[\w/]+\|?>|[\x00-\x1f\x7f\ufffd]")
_BETWEEN = " -–—|/?!:;.,"  # noqa: RUF001 (dashes between a question and a title)
_LONG_WORD = 40


def needs_title(conv: Conversation) -> bool:
    """Return True if a conversation has its first answers and still has its automatic title.

    An answer that the user stopped counts if it has text beyond its reasoning.
    """
    path = shown_path(conv)
    answers = [node for node in path if node.role is Role.ASSISTANT]
    if conv.title_is_manual or not 0 < len(answers) <= _MAX_ANSWERS or path[0].chat_title:
        return False
    has_text = any(one.status in _KEPT and one.content.strip() for one in answers)
    borrowed = (one.chat_title for one in _first_messages(conv))
    return has_text and conv.title in (first_title(path[0]), *borrowed)


def retitled(conv: Conversation) -> Conversation:
    """Return a conversation with the title of the version of its first message that is on show.

    Call this after a change of that version. A version for which the model has written no title
    keeps the title that the model wrote for another one.
    """
    first = _shown_first(conv)
    if conv.title_is_manual or first is None:
        return conv
    is_automatic = conv.title in map(first_title, _first_messages(conv))
    kept = first_title(first) if is_automatic else conv.title
    return replace(conv, title=first.chat_title or kept)


def with_title(conv: Conversation, node_id: NodeId, title: str) -> Conversation:
    """Return a conversation with the model's title for a version of its first message."""
    return retitled(replace_node(conv, replace(conv.nodes[node_id], chat_title=title)))


def with_title_kept(conv: Conversation) -> Conversation:
    """Return a conversation whose first message on show keeps its title before it is edited.

    Before format 12 the store had the title of the model for the conversation only.
    """
    first = _shown_first(conv)
    known = {name for one in _first_messages(conv) for name in (one.chat_title, first_title(one))}
    if conv.title_is_manual or first is None or first.chat_title or conv.title in known:
        return conv
    return with_title(conv, first.node_id, conv.title)


def _shown_first(conv: Conversation) -> MessageNode | None:
    versions = conv.children.get(None)
    return conv.nodes[conv.shown.get(None, versions[-1])] if versions else None


def _first_messages(conv: Conversation) -> list[MessageNode]:
    """Return all versions of the first message, deleted ones too."""
    return [node for node in conv.nodes.values() if node.parent is None]


def usable_title(text: str, question: str = "") -> str:
    """Return the title in a text that the model wrote, or "" if there is none.

    Quotation marks, Markdown, a label such as "Title:" and the point at the end are removed, and so
    is `question`, the first message, if the model has put it in front of a title.
    """
    lines = _THOUGHTS.sub("", clean_text(text[:_SEARCHED])).strip().splitlines()
    # A line that ends with a colon announces the title.
    found = next((line for line in lines if _bare(line) and not line.rstrip().endswith(":")), "")
    title = _after(question, _bare(_LABEL.sub("", title_from(found))))
    if title.count('"') % 2:
        # The other one of the pair was at an end of the line, and is removed.
        title = title.replace('"', "")
    if not _is_title(title):
        title = _before_colon(title)
    return title if _BROKEN.search(found) is None and _is_title(title) else ""


def _after(question: str, title: str) -> str:
    """Return a title without the question that it begins with, if that has several words."""
    asked, written = ([_letters(word) for word in text.split()] for text in (question, title))
    if len(asked) < 2 or written[: len(asked)] != asked:
        return title
    rest = _bare(" ".join(title.split()[len(asked) :]).lstrip(_BETWEEN))
    return rest if len(rest.split()) > 1 else ""


def _before_colon(title: str) -> str:
    """Return the beginning of a title that is too long, if it has several words."""
    head, colon, _ = title.partition(":")
    return _bare(head) if colon and len(head.split()) > 1 else ""


def _letters(word: str) -> str:
    """Return a word for a comparison: without case and without marks, unless it has only marks."""
    return "".join(filter(str.isalnum, word)).casefold() or word


def _bare(line: str) -> str:
    """Return a line without the marks around it, however they are nested."""
    before = None
    while line != before:
        before = line
        line = line.strip(_AROUND).rstrip(_AT_END)
    return line


def _is_title(title: str) -> bool:
    words = title.casefold().split()
    repeats = len(words) > 3 and len(set(words)) * 2 <= len(words)
    return (
        len(title) <= MAX_CHARACTERS
        and 0 < len(words) <= MAX_WORDS
        and max(map(len, words)) <= _LONG_WORD
        and sum(letter.isalnum() for letter in title) * 2 > len(title)
        and not repeats
    )
