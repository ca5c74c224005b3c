"""The shortcuts that the user chose for commands, and the reasons why one is refused. Main thread.

A choice replaces all default shortcuts of a command. It is a key sequence in Qt's portable
notation, or "" for no shortcut. Some keys cannot be chosen: text fields use them, or they type a
character.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from PySide6.QtGui import QKeySequence

from app.widgets.commands import COMMANDS, Actions, CommandId, MenuCommand, key_sequences
from app.words import shortcuts as words

# Text fields handle these keys themselves, before the menu gets them.
_OF_FIELDS = frozenset(
    {
        CommandId.UNDO,
        CommandId.REDO,
        CommandId.CUT,
        CommandId.COPY,
        CommandId.PASTE,
        CommandId.SELECT_ALL,
    }
)
# Keys of the message field, the transcript and the Window menu, which are no commands.
_ELSEWHERE = ("Ctrl+Return", "Shift+Return", *(f"Ctrl+{place}" for place in range(1, 10)))
_EDITING = ("MoveTo", "Select", "DeleteStart", "DeleteEnd", "Insert")  # kinds of standard keys
_MODIFIERS = ("Ctrl+", "Alt+", "Meta+")
_SHIFT = "Shift+"

Choices = Mapping[str, str]


def is_changeable(command: MenuCommand) -> bool:
    return not command.list_key and command.id not in _OF_FIELDS


def keys_of(choices: Choices) -> dict[CommandId, list[QKeySequence]]:
    """Return the shortcuts of all commands. A choice that is refused leaves the default."""
    chosen = {
        one.id: choices[one.id] for one in COMMANDS if one.id in choices and is_changeable(one)
    }
    keys = {one.id: [] if one.id in chosen else key_sequences(one) for one in COMMANDS}
    for command in COMMANDS:
        if command.id not in chosen:
            continue
        wanted = QKeySequence.fromString(chosen[command.id])
        if not wanted.isEmpty() and not refusal(command.id, wanted, keys):
            keys[command.id] = [wanted]
        elif chosen[command.id]:
            free = [one for one in key_sequences(command) if not refusal(command.id, one, keys)]
            keys[command.id] = free
    return keys


def apply_choices(actions: Actions, choices: Choices) -> None:
    """Give the actions their shortcuts. The conversation list handles the keys of some commands."""
    keys = keys_of(choices)
    for command in COMMANDS:
        action = actions[command.id]
        if is_changeable(command) and action.shortcuts() != keys[command.id]:
            action.setShortcuts(keys[command.id])


def refusal(
    command: CommandId, wanted: QKeySequence, keys: Mapping[CommandId, list[QKeySequence]]
) -> str:
    """Return a sentence that tells why a command cannot have a shortcut, or "" if it can."""
    shown = native(wanted)
    if wanted.count() != 1 or not wanted.toString():
        return words.not_usable(shown)
    for other in COMMANDS:
        if other.id is not command and wanted in keys[other.id]:
            return words.taken(shown, other.text.removesuffix("…"))
    if wanted in next(key_sequences(one) for one in COMMANDS if one.id is command):
        return ""  # its default
    if _types(wanted):
        return words.types(shown)
    return words.edits(shown) if wanted.toString() in _reserved() else ""


def native(keys: QKeySequence) -> str:
    return keys.toString(QKeySequence.SequenceFormat.NativeText)


def _types(keys: QKeySequence) -> bool:
    """Return True if the keys type a character or move the cursor: they have no modifier."""
    text = keys.toString().removeprefix(_SHIFT)
    is_function = text.startswith("F") and text[1:].isdecimal()
    return not is_function and not any(modifier in text for modifier in _MODIFIERS)


@cache
def _reserved() -> frozenset[str]:
    """Return the keys that edit text, in portable notation."""
    kinds = [kind for kind in QKeySequence.StandardKey if kind.name.startswith(_EDITING)]
    bound = (keys.toString() for kind in kinds for keys in QKeySequence.keyBindings(kind))
    return frozenset((*bound, *_ELSEWHERE))
