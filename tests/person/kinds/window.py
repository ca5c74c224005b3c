"""Actions of the random user on the window: sidebar, inspector, zoom, colours, size, settings."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QDialog, QWidget

from app.settings import Appearance
from app.theme.icons import Icon
from app.widgets.commands import CommandId
from app.widgets.settings_window import SettingsWindow
from tests.person.kinds.registry import kind
from tests.person.person import CTRL, Person

FRAME = 40  # pixels left free for the window's frame and title bar


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
    return person.try_to_run(CommandId.CONTRAST)


@kind("resize the window")
def resize(person: Person) -> bool:
    room = person.window.screen().availableSize()
    width = person.random.randint(640, room.width() - FRAME)
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


@kind("read how Rejoinder remembers")
def read_how_it_remembers(person: Person) -> bool:
    person.run(CommandId.REMEMBERING)
    page = person.window.findChild(QDialog, "remembering")
    assert isinstance(page, QWidget)
    assert page.isVisible()
    QTest.keyClick(page, Qt.Key.Key_Escape)
    person.settle()
    assert not person.window.findChildren(QDialog, "remembering")
    return True


@kind("use the settings")
def use_settings(person: Person) -> bool:
    person.press(Qt.Key.Key_Comma, CTRL)
    settings = person.window.findChild(SettingsWindow)
    assert isinstance(settings, SettingsWindow)
    assert settings.isVisible()
    for tab in settings.tabs.values():
        person.click(tab)
    value = person.core.preferences.value
    appearance = person.random.choice(list(Appearance))
    person.click(settings.tabs[Icon.APPEARANCE])
    person.click(settings.appearance.appearance.buttons[appearance])
    assert person.core.preferences.value.appearance is appearance
    person.click(settings.tabs[Icon.CHAT])
    person.click(settings.chat.read_ahead, settings.chat.read_ahead.rect().center())
    assert person.core.preferences.value.read_ahead is not value.read_ahead
    QTest.keyClick(settings, Qt.Key.Key_Escape)
    assert not settings.isVisible()
    person.settle()
    return True


@kind("change a shortcut and reset it")
def change_shortcut(person: Person) -> bool:
    person.press(Qt.Key.Key_Comma, CTRL)
    settings = person.window.findChild(SettingsWindow)
    assert isinstance(settings, SettingsWindow)
    person.click(settings.tabs[Icon.KEYBOARD])
    page, action = settings.shortcuts, person.window.commands[CommandId.SWITCHER]
    before = action.shortcuts()
    page.field.setText("go to")
    button = page.shown["Go To"]
    person.click(button)
    QTest.keyClick(button, person.random.choice((Qt.Key.Key_J, Qt.Key.Key_N)), CTRL)
    is_refused = action.shortcuts() == before  # Ctrl+N is the shortcut of another command
    assert is_refused == ("New Chat" in page.sentence.text())
    page.reset_all.click()
    page.field.clear()
    assert action.shortcuts() == before
    settings.close()
    person.settle()
    return True


@kind("set the system prompt of new chats")
def set_new_chats(person: Person) -> bool:
    person.press(Qt.Key.Key_Comma, CTRL)
    settings = person.window.findChild(SettingsWindow)
    assert isinstance(settings, SettingsWindow)
    person.click(settings.tabs[Icon.NEW_CHAT])
    page = settings.new_chats
    if page.reset.isEnabled():
        page.reset.click()
    else:
        page.prompt.setPlainText("Be brief.")
    page.flush()
    settings.close()
    person.settle()
    prompt = person.core.preferences.value.new_chat_prompt
    assert prompt in {"", "Be brief."}
    return True
