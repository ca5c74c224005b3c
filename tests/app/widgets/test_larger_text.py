"""Tests of Larger Text in all parts of the window, and of texts in the smallest window."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QCheckBox,
    QLabel,
    QLineEdit,
    QMenu,
    QPushButton,
    QWidget,
)

from app.conversation.attachments import make_attachment
from app.theme.icons import GRID, Icon
from app.theme.tokens import Size, Space
from app.widgets import settings_window
from app.widgets.button import Button
from app.widgets.commands import CommandId
from app.widgets.line_height import Sentences
from app.widgets.menu import Menu
from app.widgets.message_sheet import MessageSheet
from app.widgets.models_window import ModelsWindow
from app.widgets.scroller import VerticalScroller
from app.widgets.settings_window import SettingsWindow
from app.widgets.transcript.jump import JumpButton
from engine.errors import OutOfMemoryError
from engine.problem import Problem
from tests.fakes.held_chats import report_all_in_memory
from tests.fakes.pixels import pixels_of
from tests.fakes.stage import Stage

SENTENCE = "This is a sentence of several words about something that has just ended in the window."
TextWidget = QLabel | QPushButton | QLineEdit


@pytest.fixture
def full(stage: Stage) -> Iterator[Stage]:
    """Yield a window with texts in all its parts: toast, notice, memory line, queued message, file."""
    stage.chat("First", "Yes.")
    stage.core.deletions.delete_all((stage.current,))
    stage.send("Second")
    stage.send("Third")
    file = make_attachment("notes.md", "md", "Words. " * 20)
    stage.core.draft_files.set(stage.current, (file,))
    report_all_in_memory(stage, total_bytes=3_120_000_000)
    stage.pane.notice.offer(OutOfMemoryError("8 GB were needed.").problem, "Retry", stage.settle)
    stage.window.toast.say(SENTENCE)
    stage.settle()
    yield stage
    stage.core.draft_files.set(stage.current, ())  # so that nothing is left to count
    stage.settle()


def texts(stage: Stage) -> Iterator[TextWidget]:
    """Yield the visible labels, buttons and fields of the sidebar, the chat and the toast."""
    window = stage.window
    for part in (window.sidebar, window.pane, window.toast):
        for kind in (QLabel, QPushButton, QLineEdit):
            yield from (one for one in part.findChildren(kind) if one.isVisible() and one.text())


def test_larger_text_scales_all_texts_of_sidebar_and_chat(full: Stage) -> None:
    before = {one: one.font().pixelSize() for one in texts(full)}
    assert len(before) > 12
    full.core.preferences.set_zoom(200)
    full.settle()
    same = [one.text() for one, size in before.items() if one.font().pixelSize() != 2 * size]
    assert same == []


def test_larger_text_is_not_clipped(full: Stage) -> None:
    full.core.preferences.set_zoom(200)
    full.settle()
    clipped = [
        one.text()
        for one in texts(full)
        if one.height() < one.fontMetrics().height() or one.width() < one.minimumSizeHint().width()
    ]
    assert clipped == []
    chip = full.pane.composer.files.chips[0]
    assert chip.height() >= 3 * chip.fontMetrics().height()


def test_memory_line_that_is_too_long_leaves_out_the_size(full: Stage) -> None:
    line = full.window.sidebar.memory
    assert line.text() == "1 chat in memory · 3.1 GB"
    full.core.preferences.set_zoom(180)
    full.settle()
    assert line.text() == "1 chat in memory"
    assert line.fontMetrics().horizontalAdvance(line.text()) <= line.width() - 2 * Space.M


def test_toast_is_as_high_as_its_lines(full: Stage) -> None:
    toast = full.window.toast
    assert toast.height() == toast.heightForWidth(toast.width())
    label = toast.findChildren(QLabel)[0]
    assert label.height() <= 2 * label.fontMetrics().lineSpacing() + Space.M


def test_toast_touches_the_composer_so_that_it_covers_the_jump_button(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    toast, window = stage.window.toast, stage.window
    toast.say(SENTENCE)
    stage.settle()
    assert toast.geometry().bottom() + 1 == stage.composer.mapTo(window, QPoint(0, 0)).y()


def test_long_title_takes_the_whole_room_in_the_smallest_window(stage: Stage) -> None:
    stage.window.resize(Size.WINDOW_MIN_WIDTH, Size.WINDOW_MIN_HEIGHT)
    stage.core.organiser.rename(stage.current, "i" * 200)
    stage.settle()
    toolbar = stage.window.toolbar
    button = toolbar.title_button
    letter = button.fontMetrics().horizontalAdvance("i")
    free = toolbar.model_button.x() - Space.S - (button.x() + button.width())
    assert 0 <= free <= letter
    assert button.width() >= button.sizeHint().width()


def test_sidebar_leaves_the_smallest_window_to_the_chat_in_larger_text(stage: Stage) -> None:
    window = stage.window
    window.resize(Size.WINDOW_MIN_WIDTH, Size.WINDOW_MIN_HEIGHT)
    stage.settle()
    assert window.sidebar.isVisible()
    stage.core.preferences.set_zoom(150)
    stage.settle()
    assert not window.sidebar.isVisible()
    assert window.pane.width() == Size.WINDOW_MIN_WIDTH


def test_name_of_a_model_that_is_too_long_keeps_its_beginning(stage: Stage) -> None:
    stage.window.resize(Size.WINDOW_MIN_WIDTH, Size.WINDOW_MIN_HEIGHT)
    toolbar = stage.window.toolbar
    toolbar.set_model("Qwen3.5 9B 4-bit with a name that is much too long")
    stage.settle()
    assert toolbar.model_button.text().startswith("Qwen3.5 9B")
    assert toolbar.model_button.text().endswith("…")


def test_name_of_the_model_leaves_room_for_the_title_in_the_smallest_window(stage: Stage) -> None:
    stage.window.resize(Size.WINDOW_MIN_WIDTH, Size.WINDOW_MIN_HEIGHT)
    toolbar = stage.window.toolbar
    stage.core.organiser.rename(stage.current, "A long title of a chat")
    stage.core.preferences.set_zoom(160)
    stage.settle()
    toolbar.set_model("A-Model-With-A-Name-4bit")
    stage.settle()
    assert toolbar.model_button.text() != "A-Model-With-A-Name-4bit"
    free = toolbar.title_button.width() + toolbar.model_button.width()
    assert toolbar.title_button.width() >= 0.3 * free
    assert toolbar.inspector_button.geometry().right() <= toolbar.width()
    stage.window.resize(1400, 900)
    stage.settle()
    assert toolbar.model_button.text() == "A-Model-With-A-Name-4bit"


def test_inspector_and_composer_fit_beside_each_other_in_the_smallest_window(stage: Stage) -> None:
    window = stage.window
    window.resize(Size.WINDOW_MIN_WIDTH, Size.WINDOW_MIN_HEIGHT)
    stage.core.preferences.set_zoom(160)
    stage.run(CommandId.INSPECTOR)
    stage.settle()
    inspector, composer = window.inspector, stage.composer
    assert inspector.mapTo(window, inspector.rect().topRight()).x() < window.width()
    for field in (inspector.prompt, inspector.sampling):
        assert field.mapTo(inspector, field.rect().topRight()).x() < inspector.width()
    assert composer.width() <= stage.pane.width()
    assert composer.button.geometry().right() <= composer.box.width()
    assert composer.box.height() >= composer.box.minimumSizeHint().height()


# The offscreen platform logs these messages for a popup.
@pytest.mark.qt_log_ignore("does not support (raise|grabbing|propagate)", extend=True)
def test_field_of_the_switcher_has_its_height_and_scales(stage: Stage) -> None:
    stage.run(CommandId.SWITCHER)
    field = stage.window.switching.popup.field
    assert field.height() == Size.SWITCHER_FIELD
    size = field.font().pixelSize()
    stage.core.preferences.set_zoom(150)
    stage.settle()
    assert field.font().pixelSize() == round(1.5 * size)
    assert field.height() == 1.5 * Size.SWITCHER_FIELD


def test_notice_shows_its_whole_text_in_the_smallest_window(stage: Stage) -> None:
    stage.window.resize(Size.WINDOW_MIN_WIDTH, Size.WINDOW_MIN_HEIGHT)
    stage.chat("Hello", "Hi")
    notice = stage.pane.notice
    log = "A line of the log.\n" * 40
    notice.say(Problem(title=SENTENCE[:20], cause=SENTENCE, advice=SENTENCE, details=log))
    notice.details_button.click()
    stage.settle()
    labels = [one for one in notice.findChildren(Sentences) if one.isVisible()]
    assert len(labels) == 3
    for label in labels:
        assert label.height() >= label.heightForWidth(label.width())
    assert notice.details == log


def test_icon_buttons_scale_with_the_text(stage: Stage) -> None:
    button = stage.window.toolbar.inspector_button
    assert button.width() == Size.CONTROL
    stage.core.preferences.set_zoom(150)
    stage.settle()
    assert button.width() == button.height() == 1.5 * Size.CONTROL
    assert button.iconSize().width() == 1.5 * GRID


@pytest.mark.qt_log_ignore("does not support raise", extend=True)
def test_icons_are_drawn_as_large_as_the_text_asks(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.core.preferences.set_zoom(150)
    stage.run(CommandId.SETTINGS)
    stage.settle()
    window = stage.window
    for button in window.findChildren(QAbstractButton):
        if not button.icon().isNull() and not button.objectName().startswith("qt_"):
            drawn = button.icon().actualSize(QSize(99, 99)).width()
            assert drawn == button.iconSize().width() == 1.5 * GRID, button.accessibleName()
    assert window.pane.composer.button.width() == 1.5 * Size.CONTROL_LARGE
    assert window.pane.composer.ring.width() == 1.5 * GRID
    (jump,) = window.findChildren(JumpButton)
    assert jump.width() == jump.height() == 1.5 * Size.CONTROL_LARGE


def settings_pages(stage: Stage) -> Iterator[QWidget]:
    stage.run(CommandId.SETTINGS)
    window = stage.window.findChild(SettingsWindow)
    assert isinstance(window, SettingsWindow)
    for tab in window.tabs.values():
        tab.click()
        yield window


def inspector(stage: Stage) -> Iterator[QWidget]:
    stage.run(CommandId.INSPECTOR)
    yield stage.window.inspector


def toolbar(stage: Stage) -> Iterator[QWidget]:
    yield stage.window.toolbar


@pytest.mark.qt_log_ignore("does not support raise", extend=True)
@pytest.mark.parametrize("parts", [settings_pages, inspector, toolbar])
def test_larger_text_scales_every_text_of_a_part(
    stage: Stage, parts: Callable[[Stage], Iterator[QWidget]]
) -> None:
    kinds = (QLabel, QPushButton, QLineEdit, QCheckBox)
    sizes: dict[QWidget, int] = {}

    def look() -> Iterator[QWidget]:
        for part in parts(stage):
            for kind in kinds:
                yield from (one for one in part.findChildren(kind) if one.isVisible())

    sizes = {one: one.font().pixelSize() for one in look()}
    assert sizes
    stage.core.preferences.set_zoom(150)
    stage.settle()
    if parts is inspector:
        stage.run(CommandId.INSPECTOR)  # it was open
    after = {one: one.font().pixelSize() for one in look()}
    same = [one for one, size in sizes.items() if after[one] != round(1.5 * size)]
    low = [one for one in after if one.height() < one.fontMetrics().height()]
    assert (same, low) == ([], [])


def test_larger_text_scales_the_menus(stage: Stage) -> None:
    menus = [stage.window.menuBar(), *stage.window.menuBar().findChildren(QMenu)]
    before = [menu.font().pixelSize() for menu in menus]
    stage.core.preferences.set_zoom(200)
    stage.settle()
    for menu in menus:
        menu.ensurePolished()
    assert [menu.font().pixelSize() for menu in menus] == [2 * size for size in before]


def test_larger_text_scales_the_arrow_of_a_button_and_the_tick_of_a_menu(stage: Stage) -> None:
    menu = Menu(stage.pane)
    tick = menu.addAction("")
    tick.setCheckable(True)
    tick.setChecked(True)
    button = Button("", stage.pane)
    button.setMenu(menu)

    def heights() -> list[int]:
        menu.ensurePolished()
        menu.adjustSize()
        button.ensurePolished()
        button.resize(120, 80)
        inside = [pixels_of(one.grab().toImage())[6:-6, 6:-6] for one in (button, menu)]
        return [int((one != one[0, -1]).any(axis=1).sum()) for one in inside]

    small = heights()
    stage.core.preferences.set_zoom(200)
    stage.settle()
    assert min(small) > 0
    assert all(after > 1.6 * before for before, after in zip(small, heights(), strict=True))


@pytest.mark.qt_log_ignore("does not support raise", extend=True)
def test_windows_of_larger_text_leave_a_part_of_the_screen_free_and_scroll(stage: Stage) -> None:
    stage.core.preferences.set_zoom(160)
    stage.run(CommandId.SETTINGS)
    stage.run(CommandId.GET_MODELS)
    stage.settle()
    settings = stage.window.findChild(SettingsWindow)
    models = stage.window.findChild(ModelsWindow)
    assert settings is not None
    assert models is not None
    room = stage.window.screen().availableSize()
    for window in (settings, models):
        assert window.height() <= 0.8 * room.height()
        assert window.width() <= room.width()
    settings.tabs[Icon.ADVANCED].click()
    stage.settle()
    last = settings.advanced.several.stop
    scroller = next(
        one for one in settings.findChildren(VerticalScroller) if one.widget() is settings.advanced
    )
    assert scroller.bar.maximum() > 0
    scroller.bar.setValue(scroller.bar.maximum())
    place = last.mapTo(settings, last.rect().bottomRight())
    assert settings.rect().contains(place)
    advanced = settings.advanced
    firsts = (advanced.engine.faster, advanced.data.controls[0], advanced.several.macs)
    assert len({one.mapTo(advanced, QPoint(0, 0)).x() for one in firsts}) == 1


@pytest.mark.qt_log_ignore("does not support raise", extend=True)
def test_windows_that_grow_with_the_text_stay_on_the_screen(stage: Stage) -> None:
    stage.run(CommandId.SETTINGS)
    stage.run(CommandId.GET_MODELS)
    room = stage.window.screen().availableGeometry()
    windows = (stage.window.findChild(SettingsWindow), stage.window.findChild(ModelsWindow))
    for window in windows:
        assert window is not None
        window.move(room.center())
    stage.core.preferences.set_zoom(160)
    stage.settle()
    assert [room.contains(window.frameGeometry()) for window in windows if window] == [True, True]


@pytest.mark.qt_log_ignore("does not support raise", extend=True)
@pytest.mark.parametrize("width", [720, 1296])
def test_tabs_of_the_settings_have_names_where_these_fit(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    def most_of_screen(_window: QWidget) -> QSize:
        return QSize(width, 900)

    monkeypatch.setattr(settings_window, "most_of_screen", most_of_screen)
    tabs = opened_settings(stage).tabs.values()

    style = Qt.ToolButtonStyle
    wanted = style.ToolButtonTextUnderIcon if width == 1296 else style.ToolButtonIconOnly
    assert {tab.toolButtonStyle() for tab in tabs} == {wanted}
    assert all(tab.toolTip() for tab in tabs)


def opened_settings(stage: Stage) -> SettingsWindow:
    stage.run(CommandId.SETTINGS)
    window = stage.window.findChild(SettingsWindow)
    assert isinstance(window, SettingsWindow)
    return window


@pytest.mark.parametrize("zoom", [100, 200])
def test_model_button_is_as_high_as_the_icons_of_its_bar(stage: Stage, zoom: int) -> None:
    toolbar = stage.window.toolbar
    stage.core.preferences.set_zoom(zoom)
    stage.settle()
    assert toolbar.model_button.height() == toolbar.inspector_button.height()


def test_dot_of_an_unseen_answer_grows_with_the_text(stage: Stage) -> None:
    stage.send("Hello")
    stage.run(CommandId.NEW_CHAT)
    stage.answer("Hi")
    stage.settle()
    sidebar = stage.window.sidebar.list
    accent = sidebar.palette().highlight().color().rgb()
    before = int((pixels_of(sidebar.grab().toImage()) == accent).sum())
    stage.core.preferences.set_zoom(200)
    stage.settle()
    after = int((pixels_of(sidebar.grab().toImage()) == accent).sum())
    assert after > 2 * before > 0


def test_sheet_widens_with_the_text_so_that_its_title_keeps_one_line(stage: Stage) -> None:
    stage.core.preferences.set_zoom(150)
    sheet = MessageSheet("Permanently delete 5 items?", "You can’t undo this.", "", stage.window)
    sheet.open()
    labels = sheet.findChildren(QLabel)
    (title,) = (label for label in labels if label.text() == sheet.windowTitle())
    assert sheet.width() > 1.4 * Size.SHEET_WIDTH
    assert title.height() < 2 * title.fontMetrics().height()
    sheet.reject()
