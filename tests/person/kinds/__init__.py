"""The actions of the seeded user, one module per area. Importing the package fills KINDS."""

from __future__ import annotations

from tests.person.kinds import answers, chats, messages, reading, setup, window, writing
from tests.person.kinds.registry import KINDS

__all__ = ["KINDS", "answers", "chats", "messages", "reading", "setup", "window", "writing"]
