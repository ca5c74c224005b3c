"""The table of all menu commands, with the id, text, shortcut, menu and options of each command.

COMMANDS is the only place where a command is defined. `make_actions` creates one QAction per row
and connects it to the slot that MainWindow names for this id. `fill_menu_bar` puts the actions into
the menus, in the order of the table. Toolbar, sidebar, tooltips, the shortcut sheet and tests use
the same table and actions. A new command needs a CommandId, a row in COMMANDS and a slot in
MainWindow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMenuBar, QWidget

from app.widgets.menu import Menu
from app.words import attachments, commands as words


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
    COPY_CHAT = "copy-chat"
    DELETE_LAST = "delete-last"
    PREVIOUS_VERSION = "previous-version"
    NEXT_VERSION = "next-version"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuCommand:
    """One row of the command table.

    `keys` is one of Qt's standard keys, or one or several key sequences in Qt's notation. Ctrl means
    ⌘ on a Mac, and Meta means the Control key.
    """

    id: CommandId
    text: str
    hint: str = ""  # tooltip, if `text` needs an explanation
    menu: MenuName
    keys: QKeySequence.StandardKey | str | tuple[str, ...] | None = None
    # True: the conversation list handles `keys`, which are only listed in the shortcut sheet
    list_key: bool = False
    group: str = ""  # title of a submenu with mutually exclusive choices
    checkable: bool = False
    role: QAction.MenuRole = Role.NoRole  # macOS moves a command with a role to the app menu
    separated: bool = False  # True: a separator stands above the command


_NEXT_TAB = "Meta+Tab" if sys.platform == "darwin" else "Ctrl+Tab"
_PREVIOUS_TAB = "Meta+Shift+Tab" if sys.platform == "darwin" else "Ctrl+Shift+Tab"

COMMANDS = (
    MenuCommand(id=CommandId.NEW_CHAT, text=words.NEW_CHAT, menu=MenuName.FILE, keys=Keys.New),
    MenuCommand(
        id=CommandId.NEW_FOLDER, text=words.NEW_FOLDER, menu=MenuName.FILE, keys="Ctrl+Shift+N"
    ),
    MenuCommand(id=CommandId.SWITCHER, text=words.SWITCHER, menu=MenuName.FILE, keys="Ctrl+K"),
    MenuCommand(
        id=CommandId.ATTACH,
        text=attachments.ATTACH,
        menu=MenuName.FILE,
        keys="Ctrl+Shift+A",
        separated=True,
    ),
    MenuCommand(id=CommandId.IMPORT, text=words.IMPORT, menu=MenuName.FILE, separated=True),
    MenuCommand(id=CommandId.EXPORT, text=words.EXPORT, menu=MenuName.FILE, keys="Ctrl+S"),
    MenuCommand(id=CommandId.EXPORT_ALL, text=words.EXPORT_ALL, menu=MenuName.FILE),
    MenuCommand(id=CommandId.SAVE_PDF, text=words.SAVE_PDF, menu=MenuName.FILE),
    MenuCommand(id=CommandId.PRINT, text=words.PRINT, menu=MenuName.FILE, keys=Keys.Print),
    MenuCommand(
        id=CommandId.SETTINGS,
        text=words.SETTINGS,
        menu=MenuName.FILE,
        keys="Ctrl+,",
        role=Role.PreferencesRole,
        separated=True,
    ),
    MenuCommand(
        id=CommandId.CLOSE,
        text=words.CLOSE_WINDOW,
        menu=MenuName.FILE,
        keys=Keys.Close,
        separated=True,
    ),
    MenuCommand(
        id=CommandId.QUIT,
        text=words.QUIT_APP,
        menu=MenuName.FILE,
        keys=Keys.Quit,
        role=Role.QuitRole,
    ),
    MenuCommand(id=CommandId.UNDO, text=words.UNDO, menu=MenuName.EDIT, keys=Keys.Undo),
    MenuCommand(id=CommandId.REDO, text=words.REDO, menu=MenuName.EDIT, keys=Keys.Redo),
    MenuCommand(
        id=CommandId.CUT, text=words.CUT, menu=MenuName.EDIT, keys=Keys.Cut, separated=True
    ),
    MenuCommand(id=CommandId.COPY, text=words.COPY, menu=MenuName.EDIT, keys=Keys.Copy),
    MenuCommand(id=CommandId.PASTE, text=words.PASTE, menu=MenuName.EDIT, keys=Keys.Paste),
    MenuCommand(
        id=CommandId.SELECT_ALL, text=words.SELECT_ALL, menu=MenuName.EDIT, keys=Keys.SelectAll
    ),
    MenuCommand(
        id=CommandId.FIND,
        text=words.FIND,
        menu=MenuName.EDIT,
        keys=Keys.Find,
        separated=True,
    ),
    MenuCommand(
        id=CommandId.FIND_NEXT, text=words.FIND_NEXT, menu=MenuName.EDIT, keys=Keys.FindNext
    ),
    MenuCommand(
        id=CommandId.FIND_PREVIOUS,
        text=words.FIND_PREVIOUS,
        menu=MenuName.EDIT,
        keys=Keys.FindPrevious,
    ),
    MenuCommand(id=CommandId.SEARCH, text=words.SEARCH, menu=MenuName.EDIT, keys="Ctrl+Shift+F"),
    MenuCommand(
        id=CommandId.SIDEBAR,
        text=words.SHOW_SIDEBAR,
        menu=MenuName.VIEW,
        keys="Meta+Ctrl+S" if sys.platform == "darwin" else "F9",
        checkable=True,
    ),
    MenuCommand(
        id=CommandId.INSPECTOR,
        text=words.SHOW_INSPECTOR,
        menu=MenuName.VIEW,
        keys="Alt+Ctrl+I",
        checkable=True,
    ),
    MenuCommand(
        id=CommandId.ARCHIVED, text=words.SHOW_ARCHIVED, menu=MenuName.VIEW, checkable=True
    ),
    MenuCommand(
        id=CommandId.BY_ACTIVITY,
        text=words.BY_ACTIVITY,
        menu=MenuName.VIEW,
        group=words.SORT,
        checkable=True,
    ),
    MenuCommand(
        id=CommandId.BY_CREATION,
        text=words.BY_CREATION,
        menu=MenuName.VIEW,
        group=words.SORT,
        checkable=True,
    ),
    MenuCommand(
        id=CommandId.BY_TITLE,
        text=words.BY_TITLE,
        menu=MenuName.VIEW,
        group=words.SORT,
        checkable=True,
    ),
    MenuCommand(
        id=CommandId.LIGHT,
        text=words.LIGHT,
        menu=MenuName.VIEW,
        group=words.APPEARANCE,
        checkable=True,
        separated=True,
    ),
    MenuCommand(
        id=CommandId.DARK,
        text=words.DARK,
        menu=MenuName.VIEW,
        group=words.APPEARANCE,
        checkable=True,
    ),
    MenuCommand(
        id=CommandId.SYSTEM,
        text=words.SYSTEM,
        menu=MenuName.VIEW,
        group=words.APPEARANCE,
        checkable=True,
    ),
    MenuCommand(
        id=CommandId.CONTRAST, text=words.MORE_CONTRAST, menu=MenuName.VIEW, checkable=True
    ),
    MenuCommand(
        id=CommandId.ZOOM_IN,
        text=words.LARGER_TEXT,
        menu=MenuName.VIEW,
        keys=Keys.ZoomIn,
        separated=True,
    ),
    MenuCommand(
        id=CommandId.ZOOM_OUT, text=words.SMALLER_TEXT, menu=MenuName.VIEW, keys=Keys.ZoomOut
    ),
    MenuCommand(id=CommandId.ZOOM_RESET, text=words.NORMAL_TEXT, menu=MenuName.VIEW, keys="Ctrl+0"),
    MenuCommand(
        id=CommandId.FULL_SCREEN,
        text=words.FULL_SCREEN,
        menu=MenuName.VIEW,
        keys=Keys.FullScreen,
        separated=True,
    ),
    MenuCommand(id=CommandId.STOP, text=words.STOP, menu=MenuName.CHAT, keys="Ctrl+."),
    MenuCommand(id=CommandId.REGENERATE, text=words.REGENERATE, menu=MenuName.CHAT, keys="Ctrl+R"),
    MenuCommand(
        id=CommandId.CONTINUE,
        text=words.CONTINUE,
        hint=words.CONTINUE_HINT,
        menu=MenuName.CHAT,
        keys="Ctrl+Shift+Return",
    ),
    MenuCommand(id=CommandId.EDIT_LAST, text=words.EDIT_LAST, menu=MenuName.CHAT),
    MenuCommand(
        id=CommandId.COPY_LAST, text=words.COPY_LAST, menu=MenuName.CHAT, keys="Ctrl+Shift+C"
    ),
    MenuCommand(id=CommandId.COPY_CHAT, text=words.COPY_CHAT, menu=MenuName.CHAT),
    MenuCommand(
        id=CommandId.DELETE_LAST,
        text=words.DELETE_LAST,
        hint=words.DELETE_LAST_HINT,
        menu=MenuName.CHAT,
    ),
    MenuCommand(
        id=CommandId.PREVIOUS_VERSION,
        text=words.PREVIOUS_VERSION,
        menu=MenuName.CHAT,
        keys="Alt+Ctrl+Left",
        separated=True,
    ),
    MenuCommand(
        id=CommandId.NEXT_VERSION,
        text=words.NEXT_VERSION,
        menu=MenuName.CHAT,
        keys="Alt+Ctrl+Right",
    ),
    MenuCommand(
        id=CommandId.RENAME,
        text=words.RENAME,
        menu=MenuName.CHAT,
        keys="Meta+Ctrl+R" if sys.platform == "darwin" else "F2",
        separated=True,
    ),
    MenuCommand(
        id=CommandId.PIN,
        text=words.PIN,
        menu=MenuName.CHAT,
        keys="Meta+Ctrl+P" if sys.platform == "darwin" else "Ctrl+Shift+P",
    ),
    MenuCommand(
        id=CommandId.ARCHIVE,
        text=words.ARCHIVE,
        menu=MenuName.CHAT,
        keys="Meta+Ctrl+A" if sys.platform == "darwin" else "Ctrl+Shift+E",
    ),
    MenuCommand(
        id=CommandId.DUPLICATE,
        text=words.DUPLICATE,
        hint=words.DUPLICATE_HINT,
        menu=MenuName.CHAT,
        keys="Ctrl+Shift+D",
    ),
    MenuCommand(
        id=CommandId.KEEP_READY,
        text=words.KEEP_READY,
        hint=words.KEEP_READY_HINT,
        menu=MenuName.CHAT,
        checkable=True,
    ),
    MenuCommand(
        id=CommandId.DELETE,
        text=words.DELETE,
        menu=MenuName.CHAT,
        keys="Ctrl+Backspace" if sys.platform == "darwin" else Keys.Delete,
        list_key=True,
    ),
    MenuCommand(id=CommandId.RECENTLY_DELETED, text=words.RECENTLY_DELETED, menu=MenuName.CHAT),
    MenuCommand(
        id=CommandId.CHOOSE_MODEL, text=words.CHOOSE_MODEL, menu=MenuName.MODEL, keys="Ctrl+L"
    ),
    MenuCommand(
        id=CommandId.GET_MODELS,
        text=words.GET_MODELS,
        menu=MenuName.MODEL,
        keys="Ctrl+Shift+M",
    ),
    MenuCommand(id=CommandId.ADD_FOLDER, text=words.ADD_FOLDER, menu=MenuName.MODEL),
    MenuCommand(
        id=CommandId.UNLOAD, text=words.UNLOAD, hint=words.UNLOAD_HINT, menu=MenuName.MODEL
    ),
    MenuCommand(
        id=CommandId.READ_AHEAD,
        text=words.READ_AHEAD,
        hint=words.READ_AHEAD_HINT,
        menu=MenuName.MODEL,
        checkable=True,
        separated=True,
    ),
    MenuCommand(id=CommandId.MINIMISE, text=words.MINIMISE, menu=MenuName.WINDOW, keys="Ctrl+M"),
    MenuCommand(id=CommandId.ZOOM, text=words.ZOOM, menu=MenuName.WINDOW),
    MenuCommand(
        id=CommandId.NEXT_CHAT,
        text=words.NEXT_CHAT,
        menu=MenuName.WINDOW,
        keys=(_NEXT_TAB, "Alt+Ctrl+Down"),
        separated=True,
    ),
    MenuCommand(
        id=CommandId.PREVIOUS_CHAT,
        text=words.PREVIOUS_CHAT,
        menu=MenuName.WINDOW,
        keys=(_PREVIOUS_TAB, "Alt+Ctrl+Up"),
    ),
    MenuCommand(id=CommandId.BACK, text=words.BACK, menu=MenuName.WINDOW, keys="Ctrl+["),
    MenuCommand(id=CommandId.FORWARD, text=words.FORWARD, menu=MenuName.WINDOW, keys="Ctrl+]"),
    MenuCommand(
        id=CommandId.ALL_TO_FRONT,
        text=words.ALL_TO_FRONT,
        menu=MenuName.WINDOW,
        separated=True,
    ),
    MenuCommand(id=CommandId.REMEMBERING, text=words.REMEMBERING, menu=MenuName.HELP),
    MenuCommand(
        id=CommandId.SHORTCUTS, text=words.KEYBOARD_SHORTCUTS, menu=MenuName.HELP, keys="Ctrl+/"
    ),
    MenuCommand(id=CommandId.DIAGNOSTICS, text=words.DIAGNOSTICS, menu=MenuName.HELP),
    MenuCommand(id=CommandId.ABOUT, text=words.ABOUT, menu=MenuName.HELP, role=Role.AboutRole),
)

Actions = Mapping[CommandId, QAction]


def make_actions(parent: QWidget, slots: Mapping[CommandId, Callable[[], object]]) -> Actions:
    """Return one action per command, connected to its slot. A slot takes no argument."""
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


def fill_menu_bar(bar: QMenuBar, actions: Actions) -> Mapping[str, Menu]:
    """Build the menus and submenus in the order of the table. Return them by title."""
    menus: dict[str, Menu] = {}
    for command in COMMANDS:
        if command.menu not in menus:
            menus[command.menu] = Menu(bar, command.menu)
            bar.addMenu(menus[command.menu])
            menus[command.menu].setToolTipsVisible(True)
        menu = menus[command.menu]
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
    text = action.text().removesuffix("…")
    key = action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
    return f"{text}  {key}" if key else text
