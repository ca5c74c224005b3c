"""The table of all menu commands, with the id, text, shortcut and options of each command.

MENUS is the only place where a command is defined; COMMANDS is the same table without the menus.
`make_actions` creates one QAction per row. The owner of a command, such as ChatCommands, connects
it with `connect_actions`. `fill_menu_bar` puts the actions into the menus, in the order of the
table. Toolbar, sidebar, tooltips, the shortcut sheet and tests use the same table and actions. A
new command needs a CommandId, a row in MENUS and an owner.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from itertools import chain

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenuBar, QWidget

from app.widgets.menu import Menu
from app.widgets.menu_text import plain, shown
from app.words import answers, attachments, commands as words, previews


class CommandId(StrEnum):
    """Ids of the commands. An id is also the objectName of its QAction."""

    NEW_CHAT = "new-chat"
    NEW_FOLDER = "new-folder"
    ATTACH = "attach"
    IMPORT = "import"
    EXPORT = "export"
    EXPORT_ALL = "export-all"
    SAVE_PDF = "save-pdf"
    PRINT = "print"
    SETTINGS = "settings"
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
    SEARCH = "search"
    SWITCHER = "switcher"
    SIDEBAR = "sidebar"
    ARCHIVED = "archived"
    BY_ACTIVITY = "by-activity"
    BY_CREATION = "by-creation"
    BY_TITLE = "by-title"
    INSPECTOR = "inspector"
    BRANCH_MAP = "branch-map"
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
    ANSWERS_2 = "answers-2"
    ANSWERS_3 = "answers-3"
    ANSWERS_4 = "answers-4"
    CONTINUE = "continue"
    EDIT_LAST = "edit-last"
    PREVIEW_EDITS = "preview-edits"
    COPY_LAST = "copy-last"
    COPY_CHAT = "copy-chat"
    WHY_READ = "why-read"
    DELETE_LAST = "delete-last"
    PREVIOUS_VERSION = "previous-version"
    NEXT_VERSION = "next-version"
    SIDE_BY_SIDE = "side-by-side"
    RENAME = "rename"
    PIN = "pin"
    ARCHIVE = "archive"
    DUPLICATE = "duplicate"
    KEEP_READY = "keep-ready"
    DELETE = "delete"
    RECENTLY_DELETED = "recently-deleted"
    CHOOSE_MODEL = "choose-model"
    GET_MODELS = "get-models"
    ADD_FOLDER = "add-folder"
    UNLOAD = "unload"
    READ_AHEAD = "read-ahead"
    MEMORY_MAP = "memory-map"
    MINIMISE = "minimise"
    ZOOM = "zoom"
    NEXT_CHAT = "next-chat"
    PREVIOUS_CHAT = "previous-chat"
    BACK = "back"
    FORWARD = "forward"
    ALL_TO_FRONT = "all-to-front"
    REMEMBERING = "remembering"
    SHORTCUTS = "shortcuts"
    DIAGNOSTICS = "diagnostics"
    ABOUT = "about"


class MenuName(StrEnum):
    """Titles of the menus, in the order of the menu bar."""

    FILE = words.MENU_FILE
    EDIT = words.MENU_EDIT
    VIEW = words.MENU_VIEW
    CHAT = words.MENU_CHAT
    MODEL = words.MENU_MODEL
    WINDOW = words.MENU_WINDOW
    HELP = words.MENU_HELP


Keys = QKeySequence.StandardKey
Role = QAction.MenuRole


@dataclass(frozen=True, slots=True)
class MenuCommand:
    """One row of the command table.

    `keys` is one of Qt's standard keys, or one or several key sequences in Qt's notation. Ctrl
    means ⌘ on a Mac, and Meta means the Control key.
    """

    id: CommandId
    text: str
    _: KW_ONLY
    hint: str = ""  # tooltip, if `text` needs an explanation
    keys: QKeySequence.StandardKey | str | tuple[str, ...] | None = None
    # True: the conversation list handles `keys`, which are only listed in the shortcut sheet
    list_key: bool = False
    group: str = ""  # title of a submenu with mutually exclusive choices
    submenu: str = ""  # title of a submenu with other commands
    checkable: bool = False
    role: QAction.MenuRole = Role.NoRole  # macOS moves a command with a role to the app menu
    separated: bool = False  # True: a separator stands above the command


_IS_MAC = sys.platform == "darwin"
_NEXT_TAB = "Meta+Tab" if _IS_MAC else "Ctrl+Tab"
_PREVIOUS_TAB = "Meta+Shift+Tab" if _IS_MAC else "Ctrl+Shift+Tab"

MENUS: Mapping[MenuName, tuple[MenuCommand, ...]] = {
    MenuName.FILE: (
        MenuCommand(CommandId.NEW_CHAT, words.NEW_CHAT, keys=Keys.New),
        MenuCommand(CommandId.NEW_FOLDER, words.NEW_FOLDER, keys="Ctrl+Shift+N"),
        MenuCommand(CommandId.SWITCHER, words.SWITCHER, keys="Ctrl+K"),
        MenuCommand(CommandId.ATTACH, attachments.ATTACH, keys="Ctrl+Shift+A", separated=True),
        MenuCommand(CommandId.IMPORT, words.IMPORT, separated=True),
        MenuCommand(CommandId.EXPORT, words.EXPORT, keys="Ctrl+S"),
        MenuCommand(CommandId.EXPORT_ALL, words.EXPORT_ALL),
        MenuCommand(CommandId.SAVE_PDF, words.SAVE_PDF),
        MenuCommand(CommandId.PRINT, words.PRINT, keys=Keys.Print),
        MenuCommand(
            CommandId.SETTINGS,
            words.SETTINGS,
            keys="Ctrl+,",
            role=Role.PreferencesRole,
            separated=True,
        ),
        MenuCommand(CommandId.CLOSE, words.CLOSE_WINDOW, keys=Keys.Close, separated=True),
        MenuCommand(CommandId.QUIT, words.QUIT_APP, keys=Keys.Quit, role=Role.QuitRole),
    ),
    MenuName.EDIT: (
        MenuCommand(CommandId.UNDO, words.UNDO, keys=Keys.Undo),
        MenuCommand(CommandId.REDO, words.REDO, keys=Keys.Redo),
        MenuCommand(CommandId.CUT, words.CUT, keys=Keys.Cut, separated=True),
        MenuCommand(CommandId.COPY, words.COPY, keys=Keys.Copy),
        MenuCommand(CommandId.PASTE, words.PASTE, keys=Keys.Paste),
        MenuCommand(CommandId.SELECT_ALL, words.SELECT_ALL, keys=Keys.SelectAll),
        MenuCommand(CommandId.FIND, words.FIND, keys=Keys.Find, separated=True),
        MenuCommand(CommandId.FIND_NEXT, words.FIND_NEXT, keys=Keys.FindNext),
        MenuCommand(CommandId.FIND_PREVIOUS, words.FIND_PREVIOUS, keys=Keys.FindPrevious),
        MenuCommand(CommandId.SEARCH, words.SEARCH, keys="Ctrl+Shift+F"),
    ),
    MenuName.VIEW: (
        MenuCommand(
            CommandId.SIDEBAR,
            words.SHOW_SIDEBAR,
            keys="Meta+Ctrl+S" if _IS_MAC else "F9",
            checkable=True,
        ),
        MenuCommand(CommandId.INSPECTOR, words.SHOW_INSPECTOR, keys="Alt+Ctrl+I", checkable=True),
        MenuCommand(CommandId.BRANCH_MAP, words.SHOW_BRANCH_MAP, keys="Ctrl+Shift+B"),
        MenuCommand(CommandId.ARCHIVED, words.SHOW_ARCHIVED, checkable=True),
        MenuCommand(CommandId.BY_ACTIVITY, words.BY_ACTIVITY, group=words.SORT, checkable=True),
        MenuCommand(CommandId.BY_CREATION, words.BY_CREATION, group=words.SORT, checkable=True),
        MenuCommand(CommandId.BY_TITLE, words.BY_TITLE, group=words.SORT, checkable=True),
        MenuCommand(
            CommandId.LIGHT, words.LIGHT, group=words.APPEARANCE, checkable=True, separated=True
        ),
        MenuCommand(CommandId.DARK, words.DARK, group=words.APPEARANCE, checkable=True),
        MenuCommand(CommandId.SYSTEM, words.SYSTEM, group=words.APPEARANCE, checkable=True),
        MenuCommand(CommandId.CONTRAST, words.MORE_CONTRAST, checkable=True),
        MenuCommand(CommandId.ZOOM_IN, words.LARGER_TEXT, keys=Keys.ZoomIn, separated=True),
        MenuCommand(CommandId.ZOOM_OUT, words.SMALLER_TEXT, keys=Keys.ZoomOut),
        MenuCommand(CommandId.ZOOM_RESET, words.NORMAL_TEXT, keys="Ctrl+0"),
        MenuCommand(CommandId.FULL_SCREEN, words.FULL_SCREEN, keys=Keys.FullScreen, separated=True),
    ),
    MenuName.CHAT: (
        MenuCommand(CommandId.STOP, words.STOP, keys="Ctrl+."),
        MenuCommand(CommandId.REGENERATE, words.REGENERATE, keys="Ctrl+R"),
        *(
            MenuCommand(
                id_,
                words.send_or_regenerate(count),
                hint=words.SEVERAL_HINT,
                keys=f"Alt+Ctrl+{count}",
                submenu=words.SEVERAL_ANSWERS,
            )
            for count, id_ in enumerate(
                (CommandId.ANSWERS_2, CommandId.ANSWERS_3, CommandId.ANSWERS_4), 2
            )
        ),
        MenuCommand(
            CommandId.CONTINUE, words.CONTINUE, hint=words.CONTINUE_HINT, keys="Ctrl+Shift+Return"
        ),
        MenuCommand(CommandId.EDIT_LAST, words.EDIT_LAST),
        MenuCommand(
            CommandId.PREVIEW_EDITS,
            words.PREVIEW_EDITS,
            hint=previews.SWITCH_TIP,
            keys="Alt+Ctrl+P",
            checkable=True,
        ),
        MenuCommand(CommandId.COPY_LAST, words.COPY_LAST, keys="Ctrl+Shift+C"),
        MenuCommand(CommandId.COPY_CHAT, words.COPY_CHAT),
        MenuCommand(CommandId.WHY_READ, words.WHY_READ, hint=words.WHY_READ_HINT, keys="Ctrl+I"),
        MenuCommand(CommandId.DELETE_LAST, words.DELETE_LAST, hint=words.DELETE_LAST_HINT),
        MenuCommand(
            CommandId.PREVIOUS_VERSION, words.PREVIOUS_VERSION, keys="Alt+Ctrl+Left", separated=True
        ),
        MenuCommand(CommandId.NEXT_VERSION, words.NEXT_VERSION, keys="Alt+Ctrl+Right"),
        MenuCommand(CommandId.SIDE_BY_SIDE, answers.SHOW, keys="Alt+Ctrl+V", checkable=True),
        MenuCommand(
            CommandId.RENAME, words.RENAME, keys="Meta+Ctrl+R" if _IS_MAC else "F2", separated=True
        ),
        MenuCommand(CommandId.PIN, words.PIN, keys="Meta+Ctrl+P" if _IS_MAC else "Ctrl+Shift+P"),
        MenuCommand(
            CommandId.ARCHIVE, words.ARCHIVE, keys="Meta+Ctrl+A" if _IS_MAC else "Ctrl+Shift+E"
        ),
        MenuCommand(
            CommandId.DUPLICATE, words.DUPLICATE, hint=words.DUPLICATE_HINT, keys="Ctrl+Shift+D"
        ),
        MenuCommand(
            CommandId.KEEP_READY, words.KEEP_READY, hint=words.KEEP_READY_HINT, checkable=True
        ),
        MenuCommand(
            CommandId.DELETE,
            words.DELETE,
            keys="Ctrl+Backspace" if _IS_MAC else Keys.Delete,
            list_key=True,
        ),
        MenuCommand(CommandId.RECENTLY_DELETED, words.RECENTLY_DELETED),
    ),
    MenuName.MODEL: (
        MenuCommand(CommandId.CHOOSE_MODEL, words.CHOOSE_MODEL, keys="Ctrl+L"),
        MenuCommand(CommandId.GET_MODELS, words.GET_MODELS, keys="Ctrl+Shift+M"),
        MenuCommand(CommandId.ADD_FOLDER, words.ADD_FOLDER),
        MenuCommand(CommandId.UNLOAD, words.UNLOAD, hint=words.UNLOAD_HINT),
        MenuCommand(
            CommandId.MEMORY_MAP, words.MEMORY_MAP, hint=words.MEMORY_MAP_HINT, keys="Alt+Ctrl+M"
        ),
        MenuCommand(
            CommandId.READ_AHEAD,
            words.READ_AHEAD,
            hint=words.READ_AHEAD_HINT,
            checkable=True,
            separated=True,
        ),
    ),
    MenuName.WINDOW: (
        MenuCommand(CommandId.MINIMISE, words.MINIMISE, keys="Ctrl+M"),
        MenuCommand(CommandId.ZOOM, words.ZOOM),
        MenuCommand(
            CommandId.NEXT_CHAT, words.NEXT_CHAT, keys=(_NEXT_TAB, "Alt+Ctrl+Down"), separated=True
        ),
        MenuCommand(
            CommandId.PREVIOUS_CHAT, words.PREVIOUS_CHAT, keys=(_PREVIOUS_TAB, "Alt+Ctrl+Up")
        ),
        MenuCommand(CommandId.BACK, words.BACK, keys="Ctrl+["),
        MenuCommand(CommandId.FORWARD, words.FORWARD, keys="Ctrl+]"),
        MenuCommand(CommandId.ALL_TO_FRONT, words.ALL_TO_FRONT, separated=True),
    ),
    MenuName.HELP: (
        MenuCommand(CommandId.REMEMBERING, words.REMEMBERING),
        MenuCommand(CommandId.SHORTCUTS, words.KEYBOARD_SHORTCUTS, keys="Ctrl+/"),
        MenuCommand(CommandId.DIAGNOSTICS, words.DIAGNOSTICS),
        MenuCommand(CommandId.ABOUT, words.ABOUT, role=Role.AboutRole),
    ),
}
COMMANDS = tuple(chain.from_iterable(MENUS.values()))

Actions = Mapping[CommandId, QAction]


def make_actions(parent: QWidget) -> Actions:
    """Return one action per command. No action is connected yet."""
    groups: dict[str, QActionGroup] = {}
    actions: dict[CommandId, QAction] = {}
    for command in COMMANDS:
        action = QAction(plain(command.text), parent)
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
        actions[command.id] = action
    return actions


def connect_actions(actions: Actions, slots: Mapping[CommandId, Callable[[], object]]) -> None:
    """Connect actions to their slots, which take no argument."""
    for command, slot in slots.items():
        actions[command].triggered.connect(slot)


def fill_menu_bar(bar: QMenuBar, actions: Actions) -> Mapping[str, Menu]:
    """Build the menus and submenus in the order of the table. Return them by title."""
    menus: dict[str, Menu] = {}
    for title, commands in MENUS.items():
        top = menus[title] = Menu(bar, title)
        bar.addMenu(top)
        top.setToolTipsVisible(True)
        for command in commands:
            menu = top
            if command.submenu:
                if command.submenu not in menus:
                    menus[command.submenu] = menu.add_menu(command.submenu)
                    menus[command.submenu].setToolTipsVisible(True)
                menu = menus[command.submenu]
            if command.separated:
                menu.addSeparator()
            if command.group:
                if command.group not in menus:
                    menus[command.group] = menu.add_menu(command.group)
                menu = menus[command.group]
            menu.addAction(actions[command.id])
    return menus


def key_sequences(command: MenuCommand) -> list[QKeySequence]:
    """Return the shortcuts of a command on this platform. The list may be empty."""
    match command.keys:
        case None:
            return []
        case str():
            return [QKeySequence(command.keys)]
        case tuple():
            return [QKeySequence(keys) for keys in command.keys]
        case _:
            return QKeySequence.keyBindings(command.keys)


def tooltip(action: QAction) -> str:
    """Return the tooltip of a button for this action: the action's text, then its shortcut."""
    text = shown(action.text()).removesuffix("…")
    key = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
    return f"{text}  {key}" if key else text
