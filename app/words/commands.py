"""Texts of menus and commands. A button for the same command has the same text."""

from __future__ import annotations

from typing import Final

MENU_FILE: Final = "File"
MENU_EDIT: Final = "Edit"  # title of the Edit menu
MENU_VIEW: Final = "View"
MENU_CHAT: Final = "Chat"
MENU_MODEL: Final = "Model"
MENU_WINDOW: Final = "Window"
MENU_HELP: Final = "Help"

NEW_CHAT: Final = "New Chat"
NEW_FOLDER: Final = "New Folder…"
IMPORT: Final = "Import Chats…"
EXPORT: Final = "Export Chat…"
EXPORT_ALL: Final = "Export All Chats…"
SAVE_PDF: Final = "Save as PDF…"
PRINT: Final = "Print…"
COPY_CHAT: Final = "Copy Chat as Markdown"
SETTINGS: Final = "Settings…"
CLOSE_WINDOW: Final = "Close Window"
QUIT_APP: Final = "Quit Rejoinder"

UNDO: Final = "Undo"
REDO: Final = "Redo"
CUT: Final = "Cut"
COPY: Final = "Copy"
COPIED: Final = "Copied"  # shown on the Copy button for a moment
PASTE: Final = "Paste"
SELECT_ALL: Final = "Select All"
FIND: Final = "Find in Chat…"
FIND_NEXT: Final = "Find Next"
FIND_PREVIOUS: Final = "Find Previous"
SEARCH: Final = "Search All Chats…"
SWITCHER: Final = "Go To…"  # command that opens the quick switcher

SORT: Final = "Sort Chats By"
BY_ACTIVITY: Final = "Recent Activity"
BY_CREATION: Final = "Date Created"
BY_TITLE: Final = "Title"
SHOW_ARCHIVED: Final = "Show Archived Chats"
SHOW_SIDEBAR: Final = "Show Sidebar"
SHOW_INSPECTOR: Final = "Show Inspector"
SHOW_BRANCH_MAP: Final = "Show Branch Map"
APPEARANCE: Final = "Appearance"
LIGHT: Final = "Light"
DARK: Final = "Dark"
SYSTEM: Final = "System"  # appearance that follows the system
MORE_CONTRAST: Final = "More Contrast"
LARGER_TEXT: Final = "Larger Text"
SMALLER_TEXT: Final = "Smaller Text"
NORMAL_TEXT: Final = "Actual Size"
FULL_SCREEN: Final = "Enter Full Screen"
END_FULL_SCREEN: Final = "Exit Full Screen"

STOP: Final = "Stop"
REGENERATE: Final = "Regenerate"
SEVERAL_ANSWERS: Final = "Several Answers"
SEVERAL_HINT: Final = "The chat is read once, and the answers are written at the same time"
ASK_AGAIN_WITH: Final = "Ask Again With"
THINKING: Final = "Thinking"
NO_THINKING: Final = "No Thinking"
CONTINUE: Final = "Continue"
CONTINUE_HINT: Final = "Continue an answer that was stopped"
EDIT_LAST: Final = "Edit Last Message"
PREVIEW_EDITS: Final = "Preview Answers to Edits"
WHY_READ: Final = "Why Was This Read?"
WHY_READ_HINT: Final = "Shows which part of the prompt was restored, and which was read"
COPY_LAST: Final = "Copy Last Answer"
DELETE_LAST: Final = "Delete Last Message"
DELETE_LAST_HINT: Final = "Deletes its answer too. You can undo this."
PREVIOUS_VERSION: Final = "Previous Version"
NEXT_VERSION: Final = "Next Version"
RENAME: Final = "Rename…"
KEEP_READY: Final = "Keep in Memory"
KEEP_READY_HINT: Final = "Other chats are unloaded first, so this one continues at once"
PIN: Final = "Pin"
UNPIN: Final = "Unpin"
ARCHIVE: Final = "Archive"
UNARCHIVE: Final = "Unarchive"
DUPLICATE: Final = "Duplicate"
DUPLICATE_HINT: Final = "Copies the chat with all its versions. Nothing is read again."
DELETE: Final = "Delete Chat"  # command that deletes a chat

RECENTLY_DELETED: Final = "Recently Deleted…"
CHOOSE_MODEL: Final = "Choose Model…"
GET_MODELS: Final = "Get Models…"
LOAD_AGAIN: Final = "Reload Model"
ADD_FOLDER: Final = "Add Model Folder…"
UNLOAD: Final = "Unload Model"
UNLOAD_HINT: Final = "Frees its memory. The next message loads it again."
READ_AHEAD: Final = "Read Ahead While Idle"
READ_AHEAD_HINT: Final = (
    "Reads the open chat and long drafts before you send, while no answer is running"
)

MEMORY_MAP: Final = "Memory & Storage…"
MEMORY_MAP_HINT: Final = "Shows which chats are in memory and on disk"

MINIMISE: Final = "Minimize"
ZOOM: Final = "Zoom"
NEXT_CHAT: Final = "Next Chat"
PREVIOUS_CHAT: Final = "Previous Chat"
BACK: Final = "Back"
FORWARD: Final = "Forward"
ALL_TO_FRONT: Final = "Bring All to Front"
REMEMBERING: Final = "How Rejoinder Remembers"
KEYBOARD_SHORTCUTS: Final = "Keyboard Shortcuts"
DIAGNOSTICS: Final = "Save Diagnostics…"
ABOUT: Final = "About Rejoinder"


def for_chats(command: str, count: int) -> str:
    """Return the text of a command, such as PIN, for one chat or for several selected ones."""
    return command if count <= 1 else f"{command} {count:,} Chats"


def export_several(count: int) -> str:
    return f"Export {count:,} Chats…"


def delete_several(count: int) -> str:
    return f"Delete {count:,} Chats"


def send_or_regenerate(count: int) -> str:
    """Name the command that sends the message, or without one regenerates the answer."""
    return f"Send or Regenerate ×{count}"


def regenerate_times(count: int) -> str:
    return f"Regenerate ×{count}"


def send_times(count: int) -> str:
    return f"Send ×{count}"


def at_temperature(temperature: float) -> str:
    return f"Temperature {temperature:g}"
