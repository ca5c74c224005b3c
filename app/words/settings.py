"""Texts of the settings window."""

from __future__ import annotations

from typing import Final

TITLE: Final = "Settings"

GENERAL: Final = "General"
APPEARANCE: Final = "Appearance"
CHAT: Final = "Chat"
MODELS: Final = "Models"
STORAGE: Final = "Storage"

AT_START: Final = "When opening"
OPEN_AT_LOGIN: Final = "Open at Login"
REOPEN: Final = "Reopen the Last Chat"
REOPEN_NOTE: Final = "Otherwise Rejoinder opens with a new chat."
AT_END: Final = "When quitting"
CONFIRM_QUIT: Final = "Ask Before Quitting"
CONFIRM_QUIT_NOTE: Final = (
    "Rejoinder always asks while an answer is being written or an edited message is not saved."
)

ADVANCED: Final = "Advanced"
MEMORY_LIMIT: Final = "Memory for chats"
MEMORY_NOTE: Final = (
    "The most that Rejoinder keeps of your chats in memory, beside the model. With a smaller "
    "limit, more chats are restored from disk or read again."
)

THEME: Final = "Theme"
TEXT_SIZE: Final = "Text size"
CONTRAST_NOTE: Final = "Stronger borders and clearer secondary text."

SEND_WITH: Final = "Send with"
PICTURES: Final = "Pictures"
PICTURES_NOTE: Final = (
    "The size in which a model gets an attached picture. A larger picture shows finer detail and "
    "takes longer to read. Each picture can have its own size."
)
READ_AHEAD_NOTE: Final = (
    "Reads the open chat and long drafts before you send. On battery power, only the open chat is "
    "read."
)
NAME_CHATS: Final = "Name Chats Automatically"
NAME_CHATS_NOTE: Final = (
    "After one of the first answers the model writes a short title. A title that you edit stays. "
    "Off on battery power."
)
FASTER_ANSWERS: Final = "Faster Answers"
FASTER_NOTE: Final = (
    "Predicts several words at a time where that is faster. "
    "The text stays the same, unless two words are equally likely."
)
PRESETS: Final = "Presets"
NO_PRESETS: Final = "No presets yet. Save one from the inspector."
NO_PRESET: Final = "No preset"
NEW_CHATS: Final = "New chats start with"

NEW_CHATS_TAB: Final = "New Chats"
NEW_CHATS_HINT: Final = "What the model should know or do in every new chat"
NEW_CHATS_NOTE: Final = (
    "The settings of a preset, a folder or a model come before these. Existing chats don’t change."
)
SAMPLING: Final = "Sampling"
RESET_NEW_CHATS: Final = "Reset to Defaults"

UNLOAD_AFTER: Final = "Unload when idle"
UNLOAD_NOTE: Final = "The next message loads the model again."
ACCESS: Final = "Access token"
ACCESS_NAME: Final = "Access token of Hugging Face"
ACCESS_HINT: Final = "hf_…"
ACCESS_STORED: Final = "A token is stored"
ACCESS_NOTE: Final = (
    "For gated and private models. It is stored where Hugging Face’s own programs look for it."
)
ACCESS_FROM_VARIABLE: Final = "The variable HF_TOKEN is set and is used instead of this token."
MIRROR: Final = "Mirror"
MIRROR_NAME: Final = "Address of a mirror of Hugging Face"
MIRROR_HINT: Final = "https://huggingface.co"
MIRROR_NOTE: Final = "Searches, downloads and the access token go to this address instead."
MIRROR_FROM_VARIABLE: Final = "The variable HF_ENDPOINT is set and is used instead of this address."
FOLDERS: Final = "Model folders"
OWN_PLACES: Final = "Models from Hugging Face, LM Studio and Ollama appear automatically."
FOLDERS_NOTE: Final = "Rejoinder does not copy or change your files."
NO_FOLDERS: Final = "None added"
REMOVE: Final = "Remove"


def after_minutes(minutes: int) -> str:
    """Return the text of a choice of minutes; 0 stands for never."""
    return f"{minutes} min" if minutes else "Never"


def new_line(key: str) -> str:
    return f"{key} starts a new line."


def percent(number: int) -> str:
    return f"{number}%"


def remove(folder: str) -> str:
    return f"Remove {folder}"


def delete_preset(name: str) -> str:
    return f"Delete preset {name}"


def new_chats_with(model_name: str) -> str:
    return f"New chats with {model_name} start with"
