"""The actions of the seeded random user. Importing this package adds them to KINDS."""

from __future__ import annotations

from tests.person.kinds import (
    answers,
    attaching,
    chats,
    documents,
    exchange,
    messages,
    models_page,
    organising,
    reading,
    setup,
    window,
    writing,
)
from tests.person.kinds.registry import KINDS

__all__ = [
    "KINDS",
    "answers",
    "attaching",
    "chats",
    "documents",
    "exchange",
    "messages",
    "models_page",
    "organising",
    "reading",
    "setup",
    "window",
    "writing",
]
