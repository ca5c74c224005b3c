"""Every command of the window, once: menus, tooltips and tests are made from this table."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar, QWidget


class CommandId(StrEnum):
    """Names of commands; also the object names of their actions."""

    NEW_CHAT = "new-chat"
    CLOSE = "close"
    QUIT = "quit"
    UNDO = "undo"
    REDO = "redo"
    CUT = "cut"
    COPY = "copy"
    PASTE = "paste"
    SELECT_ALL = "select-all"
    FIND = "find"
    FIND_NEXT = "find-next"
    FIND_PREVIOUS = "find-previous"
    SIDEBAR = "sidebar"
    INSPECTOR = "inspector"
    LIGHT = "light"
    DARK = "dark"
    SYSTEM = "system"
    CONTRAST = "contrast"
    ZOOM_IN = "zoom-in"
    ZOOM_OUT = "zoom-out"
    ZOOM_RESET = "zoom-reset"
    FULL_SCREEN = "full-screen"
    STOP = "stop"
    REGENERATE = "regenerate"
    CONTINUE = "continue"
    EDIT_LAST = "edit-last"
    COPY_LAST = "copy-last"
    DELETE_LAST = "delete-last"
    PREVIOUS_VERSION = "previous-version"
    NEXT_VERSION = "next-version"
    RENAME = "rename"
    KEEP_READY = "keep-ready"
    DELETE = "delete"
    CHOOSE_MODEL = "choose-model"
    ADD_FOLDER = "add-folder"
    READ_AHEAD = "read-ahead"
    MINIMISE = "minimise"
    SHORTCUTS = "shortcuts"
    ABOUT = "about"


class MenuName(StrEnum):
    """The menu bar, from the left."""

    FILE = "File"
    EDIT = "Edit"
    VIEW = "View"
    CHAT = "Chat"
    MODEL = "Model"
    WINDOW = "Window"
    HELP = "Help"


APPEARANCE = "Appearance"
Keys = QKeySequence.StandardKey
Role = QAction.MenuRole


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One row. keys are Qt's standard key or a sequence, in which Ctrl is ⌘ on a Mac.

    A list key works only while the conversation list has the focus, so it is shown, not bound.
    """

    id: CommandId
    text: str
    hint: str = ""  # a sentence for what the text does not say
    menu: MenuName
    keys: QKeySequence.StandardKey | str | None = None
    list_key: bool = False
    group: str = ""  # the submenu whose choices exclude each other
    checkable: bool = False
    role: QAction.MenuRole = Role.NoRole
    separated: bool = False  # a line above it


COMMANDS = (
    Command(id=CommandId.NEW_CHAT, text="New Chat", menu=MenuName.FILE, keys=Keys.New),
    Command(
        id=CommandId.CLOSE, text="Close Window", menu=MenuName.FILE, keys=Keys.Close, separated=True
    ),
    Command(
        id=CommandId.QUIT,
        text="Quit Rejoinder",
        menu=MenuName.FILE,
        keys=Keys.Quit,
        role=Role.QuitRole,
    ),
    Command(id=CommandId.UNDO, text="Undo", menu=MenuName.EDIT, keys=Keys.Undo),
    Command(id=CommandId.REDO, text="Redo", menu=MenuName.EDIT, keys=Keys.Redo),
    Command(id=CommandId.CUT, text="Cut", menu=MenuName.EDIT, keys=Keys.Cut, separated=True),
    Command(id=CommandId.COPY, text="Copy", menu=MenuName.EDIT, keys=Keys.Copy),
    Command(id=CommandId.PASTE, text="Paste", menu=MenuName.EDIT, keys=Keys.Paste),
    Command(id=CommandId.SELECT_ALL, text="Select All", menu=MenuName.EDIT, keys=Keys.SelectAll),
    Command(
        id=CommandId.FIND,
        text="Find in Chat…",
        menu=MenuName.EDIT,
        keys=Keys.Find,
        separated=True,
    ),
    Command(id=CommandId.FIND_NEXT, text="Find Next", menu=MenuName.EDIT, keys=Keys.FindNext),
    Command(
        id=CommandId.FIND_PREVIOUS,
        text="Find Previous",
        menu=MenuName.EDIT,
        keys=Keys.FindPrevious,
    ),
    Command(
        id=CommandId.SIDEBAR,
        text="Show Sidebar",
        menu=MenuName.VIEW,
        keys="Meta+Ctrl+S" if sys.platform == "darwin" else "F9",
        checkable=True,
    ),
    Command(
        id=CommandId.INSPECTOR,
        text="Show Inspector",
        menu=MenuName.VIEW,
        keys="Alt+Ctrl+I",
        checkable=True,
    ),
    Command(
        id=CommandId.LIGHT,
        text="Light",
        menu=MenuName.VIEW,
        group=APPEARANCE,
        checkable=True,
        separated=True,
    ),
    Command(id=CommandId.DARK, text="Dark", menu=MenuName.VIEW, group=APPEARANCE, checkable=True),
    Command(
        id=CommandId.SYSTEM, text="System", menu=MenuName.VIEW, group=APPEARANCE, checkable=True
    ),
    Command(id=CommandId.CONTRAST, text="More Contrast", menu=MenuName.VIEW, checkable=True),
    Command(
        id=CommandId.ZOOM_IN,
        text="Larger Text",
        menu=MenuName.VIEW,
        keys=Keys.ZoomIn,
        separated=True,
    ),
    Command(id=CommandId.ZOOM_OUT, text="Smaller Text", menu=MenuName.VIEW, keys=Keys.ZoomOut),
    Command(id=CommandId.ZOOM_RESET, text="Normal Text", menu=MenuName.VIEW, keys="Ctrl+0"),
    Command(
        id=CommandId.FULL_SCREEN,
        text="Full Screen",
        menu=MenuName.VIEW,
        keys=Keys.FullScreen,
        checkable=True,
        separated=True,
    ),
    Command(id=CommandId.STOP, text="Stop", menu=MenuName.CHAT, keys="Ctrl+."),
    Command(id=CommandId.REGENERATE, text="Regenerate", menu=MenuName.CHAT, keys="Ctrl+R"),
    Command(
        id=CommandId.CONTINUE,
        text="Continue",
        hint="Go on with an answer that was stopped",
        menu=MenuName.CHAT,
        keys="Ctrl+Shift+Return",
    ),
    Command(id=CommandId.EDIT_LAST, text="Edit Last Message", menu=MenuName.CHAT),
    Command(
        id=CommandId.COPY_LAST, text="Copy Last Answer", menu=MenuName.CHAT, keys="Ctrl+Shift+C"
    ),
    Command(
        id=CommandId.DELETE_LAST,
        text="Delete Last Message",
        hint="With its answer; Undo brings both back",
        menu=MenuName.CHAT,
    ),
    Command(
        id=CommandId.PREVIOUS_VERSION,
        text="Previous Version",
        menu=MenuName.CHAT,
        keys="Alt+Ctrl+Left",
        separated=True,
    ),
    Command(
        id=CommandId.NEXT_VERSION,
        text="Next Version",
        menu=MenuName.CHAT,
        keys="Alt+Ctrl+Right",
    ),
    Command(
        id=CommandId.RENAME,
        text="Rename…",
        menu=MenuName.CHAT,
        keys="Meta+Ctrl+R" if sys.platform == "darwin" else "F2",
        separated=True,
    ),
    Command(
        id=CommandId.KEEP_READY,
        text="Keep Ready",
        hint="Other chats make room first, so that this one goes on at once",
        menu=MenuName.CHAT,
        checkable=True,
    ),
    Command(
        id=CommandId.DELETE,
        text="Delete",
        menu=MenuName.CHAT,
        keys="Ctrl+Backspace" if sys.platform == "darwin" else Keys.Delete,
        list_key=True,
    ),
    Command(id=CommandId.CHOOSE_MODEL, text="Choose Model…", menu=MenuName.MODEL, keys="Ctrl+L"),
    Command(id=CommandId.ADD_FOLDER, text="Add Model Folder…", menu=MenuName.MODEL),
    Command(
        id=CommandId.READ_AHEAD,
        text="Read Ahead While Idle",
        hint="While nothing is being answered, read the open chat and long drafts before you send",
        menu=MenuName.MODEL,
        checkable=True,
        separated=True,
    ),
    Command(id=CommandId.MINIMISE, text="Minimize", menu=MenuName.WINDOW, keys="Ctrl+M"),
    Command(id=CommandId.SHORTCUTS, text="Keyboard Shortcuts", menu=MenuName.HELP, keys="Ctrl+/"),
    Command(id=CommandId.ABOUT, text="About Rejoinder", menu=MenuName.HELP, role=Role.AboutRole),
)

Actions = Mapping[CommandId, QAction]


def make_actions(parent: QWidget, slots: Mapping[CommandId, Callable[[], object]]) -> Actions:
    """One action a command, bound to its slot, which takes no argument."""
    groups: dict[str, QActionGroup] = {}
    actions: dict[CommandId, QAction] = {}
    for command in COMMANDS:
        action = QAction(command.text, parent)
        action.setObjectName(command.id)
        action.setMenuRole(command.role)
        action.setCheckable(command.checkable)
        if command.hint:
            action.setToolTip(command.hint)
        keys = key_sequences(command)
        if keys and not command.list_key:
            action.setShortcuts(keys)
        if command.group:
            if command.group not in groups:
                groups[command.group] = QActionGroup(parent)
            groups[command.group].addAction(action)
        action.triggered.connect(slots[command.id])
        actions[command.id] = action
    return actions


def fill_menu_bar(bar: QMenuBar, actions: Actions) -> None:
    """Lay the actions out in the order of the table."""
    menus: dict[str, QMenu] = {}
    for command in COMMANDS:
        if command.menu not in menus:
            menus[command.menu] = bar.addMenu(command.menu)
            menus[command.menu].setToolTipsVisible(True)
        menu = menus[command.menu]
        if command.separated:
            menu.addSeparator()
        if command.group:
            if command.group not in menus:
                menus[command.group] = menu.addMenu(command.group)
            menu = menus[command.group]
        menu.addAction(actions[command.id])


def key_sequences(command: Command) -> list[QKeySequence]:
    """The keys of a command on this platform."""
    match command.keys:
        case None:
            return []
        case str():
            return [QKeySequence(command.keys)]
        case _:
            return QKeySequence.keyBindings(command.keys)


def tooltip(action: QAction) -> str:
    """What a button for this action says: its words, then its key."""
    words = action.text().removesuffix("…")
    key = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
    return f"{words}  {key}" if key else words
