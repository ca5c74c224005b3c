"""Texts of the diagnostics file."""

from __future__ import annotations

from typing import Final

FILE_NAME: Final = "Rejoinder Diagnostics.txt"
INTRODUCTION: Final = (
    "Versions, figures and the end of the log of Rejoinder. No text of a chat, no title, no system"
    " prompt, no draft and no path is in this file."
)
VERSIONS: Final = "Versions"
MACHINE: Final = "Machine"
SETTINGS: Final = "Settings"
MODEL: Final = "Model"
CHATS: Final = "Chats"
CACHE: Final = "Cached state"
LOG: Final = "Log"
CRASH: Final = "Newest crash"

SET: Final = "set"
NOT_SET: Final = "not set"
UNKNOWN: Final = "unknown"
PATH: Final = "<path>"
TEXT: Final = "<text>"


def entries(count: int) -> str:
    return "1 entry" if count == 1 else f"{count} entries"
