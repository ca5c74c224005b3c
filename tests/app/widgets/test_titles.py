"""Titles by the model, in the window: when one is asked for, and that a user's title stays."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from app.settings import load_settings
from app.theme.icons import Icon
from app.widgets.commands import CommandId
from app.widgets.settings_window import SettingsWindow
from app.words.titles import QUESTION
from app.words.window import NEW_TITLE
from tests.app.conftest import MakeStage
from tests.fakes.stage import Key, Stage

pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)
LEFT = Qt.MouseButton.LeftButton


def write_title(stage: Stage, text: str) -> None:
    stage.engine.write_title(text)
    stage.settle()


def test_chat_is_named_after_its_first_answer_only(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    (asked,) = stage.engine.titles
    assert [message.content for message in asked.messages] == ["Hello", "Hi", QUESTION]
    assert stage.rows == ["TODAY", "Hello"]
    write_title(stage, '"**A friendly greeting.**"')

    assert stage.rows == ["TODAY", "A friendly greeting"]
    assert stage.window.toolbar.title_button.text() == "A friendly greeting"
    stage.chat("More", "Yes")
    assert len(stage.engine.titles) == 1
    summaries = stage.stored(lambda store: store.summaries())
    assert [one.title for one in summaries] == ["A friendly greeting"]
    assert not stage.rig.current.title_is_manual


def test_text_that_is_no_title_leaves_the_automatic_one(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    write_title(stage, "I cannot give a title, because there is nothing that I could name here.")

    assert stage.rows == ["TODAY", "Hello"]


def test_user_who_renames_the_chat_meanwhile_wins(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.rig.core.organiser.rename(stage.current, "Mine")
    stage.settle()
    assert stage.engine.num_withdrawn == 1
    write_title(stage, "A friendly greeting")

    assert stage.rows == ["TODAY", "Mine"]


def test_title_that_arrives_while_the_user_types_one_does_not_touch_the_text(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.click_row("Hello")
    stage.list.edit_current()
    editor = stage.list.findChild(QLineEdit)
    assert isinstance(editor, QLineEdit)
    QTest.keyClicks(editor, "Mine")
    write_title(stage, "A friendly greeting")
    assert editor.text() == "Mine"
    QTest.keyClick(editor, Key.Key_Return)
    stage.settle()

    assert stage.rows == ["TODAY", "Mine"]
    assert stage.rig.current.title_is_manual


def test_title_field_that_is_left_unchanged_keeps_the_new_title(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.edit.setFocus()
    stage.run(CommandId.RENAME)
    field = stage.window.toolbar.title_field
    assert field.text() == "Hello"
    write_title(stage, "A friendly greeting")
    QTest.keyClick(field, Key.Key_Return)
    stage.settle()

    assert stage.rows == ["TODAY", "A friendly greeting"]
    assert not stage.rig.current.title_is_manual


@pytest.mark.parametrize("show_another", [CommandId.NEW_CHAT, CommandId.NEXT_CHAT, CommandId.BACK])
def test_title_in_the_field_when_another_chat_is_shown_stays_with_its_own_chat(
    stage: Stage, show_another: CommandId
) -> None:
    stage.chat("Other", "Hi")
    stage.run(CommandId.NEW_CHAT)
    stage.chat("Hello", "Hi")
    stage.edit.setFocus()
    stage.run(CommandId.RENAME)
    toolbar = stage.window.toolbar
    QTest.keyClicks(toolbar.title_field, "Mine")
    stage.run(show_another)

    assert sorted(stage.rows) == ["Mine", "Other", "TODAY"]
    shown = NEW_TITLE if show_another is CommandId.NEW_CHAT else "Other"
    assert toolbar.title_button.text() == shown
    assert not toolbar.title_field.isVisible()
    assert stage.edit.hasFocus()


def test_title_that_arrives_during_the_next_answer_is_set_at_its_end(stage: Stage) -> None:
    stage.engine.hold_start = False
    stage.chat("Hello", "Hi")
    stage.engine.hold_start = True
    stage.send("More")
    write_title(stage, "A friendly greeting")
    assert stage.rows == ["TODAY", "Hello"]
    stage.run(CommandId.STOP)
    assert stage.edit.toPlainText() == "More"

    assert stage.rows == ["TODAY", "A friendly greeting"]
    assert [one.title for one in stage.stored(lambda store: store.summaries())] == [
        "A friendly greeting"
    ]


def test_edited_first_message_gets_a_title_of_its_own(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.EDIT_LAST)
    editor = stage.pane.view.focusWidget()
    QTest.keyClicks(editor, "Ships")
    QTest.keyClick(editor, Key.Key_Return)
    stage.settle()
    write_title(stage, "Too late")
    stage.answer("They float")
    assert stage.rows[0] == "TODAY"
    assert "Too late" not in stage.rows
    write_title(stage, "All about ships")

    assert stage.rows == ["TODAY", "All about ships"]


def test_title_of_the_model_stays_until_an_edited_first_message_has_one(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    write_title(stage, "A friendly greeting")
    edit_last(stage, "Ships")
    assert stage.rows == ["TODAY", "A friendly greeting"]
    stage.answer("They float")
    assert stage.rows == ["TODAY", "A friendly greeting"]
    stage.run(CommandId.PREVIOUS_VERSION)
    write_title(stage, "All about ships")
    assert stage.rows == ["TODAY", "A friendly greeting"], "the title is for the other version"
    stage.run(CommandId.NEXT_VERSION)
    assert stage.rows == ["TODAY", "All about ships"]
    stage.run(CommandId.UNDO)
    assert stage.rows == ["TODAY", "A friendly greeting"]
    stored = stage.stored(lambda store: store.load(stage.current))
    assert [one.chat_title for one in stored.nodes.values() if one.parent is None] == [
        "A friendly greeting",
        "All about ships",
    ]
    assert stored.title == "A friendly greeting"
    assert len(stage.engine.titles) == 2


def test_name_that_the_user_typed_stays_after_an_edit_of_the_first_message(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    write_title(stage, "A friendly greeting")
    stage.rig.core.organiser.rename(stage.current, "Mine")
    edit_last(stage, "Ships")
    stage.answer("They float")
    stage.run(CommandId.PREVIOUS_VERSION)

    assert stage.rows == ["TODAY", "Mine"]
    assert len(stage.engine.titles) == 1
    stage.rig.core.organiser.rename(stage.current, "")
    stage.settle()
    assert stage.rows == ["TODAY", "A friendly greeting"]


def edit_last(stage: Stage, text: str) -> None:
    stage.run(CommandId.EDIT_LAST)
    editor = stage.pane.view.focusWidget()
    QTest.keyClicks(editor, text)
    QTest.keyClick(editor, Key.Key_Return)
    stage.settle()


def test_deleted_chat_withdraws_its_title(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    conversation_id = stage.current
    stage.rig.core.deletions.delete_all((conversation_id,))
    stage.settle()
    assert stage.engine.num_withdrawn == 1
    write_title(stage, "A friendly greeting")
    stage.rig.library.restore_all((conversation_id,))
    stage.settle()

    assert stage.rows == ["TODAY", "Hello"]


def test_stopped_answer_asks_for_a_title_once_it_has_text(stage: Stage) -> None:
    stage.send("Hello")
    stage.engine.think("Hm")
    stage.run(CommandId.STOP)
    assert stage.engine.titles == []

    stage.send("Hello?")
    stage.engine.write("Hi")
    stage.run(CommandId.STOP)
    (asked,) = stage.engine.titles
    assert asked.messages[-1].content == QUESTION
    write_title(stage, "A friendly greeting")
    assert stage.rows == ["TODAY", "A friendly greeting"]


def test_title_is_asked_for_again_after_the_next_answers_until_it_is_usable(stage: Stage) -> None:
    for number in range(1, 5):
        stage.chat("Hello", "Hi")
        assert len(stage.engine.titles) == min(number, 3)
        write_title(stage, "")
    assert stage.rows == ["TODAY", "Hello"]


def test_setting_off_asks_for_no_title_and_is_kept(make_stage: MakeStage) -> None:
    stage = make_stage()
    stage.chat("Hello", "Hi")
    stage.run(CommandId.SETTINGS)
    window = stage.window.findChild(SettingsWindow)
    assert isinstance(window, SettingsWindow)
    QTest.mouseClick(window.tabs[Icon.CHAT], LEFT)
    box = window.chat.name_chats
    assert box.isChecked()
    QTest.mouseClick(box, LEFT, pos=box.rect().center())
    assert stage.engine.num_withdrawn == 1
    write_title(stage, "A friendly greeting")
    stage.run(CommandId.NEW_CHAT)
    num_asked = len(stage.engine.titles)
    stage.chat("Again", "Hi")

    assert len(stage.engine.titles) == num_asked
    assert sorted(stage.rows) == ["Again", "Hello", "TODAY"]
    stage.close()
    assert load_settings(stage.rig.settings_path).settings.name_chats is False
