"""Its parts, its colours, its size."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QWidget

from app.settings import Appearance
from app.widgets.commands import CommandId
from tests.person.kinds.registry import kind
from tests.person.person import CTRL, Person

FRAME = 40  # pixels; more than any title bar has


@kind("show or hide the sidebar")
def toggle_sidebar(person: Person) -> bool:
    before = person.window.sidebar.isVisible()
    person.run(CommandId.SIDEBAR)
    assert person.window.sidebar.isVisible() is not before
    return True


@kind("show or hide the inspector")
def toggle_inspector(person: Person) -> bool:
    before = person.window.inspector.isVisible()
    person.run(CommandId.INSPECTOR)
    assert person.window.inspector.isVisible() is not before
    return True


@kind("change the size of the text")
def change_zoom(person: Person) -> bool:
    before = person.core.preferences.value.text_zoom
    person.run(person.random.choice((CommandId.ZOOM_IN, CommandId.ZOOM_OUT, CommandId.ZOOM_RESET)))
    return person.core.preferences.value.text_zoom != before


@kind("change the colours")
def change_appearance(person: Person) -> bool:
    before = person.core.preferences.value.appearance
    command, appearance = person.random.choice(
        (
            (CommandId.LIGHT, Appearance.LIGHT),
            (CommandId.DARK, Appearance.DARK),
            (CommandId.SYSTEM, Appearance.SYSTEM),
        )
    )
    person.run(command)
    assert person.core.preferences.value.appearance is appearance
    return before is not appearance


@kind("more or less contrast")
def change_contrast(person: Person) -> bool:
    return person.run(CommandId.CONTRAST)


@kind("resize the window")
def resize(person: Person) -> bool:
    room = person.window.screen().availableSize()
    width = person.random.randint(640, room.width())
    height = person.random.randint(480, room.height() - FRAME)
    person.window.resize(width, height)
    person.settle()
    assert (person.window.width(), person.window.height()) == (width, height)
    return True


@kind("look at the shortcuts")
def look_at_shortcuts(person: Person) -> bool:
    person.press(Qt.Key.Key_Slash, CTRL)
    sheet = person.window.findChild(QDialog, "shortcuts")
    assert isinstance(sheet, QWidget)
    assert sheet.isVisible()
    QTest.keyClick(sheet, Qt.Key.Key_Escape)
    person.settle()
    assert not person.window.findChildren(QDialog, "shortcuts")
    return True
