"""The settings window, used with mouse and keyboard. Each change applies at once and is saved."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QFontMetrics, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QPushButton, QToolButton, QWidget

from app.bridge.tasks import TaskLane
from app.controllers.login import OpenAtLogin
from app.conversation.preset import Preset
from app.conversation.tree import Setup
from app.settings import Appearance, Settings, load_settings
from app.theme.icons import Icon
from app.widgets.commands import CommandId
from app.widgets.message_sheet import MessageSheet
from app.widgets.scroller import VerticalScroller
from app.widgets.settings_general import GeneralPage
from app.widgets.settings_storage import StoragePage
from app.widgets.settings_window import SettingsWindow
from app.words import settings as words
from tests.app.conftest import MakeStage
from tests.fakes.stage import CTRL, Key, Stage

pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)
LEFT = Qt.MouseButton.LeftButton


def opened(stage: Stage, tab: Icon = Icon.APPEARANCE) -> SettingsWindow:
    stage.run(CommandId.SETTINGS)
    window = stage.window.findChild(SettingsWindow)
    assert isinstance(window, SettingsWindow)
    QTest.mouseClick(window.tabs[tab], LEFT)
    return window


def named(parent: QWidget, name: str) -> QPushButton | QToolButton:
    kinds = (QPushButton, QToolButton)
    return next(
        one for kind in kinds for one in parent.findChildren(kind) if one.accessibleName() == name
    )


def test_click_on_a_segment_takes_the_focus_of_its_group(stage: Stage) -> None:
    buttons = opened(stage, Icon.CHAT).chat.send_key.buttons
    buttons[True].click()
    buttons[True].setFocus()
    QTest.mouseClick(buttons[False], LEFT)
    assert buttons[False].hasFocus()


@pytest.mark.slow
def test_larger_text_scales_what_is_read_and_typed(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.type("A message")

    def heights() -> list[int]:
        index = stage.list.model().index(1, 0)
        return [
            stage.edit.height(),
            QFontMetrics(stage.edit.font()).height(),
            stage.list.visualRect(index).height(),
            stage.window.inspector.prompt.lines.line_height,
        ]

    before = heights()
    for _ in range(5):
        stage.run(CommandId.ZOOM_IN)
    stage.settle()
    assert [after / start for after, start in zip(heights(), before, strict=True)] == [
        pytest.approx(1.5, abs=0.15)
    ] * 4
    stage.run(CommandId.ZOOM_RESET)
    stage.settle()
    assert heights() == before


def test_settings_key_opens_one_window_and_escape_closes_it(stage: Stage) -> None:
    for _ in range(2):
        QTest.keyClick(stage.edit, Key.Key_Comma, CTRL)
        windows = stage.window.findChildren(SettingsWindow)
        assert [one.isVisible() for one in windows] == [True]
        assert windows[0].general.isVisible()
        QTest.keyClick(windows[0], Key.Key_Escape)
        assert not windows[0].isVisible()
    assert stage.window.isVisible()


def test_settings_page_is_created_when_its_tab_is_clicked_first(stage: Stage) -> None:
    window = opened(stage)
    assert window.findChild(StoragePage) is None
    for _ in range(2):
        QTest.mouseClick(window.tabs[Icon.STORAGE], LEFT)
        assert window.findChildren(StoragePage) == [window.storage]
        assert window.storage.isVisible()
        assert not window.appearance.isVisible()
        QTest.mouseClick(window.tabs[Icon.APPEARANCE], LEFT)


def test_close_window_closes_settings_before_the_main_window(stage: Stage) -> None:
    window = opened(stage)
    stage.run(CommandId.CLOSE)
    assert not window.isVisible()
    assert stage.window.isVisible()


@pytest.mark.slow
def test_appearance_contrast_and_text_size_apply_at_once(stage: Stage) -> None:
    page = opened(stage).appearance
    QTest.mouseClick(page.appearance.buttons[Appearance.DARK], LEFT)
    assert stage.theme.is_dark
    before = stage.theme.colors
    QTest.mouseClick(page.contrast, LEFT, pos=page.contrast.rect().center())
    assert stage.theme.colors != before
    assert stage.window.commands[CommandId.CONTRAST].isChecked()
    page.zoom.setFocus()
    QTest.keyClick(page.zoom, Key.Key_Right)
    assert stage.rig.core.preferences.value.text_zoom == 110
    stage.run(CommandId.ZOOM_IN)
    assert page.zoom.value() == 12
    stage.run(CommandId.LIGHT)
    assert page.appearance.buttons[Appearance.LIGHT].isChecked()


def test_return_can_be_set_to_start_a_new_line(make_stage: MakeStage) -> None:
    stage = make_stage()
    page = opened(stage, Icon.CHAT).chat
    QTest.mouseClick(page.send_key.buttons[False], LEFT)
    stage.type("One")
    QTest.keyClick(stage.edit, Key.Key_Return)
    stage.type("more")
    assert stage.edit.toPlainText() == "One\nmore"
    assert stage.composer.button.toolTip() == "Send  Ctrl+Return"
    QTest.keyClick(stage.edit, Key.Key_Return, CTRL)
    stage.settle()
    stage.answer("1")
    assert stage.texts == ["One\nmore", "1"]
    stage.run(CommandId.EDIT_LAST)
    editor = stage.pane.view.focusWidget()
    QTest.keyClick(editor, Key.Key_Return)
    QTest.keyClicks(editor, "and more")
    QTest.keyClick(editor, Key.Key_Return, CTRL)
    stage.settle()
    stage.answer("2")
    assert stage.texts == ["One\nmore\nand more", "2"]
    stage.close()
    path = stage.rig.settings_path
    assert load_settings(path).settings.return_sends is False


def test_faster_answers_can_be_turned_off_for_the_next_request(make_stage: MakeStage) -> None:
    stage = make_stage()
    page = opened(stage, Icon.ADVANCED).advanced.engine
    stage.chat("One", "1")
    QTest.mouseClick(page.faster, LEFT, pos=page.faster.rect().center())
    stage.chat("Two", "2")

    assert [request.max_drafts for request in stage.rig.engine.submitted] == [None, 0]


def test_default_preset_can_be_chosen_deleted_and_restored(stage: Stage) -> None:
    page = opened(stage, Icon.CHAT).chat
    assert page.default.isHidden()
    for name in ("<b>Brief</b>", "Long & slow"):
        stage.rig.core.presets.save_preset(Preset(name=name, system_prompt=name))
    menu = page.default.menu()
    menu.aboutToShow.emit()
    assert [one.text() for one in menu.actions()] == ["No preset", "<b>Brief</b>", "Long && slow"]
    menu.actions()[2].trigger()
    assert page.default.text() == "Long && slow"
    assert stage.rig.current.system_prompt == "Long & slow"
    labels = [one for one in page.findChildren(QLabel) if one.text() == "<b>Brief</b>"]
    assert [one.textFormat() for one in labels] == [Qt.TextFormat.PlainText]
    QTest.mouseClick(named(page, "Delete preset Long & slow"), LEFT)
    stage.settle()
    assert list(stage.rig.core.presets.value.by_name) == ["<b>Brief</b>"]
    assert page.default.text() == "No preset"
    stage.run(CommandId.UNDO)
    assert page.default.text() == "Long && slow"


def test_removed_model_folder_is_no_longer_searched(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.rig.models.add_folder(stage.rig.settings_path.parent)
    folder = str(stage.rig.settings_path.parent)
    page = opened(stage, Icon.MODEL).models
    QTest.mouseClick(named(page, f"Remove {folder}"), LEFT)
    stage.settle()
    assert stage.rig.core.preferences.value.model_folders == ()
    stage.wait_until(lambda: stage.rig.catalog.folders == ())


def test_click_on_a_tab_focuses_no_control_of_its_page(make_stage: MakeStage) -> None:
    stage = make_stage()
    folder = stage.rig.settings_path.parent
    stage.rig.models.add_folder(folder)
    window = opened(stage, Icon.CHAT)
    buttons = window.chat.send_key.buttons
    buttons[True].click()
    buttons[True].setFocus()
    assert window.chat.isAncestorOf(window.focusWidget())
    QTest.mouseClick(window.tabs[Icon.MODEL], LEFT)
    assert named(window.models, f"Remove {folder}").isVisible()
    assert not window.models.isAncestorOf(window.focusWidget())


def place(widget: QWidget) -> tuple[int, int]:
    """Return (y, x) of a widget's centre, a sort key for the reading order of a window."""
    corner = widget.mapTo(widget.window(), widget.rect().center())
    return corner.y(), corner.x()


def tabbed(stop: QWidget) -> list[QWidget]:
    """Return the widgets in Tab order, from `stop` until Tab reaches a widget again."""
    stop.setFocus()
    stops: list[QWidget] = []
    while stop not in stops:
        stops.append(stop)
        QTest.keyClick(stop, Key.Key_Tab)
        stop = stop.window().focusWidget()
    return stops


def test_tab_order_of_a_settings_page_is_top_down(stage: Stage) -> None:
    window = opened(stage)
    window.chat.send_key.buttons[False].click()
    window.appearance.appearance.buttons[Appearance.SYSTEM].click()
    for name in ("One", "Two"):
        stage.rig.core.presets.save_preset(Preset(name=name))
        stage.rig.models.add_folder(stage.rig.settings_path.parent / name)
    for tab in (Icon.GENERAL, Icon.APPEARANCE, Icon.CHAT, Icon.NEW_CHAT, Icon.MODEL):
        QTest.mouseClick(window.tabs[tab], LEFT)
        stage.wait(1)
        stops = tabbed(window.tabs[tab])
        assert len(stops) >= 4
        assert stops == sorted(stops, key=place), tab
        unreached = [
            one
            for one in window.findChildren(QWidget)
            if one.isVisible() and one.isEnabled() and one.focusPolicy() & Qt.FocusPolicy.TabFocus
            if one not in stops
        ]
        assert unreached == []


def test_tab_reaches_the_buttons_before_a_field_that_passes_its_focus_on(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(settings=Settings(model_folders=("/models",)))
    window = opened(stage, Icon.MODEL)
    stops = tabbed(window.tabs[Icon.MODEL])
    assert {window.models.add, window.models.get} <= set(stops)


def test_control_below_the_visible_part_of_a_page_is_scrolled_to_when_tab_reaches_it(
    stage: Stage,
) -> None:
    window = opened(stage, Icon.NEW_CHAT)
    window.setFixedHeight(240)
    stage.wait(1)
    for scroller in window.findChildren(VerticalScroller):
        scroller.bar.setValue(scroller.bar.maximum())
    tab = window.tabs[Icon.NEW_CHAT]
    tab.setFocus()
    QTest.keyClick(tab, Key.Key_Tab)
    assert window.new_chats.isAncestorOf(window.focusWidget())
    assert not window.focusWidget().visibleRegion().isEmpty()


def test_controls_of_all_settings_pages_are_aligned_left(stage: Stage) -> None:
    window = opened(stage)
    stage.rig.core.presets.save_preset(Preset(name="One"))
    left: set[int] = set()
    for tab in window.tabs.values():
        QTest.mouseClick(tab, LEFT)
        stage.wait(1)
        pages = (window.appearance, window.chat, window.models)
        left |= {
            one.mapTo(window, QPoint(0, 0)).x()
            for page in pages
            for one in page.controls
            if one.isVisible()
        }
    assert len(left) == 1


@pytest.mark.slow
@pytest.mark.parametrize("appearance", [Appearance.LIGHT, Appearance.DARK])
def test_settings_pages_paint_different_pictures(
    make_stage: MakeStage, appearance: Appearance
) -> None:
    window = opened(make_stage(settings=Settings(appearance=appearance)))
    pictures: list[QImage] = []
    for tab in window.tabs.values():
        QTest.mouseClick(tab, LEFT)
        pictures.append(window.grab().toImage())
    assert all(one != other for one, other in pairwise(pictures))


@pytest.fixture
def own_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HF_TOKEN", "HF_TOKEN_PATH", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    return tmp_path / "hf" / "token"


def test_token_is_stored_by_the_return_key_and_never_shown(own_token: Path, stage: Stage) -> None:
    token = opened(stage, Icon.MODEL).models.token
    assert not token.remove_button.isVisible()
    QTest.keyClicks(token.field, "hf_secret")
    assert token.field.displayText() == "●" * 9
    QTest.keyClick(token.field, Key.Key_Return)
    stage.wait_until(token.remove_button.isVisible)
    assert own_token.read_text() == "hf_secret"
    assert token.field.text() == ""
    assert token.field.placeholderText() == "A token is stored"
    QTest.mouseClick(token.remove_button, LEFT)
    stage.wait_until(lambda: not own_token.exists())


def test_field_of_the_token_is_disabled_by_its_variable(
    own_token: Path, make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_other")
    page = opened(make_stage(), Icon.MODEL).models
    assert not page.token.field.isEnabled()
    assert any("HF_TOKEN" in label.text() for label in page.findChildren(QLabel))


def test_mirror_is_set_and_a_text_that_is_no_address_is_refused(
    own_token: Path, stage: Stage
) -> None:
    mirror = opened(stage, Icon.MODEL).models.mirror
    QTest.keyClicks(mirror, "https://hf-mirror.com/")
    QTest.keyClick(mirror, Key.Key_Return)
    assert stage.core.preferences.value.mirror == "https://hf-mirror.com"
    assert stage.core.hub.host == "hf-mirror.com"
    mirror.setText("http://hf-mirror.com")
    QTest.keyClick(mirror, Key.Key_Return)
    assert stage.core.preferences.value.mirror == "https://hf-mirror.com"
    assert mirror.text() == "https://hf-mirror.com"
    assert "https://" in stage.window.toast.text
    mirror.clear()
    QTest.keyClick(mirror, Key.Key_Return)
    assert stage.core.hub.host == "huggingface.co"


def test_open_at_login_writes_and_removes_its_file(stage: Stage, tmp_path: Path) -> None:
    page = opened(stage, Icon.GENERAL).general
    for is_on in (True, False):
        QTest.mouseClick(page.at_login, LEFT)
        stage.wait_until(lambda is_on=is_on: stage.core.login.is_on == is_on)
        assert page.at_login.isChecked() == is_on
        assert bool(list(tmp_path.rglob("login.plist"))) == is_on


def test_open_at_login_that_fails_is_reported_and_stays_off(stage: Stage, tmp_path: Path) -> None:
    page = opened(stage, Icon.GENERAL).general
    (tmp_path / "agents").touch()
    QTest.mouseClick(page.at_login, LEFT)
    stage.wait_until(lambda: "The disk" in stage.window.toast.text)
    assert not page.at_login.isChecked()


@pytest.mark.parametrize("reopens", [True, False])
def test_start_shows_the_last_chat_if_the_settings_want_it(
    make_stage: MakeStage, *, reopens: bool
) -> None:
    stage = make_stage()
    stage.chat("Hello", "Hi")
    page = opened(stage, Icon.GENERAL).general
    if not reopens:
        QTest.mouseClick(page.reopen, LEFT)
    settings = stage.core.preferences.value
    stage.close()
    again = make_stage(settings=settings)
    again.wait_until(lambda: "Hello" in again.rows)
    again.settle()
    assert again.texts == (["Hello", "Hi"] if reopens else [])


def test_quit_asks_if_the_settings_want_it(stage: Stage) -> None:
    page = opened(stage, Icon.GENERAL).general
    QTest.mouseClick(page.confirm, LEFT)
    stage.window.close()
    (sheet,) = stage.window.findChildren(MessageSheet)
    assert sheet.text == "All chats are saved."
    sheet.reject()
    assert stage.window.isVisible()
    QTest.mouseClick(page.confirm, LEFT)
    stage.window.close()
    assert not stage.window.isVisible()


def test_new_chats_begin_with_prompt_sampling_and_thinking_of_the_settings(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    begun = stage.current
    page = opened(stage, Icon.NEW_CHAT).new_chats
    QTest.keyClicks(page.prompt, "Be brief.")
    page.thinking.buttons[False].click()
    QTest.keyClicks(page.temperature, "0.25")
    QTest.keyClick(page.temperature, Key.Key_Return)
    QTest.keyClicks(page.sampling.fields["top_k"], "40")
    QTest.keyClick(page.sampling.fields["top_k"], Key.Key_Return)
    stage.run(CommandId.NEW_CHAT)
    new = stage.core.desk.get(stage.core.library.current)
    assert new.system_prompt == "Be brief."
    assert new.setup == Setup(temperature=0.25, top_k=40, thinking=False)
    assert stage.core.desk.get(begun).setup == Setup()
    QTest.mouseClick(page.reset, LEFT)
    new = stage.core.desk.get(stage.core.library.current)
    assert (new.system_prompt, new.setup) == ("", Setup())
    assert page.prompt.toPlainText() == ""


def test_preset_goes_before_the_settings_of_new_chats(make_stage: MakeStage) -> None:
    options = {"temperature": 0.25, "unknown": 3, "top_k": 0.5}
    stage = make_stage(settings=Settings(new_chat_prompt="Be brief.", new_chat_options=options))
    presets, path = stage.core.presets, stage.core.models.status.path
    new = stage.core.desk.get(stage.core.library.current)
    assert (new.system_prompt, new.setup) == ("Be brief.", Setup(temperature=0.25))
    presets.save_preset(Preset(name="Long", system_prompt="Be long."))
    presets.choose(path, "Long")
    new = stage.core.desk.get(stage.core.library.current)
    assert (new.system_prompt, new.setup) == ("Be long.", Setup())


def test_typed_prompt_of_new_chats_is_saved_when_the_app_quits(stage: Stage) -> None:
    page = opened(stage, Icon.NEW_CHAT).new_chats
    QTest.keyClicks(page.prompt, "Be brief.")
    stage.close()
    assert load_settings(stage.rig.settings_path).settings.new_chat_prompt == "Be brief."


def test_memory_limit_is_saved_and_holds_at_once(stage: Stage) -> None:
    page = opened(stage, Icon.ADVANCED).advanced.engine
    QTest.mouseClick(page.memory.buttons[4], LEFT)
    QTest.mouseClick(page.memory.buttons[0], LEFT)
    QTest.mouseClick(page.memory.buttons[8], LEFT)
    assert stage.engine.changes(lambda one: one.most_cached_bytes) == [
        None,
        4 * 10**9,
        None,
        8 * 10**9,
    ]
    stage.close()
    assert load_settings(stage.rig.settings_path).settings.memory_gb == 8


def test_memory_limit_is_sent_to_the_engine_at_the_start(make_stage: MakeStage) -> None:
    stage = make_stage(settings=Settings(memory_gb=2))
    assert stage.engine.wanted.most_cached_bytes == 2 * 10**9


def test_open_at_login_is_absent_where_it_is_impossible(stage: Stage, tmp_path: Path) -> None:
    lane = TaskLane("files")
    login = OpenAtLogin(lane, None)
    page = GeneralPage(stage.theme, stage.core.preferences, login, stage.window)
    login.toggle()
    assert page.at_login.isHidden()
    assert page.controls[0] is page.reopen
    assert not list(tmp_path.rglob("login.plist"))
    lane.stop()


def test_note_about_all_settings_of_new_chats_is_above_them(stage: Stage) -> None:
    page = opened(stage, Icon.NEW_CHAT).new_chats
    note = next(one for one in page.findChildren(QLabel) if one.text() == words.NEW_CHATS_NOTE)
    assert note.geometry().bottom() < page.prompt.y()
