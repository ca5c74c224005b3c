"""Texts of problems outside the engine. The engine has its own texts.

A problem has a title (what happened), a cause (why) and advice (what to do), all full sentences.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

DETAILS: Final = "Details"  # accessible name of a problem's details
COPY_DETAILS: Final = "Copy Details"

# Problems of actions that are not possible at the moment.
EMPTY_MESSAGE: Final = "The message is empty."
EMPTY_MESSAGE_ADVICE: Final = "Write something first."
ANSWER_RUNNING: Final = "An answer is being written in that chat."
ANSWER_RUNNING_ADVICE: Final = "Stop it or wait for its end, then try again."
MESSAGES_DELETED: Final = "Messages can be deleted once it has ended."
MESSAGES_COME_BACK: Final = "Messages can come back once it has ended."
EQUAL_ANSWERS: Final = "All answers would be the same."
EQUAL_ANSWERS_ADVICE: Final = "The temperature is 0. Raise it to get answers that differ."
OTHER_MODEL: Final = "Another model began this answer."
UNSEEN_PICTURES: Final = "The model can’t see pictures."
UNSEEN_PICTURES_ADVICE: Final = (
    "Choose a model that sees pictures, or delete the message with them."
)
OTHER_MODEL_ADVICE: Final = "Choose that model to continue it, or regenerate the answer."
OTHER_MODEL_GONE_ADVICE: Final = "Regenerate the answer with the model in use."

# Problems with the database of chats.
STORE: Final = "Your chats could not be used."
STORE_CLOSED: Final = "They could not be opened."
STORE_NEWER: Final = "These chats were saved by a newer Rejoinder."
STORE_NEWER_ADVICE: Final = (
    "Install the newer version again, or choose another folder with --data-dir."
)
STORE_LOCKED: Final = "Your chats are in use by another program."
STORE_LOCKED_ADVICE: Final = "Close the other program, then try again."
STORE_FULL: Final = "The disk is full, so the chat was not saved."
STORE_FULL_ADVICE: Final = "Free some space: what is on screen is then saved."
STORE_NO_ROOM: Final = "The disk is too full to open your chats."
STORE_NO_ROOM_ADVICE: Final = "Free some space, then try again."
STORE_READ_ONLY: Final = "The disk is full, so nothing can be saved."
STORE_READ_ONLY_CAUSE: Final = "You can read your chats."
STORE_DAMAGED: Final = "The file with your chats is damaged."
STORE_DAMAGED_ADVICE: Final = (
    "Quit and open Rejoinder again: it saves what can be read, and keeps the damaged file."
)
BACKUP: Final = "The daily backup of your chats could not be made."
BACKUP_ADVICE: Final = "Check the disk and the permissions of the data folder."
BAD_MESSAGE: Final = "A message in it can’t be understood."
CHANGED_MESSAGE: Final = "The text of a message in it has changed."
STORE_RESCUED: Final = "The file with your chats was damaged."
RESCUED_CHAT: Final = "Rescued chat"  # title of a chat whose title could not be read
LOST_MESSAGE: Final = "(This message was lost when the file was damaged.)"
STORE_FILE: Final = "Your chats could not be read or saved."
STORE_FILE_ADVICE: Final = "Check the disk and the folder’s permissions, then try again."
CONVERSATION_MISSING: Final = "This chat no longer exists."
ALREADY_RUNNING: Final = "Rejoinder is already running."
ALREADY_RUNNING_ADVICE: Final = "Use the open window, or choose another folder with --data-dir."

# Problems with the move of the data folder.
DATA_FOLDER_NAME: Final = "Rejoinder Chats"  # folder that is made in a chosen folder with files
COPY_DIFFERS: Final = "the copy differs from the original"

# Notice after a crash of the last run.
CRASHED: Final = "Rejoinder quit unexpectedly last time."
CRASHED_KEPT: Final = "Your chats were kept."
CRASHED_ADVICE: Final = "If it happens again, please report it with the details."

# Problems with settings and folders, or a missing display or font.
SETTINGS: Final = "The settings could not be read."
FOLDER_ADVICE: Final = "Choose another folder with --data-dir."
NO_WINDOW: Final = "Rejoinder can’t open its window."
NO_CODE_FONT: Final = "No fixed-pitch font is installed."
NO_CODE_FONT_ADVICE: Final = "Install one, for example DejaVu Sans Mono, and start again."
NO_DISPLAY: Final = "there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set)."


def no_window(cause: str) -> str:
    """Return the message for the terminal if the window cannot be opened."""
    return (
        f"Rejoinder can’t open its window: {cause}\n"
        "The README lists what Qt needs. `rejoinder chat` works without a window."
    )


def written_by(model_name: str) -> str:
    return f"It was written by {model_name}."


# In the functions below, `why` is the operating system's reason, without a full stop.


def cannot_read(path: Path, why: str | None) -> str:
    return f"{path} can’t be read: {why}."


def cannot_write(path: Path, why: str | None) -> str:
    return f"{path} can’t be written: {why}."


def cannot_write_log(path: Path, why: str | None) -> str:
    return f"The log {path} can’t be written: {why}."


def cannot_open(path: Path, why: str | None) -> str:
    return f"{path} can’t be opened: {why}."


def cannot_lock(path: Path, why: str | None) -> str:
    return f"{path} can’t be locked: {why}."


def cannot_use(path: Path, why: str | None) -> str:
    return f"{path} can’t be used: {why}."


def cannot_use_folder(path: Path, why: str | None) -> str:
    return f"The folder {path} can’t be used: {why}."


def cannot_move_damaged(path: Path, why: str | None) -> str:
    return f"{path} is damaged and can’t be moved: {why}."


def place_missing(folder: Path) -> str:
    return f"The folder with your chats, {folder}, isn’t there or has no chats in it."


def place_taken(folder: Path) -> str:
    return f"{folder} already has chats in it. Choose another folder."


def cannot_move(folder: Path, why: str | None) -> str:
    return f"Your chats can’t be moved to {folder}: {why}."


def cannot_delete(path: object, why: str | None) -> str:
    return f"{path} can’t be deleted: {why}."


def cannot_rescue(path: Path, why: str | None) -> str:
    return f"{path} is damaged and can’t be rescued: {why}."


def damaged(name: str) -> str:
    return f"{name} is damaged."


def settings_kept(name: str) -> str:
    return f"Rejoinder starts with its defaults and kept the file as {name}."


def rescued(lost: str, *, garbled: int, changed: int, nameless: int, backup: str, kept: str) -> str:
    """Return what a rescue could not save, and where the damaged file is.

    lost: result of lost_messages() or lost_unknown(). garbled: number of messages with unreadable
    characters. changed: number of messages whose text is not the one that was saved. backup: file
    name of the backup that added rows, or an empty string.
    """
    parts = [lost]
    if garbled:
        parts.append(f"{_count(garbled, 'message')} {'have' if garbled > 1 else 'has'} gaps")
    if changed:
        parts.append(f"{_count(changed, 'message')} may have another text than before")
    if nameless:
        parts.append(f"{_count(nameless, 'chat')} lost {'its' if nameless == 1 else 'their'} title")
    if backup:
        parts.append(f"some messages come from the backup {backup}")
    return f"{', '.join(parts)}. The damaged file is kept as {kept}."


def lost_messages(number: int) -> str:
    return f"{_count(number, 'message')} {'are' if number > 1 else 'is'} missing"


def lost_unknown(saved: int) -> str:
    were = "were" if saved > 1 else "was"
    return f"{_count(saved, 'message')} {were} saved, others may be missing"


def kept_aside(kept: str) -> str:
    return f"What could be read was saved. The damaged file is kept as {kept}."


def _count(number: int, noun: str) -> str:
    if not number:
        return f"No {noun}"
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def locked(path: Path) -> str:
    return f"{path} is locked."


def no_space(path: Path) -> str:
    return f"There is no space left for {path}."


def no_room_to_update(path: Path, needed: int) -> str:
    return (
        f"An earlier version of Rejoinder saved {path}. It is copied before it is changed, which"
        f" needs {max(1, round(needed / 1e6)):,} MB of free space."
    )


def not_understood(path: Path) -> str:
    return f"{path} can’t be understood."


def inconsistent(path: Path) -> str:
    return f"{path} is inconsistent."


def changed_texts(number: int) -> str:
    return f"{_count(number, 'message')} may have another text than before."


def newer_format(path: Path, version: int, known: int) -> str:
    return f"{path} has format {version}; this version knows formats up to {known}."


def not_stored(conversation_id: str) -> str:
    return f"No chat {conversation_id} is stored."


def another_uses(folder: Path) -> str:
    return f"It uses the data folder {folder}."
