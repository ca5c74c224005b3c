"""The messages that a printed conversation shows, and the line above each. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.conversation.tree import Conversation, shown_path
from app.exchange.documents import author, date, has_text
from app.viewmodels.items import TranscriptItems
from app.viewmodels.transcript import TranscriptItem, Version
from app.words import exchange as words
from engine.types import Role


@dataclass(frozen=True, slots=True)
class PaperMessage:
    """A message on paper, and the line above it."""

    caption: str
    item: TranscriptItem


def paper_messages(conversation: Conversation) -> list[PaperMessage]:
    """Return the messages on show, without what only the screen offers: versions and buttons."""
    made: list[PaperMessage] = []
    prompt = conversation.system_prompt.strip()
    if prompt:
        item = TranscriptItem(key="", role=Role.ASSISTANT, text=prompt)
        made.append(PaperMessage(words.SYSTEM_PROMPT, item))
    items = TranscriptItems().of(conversation, {})
    for node, item in zip(shown_path(conversation), items, strict=True):
        if has_text(node):
            shown = replace(item, version=Version(), problem=None, can_continue=False)
            made.append(PaperMessage(f"{author(node)} · {date(node)}", shown))
    return made
