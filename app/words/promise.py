"""Texts about what Rejoinder remembers: a sentence in the first window, a note, and a page."""

from __future__ import annotations

from typing import Final

from app.words import computer, units

SENTENCE: Final = (
    "Rejoinder remembers your chats: when you come back, it answers without reading them again."
)

HOW: Final = "How It Works"  # button of the note
CLOSE: Final = "OK"

# Texts of the page, which the Help menu opens.
WHY: Final = (
    "A model reads a chat from its beginning before it answers. For a long chat this takes minutes,"
    " and most of it is text that the model has read before."
)
WHAT: Final = (
    "Rejoinder keeps what the model has read, in memory and on the disk of"
    f" {computer.THIS_COMPUTER}. When you come back, the model continues there and reads only your"
    " new message. The answer is the same as if it had read everything."
)
SAVED_HEADING: Final = "Time saved"
SAVED_NOTE: Final = (
    "The time of reading the restored text at the speed measured on"
    f" {computer.THIS_COMPUTER}, less the time of restoring it. Not counted: text that was read"
    " ahead, stopped answers without a word, and requests of other programs."
)
AGAIN_HEADING: Final = "When it reads again"
OTHER_MODEL: Final = (
    "Another model has to read the whole chat. Before you send, a note shows how much that is."
)
SYSTEM_PROMPT: Final = (
    "The system prompt stands before the first message. After a change the whole chat is read."
)
EDITED: Final = "An edited message is read. What stands above it is restored."
EVICTED: Final = (
    "A chat that you have not used for long may have made room for others. It is then read again."
)
MORE: Final = (
    "A line above an answer tells what was restored and what was read, unless it was little."
    " Settings > Storage shows how much is kept, and clears it."
    f" Nothing leaves {computer.THIS_COMPUTER}."
)

COLORS_HEADING: Final = "The colors of that line"
GREEN: Final = (
    "Green: most of the chat was restored from memory, and the first word came within 2 seconds."
)
BLUE: Final = "Blue: the same, but a part was restored from disk."
AMBER: Final = (
    "Amber: you waited while text was read again that had been read before. More room for chats"
    " avoids this."
)
GRAY: Final = "Gray: anything else, for example new text that was read, or a longer wait."

# Texts of the picture: its rows, and the parts of the bars.
FIRST_MESSAGE: Final = "First message"
NEXT_MESSAGE: Final = "Next message"
AFTER_RESTART: Final = "After a restart"
READ: Final = "read"
RESTORED: Final = "restored from memory"
FROM_DISK: Final = "restored from disk"
PICTURE: Final = (
    "Of the first message everything is read. Before the next message the chat is restored from"
    " memory, after a restart from disk. Only the new message is read."
)


def saved(*, today: str, total: str) -> str:
    """Return the sums of the time saved. `today` is empty if nothing was saved today."""
    in_all = f"In all about {total} of reading."
    return f"Today about {today}. {in_all}" if today else in_all


def remembered(*, num_tokens: int, time: str, spared: str) -> str:
    """Return the note after the first return to a chat that spared much. The times have units."""
    return (
        f"Rejoinder remembered this chat: {units.tokens(num_tokens)} were restored in {time}."
        f" Reading them again would have taken an estimated {spared}."
    )
