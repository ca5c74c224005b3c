"""What people do in the window, by where. Importing this fills the registry."""

from __future__ import annotations

from tests.person.kinds import answers, chats, messages, reading, setup, window, writing
from tests.person.kinds.registry import KINDS

__all__ = ["KINDS", "answers", "chats", "messages", "reading", "setup", "window", "writing"]
