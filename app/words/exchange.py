"""Texts of import, export and search. A file that cannot be read is described by one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# Reasons why a file or a chat cannot be imported.
DAMAGED: Final = "It is not JSON, or a part of it is missing."
NOT_TEXT: Final = "It is not UTF-8 text."
TOO_DEEP: Final = "Its JSON is nested too deeply."
TOO_LARGE: Final = (
    "One of its chats is larger than 32 million characters, or than 96 million with its pictures."
)
TOO_COMPLEX: Final = "Reading it takes too much time or memory."
TOO_MUCH: Final = "It unpacks to more than 8 GB."
TOO_MANY_FILES: Final = "It has more than 100,000 files."
TOO_MANY_MESSAGES: Final = "It has more than 50,000 messages."
TOO_MANY_VERSIONS: Final = "It has more than 1,000 versions of one message."
BAD_ZIP: Final = "The ZIP file is damaged or encrypted."
BAD_CONVERSATION: Final = "Its fields are missing or have wrong types."
NEWER: Final = "A newer Rejoinder wrote it. Update Rejoinder, then import it again."
EMPTY: Final = "It has no messages that can be read."
UNKNOWN: Final = "It has no chats in a known format."
OTHER_FORM: Final = "Its messages have a form that Rejoinder does not know."
PICTURE_TOO_LARGE: Final = "It is larger than 50 MB."
TOO_MANY_PICTURES: Final = "It has more than 20,000 pictures. The others were not imported."
TAKEN: Final = "Its messages belong to another chat here."

# Texts that take the place of what another app stored and Rejoinder cannot show.
NO_QUESTION: Final = "(This chat began with an answer.)"
NO_TEXT: Final = "(An image or a file was here.)"
PICTURE_NAME: Final = "Picture"  # name of a picture to which the other app gave none

# Texts of the dialogs in the window.
ALL_CHATS: Final = "Rejoinder Chats"  # suggested name of a file with all chats
UNTITLED: Final = "Chat"  # suggested name of a file if the title has no letter that a name may have
KINDS: Final = {
    ".md": "Markdown (*.md)",
    ".json": "JSON, with all versions (*.json)",
    ".html": "Web page (*.html)",
    ".txt": "Text (*.txt)",
}
*_FIRST, _LAST = KINDS
ENDINGS: Final = f"{', '.join(_FIRST)} or {_LAST}"
WHICH_KIND: Final = f"The file name must end in {ENDINGS}."

IMPORT_FILES: Final = (
    "Chats of Rejoinder, ChatGPT, Claude, LM Studio, Open WebUI, Jan (*.json *.zip)"
)
IMPORTED: Final = "Import Chats"  # title of the box that lists what could not be read

# Headings in exported files.
YOU: Final = "You"
ASSISTANT: Final = "Assistant"
SYSTEM_PROMPT: Final = "System prompt"
THOUGHTS: Final = "Thoughts"

NOT_PRINTED: Final = "The chat was not printed."
NO_PRINTER: Final = "The printer accepts no pages."
NOT_PRINTED_ADVICE: Final = "Choose another printer, or save the chat as PDF."
ALREADY_HERE: Final = "already here"
NOTHING_FOUND: Final = "Nothing was found."


def count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"


def chat_number(name: str, number: int) -> str:
    return f"{name}, chat {number}"


def picture_was_here(name: str) -> str:
    """Return the text that takes the place of a picture which is not in the imported file."""
    return f"(The picture “{name}” was here.)" if name else NO_TEXT


def picture_not_in_file(name: str) -> str:
    return f"“{name}” is not in the file."


def imported(added: int, grown: int, present: int) -> str:
    """Return the summary of an import."""
    amounts = ((added, "imported"), (grown, "continued"), (present, ALREADY_HERE))
    (number, effect), *others = [one for one in amounts if one[0]] or amounts[:1]
    first = f"{count(number, 'chat')} {effect}"
    return ", ".join((first, *(f"{number:,} {effect}" for number, effect in others))) + "."


def importing(percent: int) -> str:
    return f"Importing chats… {percent}%"


def exporting(percent: int) -> str:
    return f"Exporting chats… {percent}%"


def making_pages(percent: int) -> str:
    return f"Making pages… {percent}%"


def lines(items: Iterable[tuple[str, str]]) -> str:
    """Return a line for each file or chat that could not be read, with the reason."""
    return "\n".join(f"{name}: {reason}" for name, reason in items)


def exported(number: int, name: str) -> str:
    return f"{count(number, 'chat')} exported to {name}."


def exported_chats(number: int, name: str) -> str:
    """Return the sentence of the window after an export."""
    return f"Exported to “{name}”." if number == 1 else f"Exported {number:,} chats to “{name}”."


def unreadable(number: int) -> str:
    return f"{count(number, 'item')} could not be read:"


def cannot_read(reason: str | None) -> str:
    return f"It cannot be read: {reason}." if reason else "It cannot be read."


def cannot_write(path: object, reason: str | None) -> str:
    return f"{path} cannot be written: {reason}."


def no_such_chat(name: str) -> str:
    return f"No chat is called “{name}”."


def several_chats(name: str, number: int) -> str:
    return f"{number} chats are called “{name}”. Rename one of them."
