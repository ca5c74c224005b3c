"""Texts of the dialogs and of the sheet of keyboard shortcuts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.words import hub

ADD_FOLDER: Final = "Add Model Folder"
SAVE_AS: Final = "Save As"
CANCEL: Final = "Cancel"
DONE: Final = "Done"

QUIT_QUESTION: Final = "Quit Rejoinder?"
PROGRAM_IS_TOLD: Final = "The program gets an error."
QUIT_KEEPS: Final = "Messages and the text written so far will be saved."
QUIT_RETURNS: Final = "A message that no model has read returns to the message field."
ALL_SAVED: Final = "All chats are saved."
EDIT_LOST: Final = "The changes will be lost."
QUIT: Final = "Quit"
# Note of a start while an earlier run of the app has not closed yet.
STILL_CLOSING: Final = "Rejoinder is still closing."
STILL_CLOSING_ADVICE: Final = "It opens again as soon as it has closed."

# A section of the shortcut sheet: keys that are not in the menus. First its heading, then the
# effect of each key.
KEYS_ELSEWHERE: Final = "While Writing and Reading"
KEY_NEW_LINE: Final = "New Line"
KEY_ESCAPE: Final = "Stop Answer, Close Find, or Cancel Editing"
KEY_EDIT_LAST: Final = "Edit Last Message (in an empty message field)"
KEY_CHATS: Final = "First to Ninth Chat in the List"
KEY_SAVE_ANSWER: Final = "Save Edited Answer"
KEY_ENDS: Final = "Beginning, End of Chat"


def key_range(first: str, last: str) -> str:
    return f"{first} to {last}"


def answers_writing(count: int) -> str:
    if count == 1:
        return "1 answer is not complete."
    return f"{count:,} answers are not complete."


def answers_for_programs(count: int) -> str:
    if count == 1:
        return "1 answer to another program is not complete."
    return f"{count:,} answers to other programs are not complete."


def answers_waiting(count: int) -> str:
    return "1 answer has not begun." if count == 1 else f"{count:,} answers have not begun."


def edits_unsaved(titles: Sequence[str]) -> str:
    """Return the sentence about edited messages. titles: those of their chats."""
    if len(titles) == 1:
        return f"An edited message in {hub.in_question(titles[0])} is not saved."
    if len(titles) == 2:
        return f"Edited messages in {' and '.join(map(hub.in_question, titles))} are not saved."
    return f"Edited messages in {len(titles):,} chats are not saved."


def about(version: str) -> str:
    return (
        f"Rejoinder {version}\n\n"
        "Local chat that keeps what the model has read.\n"
        "Apache License 2.0. Qt and PySide6: LGPL 3."
    )
