"""Texts of the quick switcher."""

from __future__ import annotations

from typing import Final

TITLE: Final = "Go To"
FIELD: Final = "Chat, command or model"
NOTHING: Final = "Nothing matches."
ARCHIVED: Final = "Archived"
IN_USE: Final = "In use"
ON: Final = "On"  # beside a command that switches something off and on
MODEL: Final = "Model"
# Words that screen readers say after the name, by kind of the entry.
KINDS: Final = {"CHAT": "chat", "COMMAND": "command", "MODEL": "model"}
