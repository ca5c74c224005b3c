"""Tests of pins, the archive, selections of several chats, duplicates and their undo."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog

from app.settings import ChatOrder
from app.theme.tokens import LIGHT, Space
from app.widgets.commands import CommandId
from app.widgets.elided_title import elided_title
from app.widgets.menu import Menu
from app.words.folders import copied_title
from tests.fakes.stage import CTRL, SHIFT, Key, Stage
from tests.fakes.tables import rest_in_soak

# The offscreen platform logs these messages for every popup.
pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)


def make_chats(stage: Stage, *titles: str) -> None:
    """Make chats. The last one is on show, and the first one in the list."""
    for title in titles:
        stage.rig.origin.time_s += 1.0
        stage.run(CommandId.NEW_CHAT)
        stage.chat(title, "Yes.")


def click(
    stage: Stage, title: str, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> None:
    index = stage.list.model().index(stage.rows.index(title), 0)
    rect = stage.list.visualRect(index)
    at = rect.topLeft() + QPoint(20, rect.height() // 2)
    QTest.mouseClick(stage.list.viewport(), Qt.MouseButton.LeftButton, modifiers, at)
    stage.settle()


def titles_of_selected(stage: Stage) -> list[str]:
    library = stage.rig.library
    return [library.listed.summary(one).title for one in stage.list.selected]


def open_menu(stage: Stage, title: str) -> Menu:
    rect = stage.list.visualRect(stage.list.model().index(stage.rows.index(title), 0))
    at = QPoint(rect.right() - 24, rect.center().y())
    QTest.mouseClick(stage.list.viewport(), Qt.MouseButton.LeftButton, pos=at)
    return next(menu for menu in stage.list.findChildren(Menu) if menu.isVisible())


def choose(stage: Stage, text: str) -> None:
    """Open the menu of the current row with its button, and choose an entry."""
    menu = open_menu(stage, stage.rows[stage.list.currentIndex().row()])
    action = next(action for action in menu.actions() if action.text() == text)
    menu.hide()
    action.trigger()
    menu.close()
    stage.settle()


def reopened(stage: Stage) -> list[str]:
    """Return the titles that the store would list at the next start."""
    return [one.title for one in stage.rig.stored(lambda store: store.summaries())]


def test_pinned_chat_is_first_and_undo_takes_it_back(stage: Stage) -> None:
    make_chats(stage, "One", "Two")
    click(stage, "One")
    stage.run(CommandId.PIN)
    assert stage.rows == ["PINNED", "One", "TODAY", "Two"]
    assert stage.row("One").spoken == "One, pinned"
    assert stage.window.commands[CommandId.PIN].text() == "Unpin"
    stored = stage.rig.stored(lambda store: store.summaries())
    assert [one.placement.pinned for one in stored] == [False, True]
    stage.run(CommandId.UNDO)
    assert stage.rows == ["TODAY", "Two", "One"]


def test_archived_chat_leaves_the_list_and_is_in_the_archive(stage: Stage) -> None:
    make_chats(stage, "One", "Two")
    sidebar = stage.window.sidebar
    assert not sidebar.foot.archived.isVisible()
    stage.run(CommandId.ARCHIVE)
    assert stage.rows == ["TODAY", "One"]
    assert sidebar.toast.text == "Archived “Two”"
    assert stage.texts == ["One", "Yes."]
    assert sidebar.foot.archived.text() == "Archived (1)"
    QTest.mouseClick(sidebar.foot.archived, Qt.MouseButton.LeftButton)
    assert stage.rows == ["ARCHIVED", "Two"]
    assert stage.window.commands[CommandId.ARCHIVED].isChecked()
    click(stage, "Two")
    assert stage.texts == ["Two", "Yes."]
    choose(stage, "Unarchive")
    assert stage.rows == ["TODAY", "Two", "One"], "an empty archive is left"


def test_undo_of_an_archived_chat_shows_it_again(stage: Stage) -> None:
    make_chats(stage, "One", "Two")
    stage.run(CommandId.ARCHIVE)
    stage.run(CommandId.UNDO)
    assert stage.texts == ["Two", "Yes."]
    assert titles_of_selected(stage) == ["Two"]


# A chat in the middle, the last one and the first one of the list.
@pytest.mark.parametrize(
    ("shown", "following", "command"),
    rest_in_soak(
        [
            (*chats, command)
            for chats in (("Two", "One"), ("One", "Two"), ("Three", "Two"))
            for command in (CommandId.DELETE, CommandId.ARCHIVE)
        ],
        ("Two", "One", CommandId.ARCHIVE),
        ("One", "Two", CommandId.DELETE),
    ),
)
def test_chat_that_leaves_the_list_is_followed_by_the_next_one(
    stage: Stage, shown: str, following: str, command: CommandId
) -> None:
    make_chats(stage, "One", "Two", "Three")
    click(stage, shown)
    stage.run(command)
    assert stage.texts == [following, "Yes."]
    assert titles_of_selected(stage) == [following]


def test_last_chat_that_leaves_the_list_is_followed_by_a_new_one(stage: Stage) -> None:
    make_chats(stage, "One")
    stage.run(CommandId.DELETE)
    assert stage.pane.empty.heading.isVisible()


def test_new_message_takes_a_chat_out_of_the_archive(stage: Stage) -> None:
    make_chats(stage, "One", "Two")
    archived = stage.current
    stage.run(CommandId.ARCHIVE)
    stage.rig.library.select(archived)
    stage.settle()
    stage.rig.origin.time_s += 1.0
    stage.chat("more", "Yes.")
    assert stage.rows == ["TODAY", "Two", "One"]
    stored = stage.rig.stored(lambda store: store.summaries())
    assert not any(one.placement.archived for one in stored)


def test_queued_message_leaves_its_chat_in_the_archive(stage: Stage) -> None:
    make_chats(stage, "One", "Two")
    archived = stage.current
    stage.send("more")
    stage.send("queued before the chat is archived")
    stage.run(CommandId.ARCHIVE)
    stage.rig.origin.time_s += 1.0
    stage.answer("Yes.")
    assert stage.rig.core.turns.live_in(archived) is not None
    assert [one.conversation_id for one in stage.rig.library.listed.archived] == [archived]
    stage.answer("Yes.")
    assert stage.rows == ["TODAY", "One"]


def test_archived_chat_that_is_renamed_stays_archived(stage: Stage) -> None:
    make_chats(stage, "One", "Two")
    archived = stage.current
    stage.run(CommandId.ARCHIVE)
    stage.rig.core.organiser.rename(archived, "Other")
    stage.settle()
    assert stage.rows == ["TODAY", "One"]
    assert [one.title for one in stage.rig.library.listed.archived] == ["Other"]


def test_shift_and_ctrl_select_several_without_opening_them(stage: Stage) -> None:
    make_chats(stage, "One", "Two", "Three", "Four")
    click(stage, "Three", CTRL)
    assert titles_of_selected(stage) == ["Four", "Three"]
    assert stage.texts[0] == "Four", "another chat was opened"
    click(stage, "One", SHIFT)
    assert titles_of_selected(stage) == ["Four", "Three", "Two", "One"]
    assert stage.texts[0] == "Four"
    QTest.keyClick(stage.list, Key.Key_Escape)
    stage.settle()
    assert titles_of_selected(stage) == ["Four"]


def test_shift_arrow_extends_the_selection(stage: Stage) -> None:
    make_chats(stage, "One", "Two", "Three")
    click(stage, "Three")
    QTest.keyClick(stage.list, Key.Key_Down, SHIFT)
    stage.settle()
    assert titles_of_selected(stage) == ["Three", "Two"]
    assert stage.texts[0] == "Three"
    QTest.keyClick(stage.list, Key.Key_Down)
    stage.settle()
    assert titles_of_selected(stage) == ["One"]
    assert stage.texts[0] == "One"


def test_select_all_in_the_list_selects_every_chat(stage: Stage) -> None:
    make_chats(stage, "One", "Two", "Three")
    click(stage, "Three")
    stage.list.setFocus()
    stage.run(CommandId.SELECT_ALL)
    assert titles_of_selected(stage) == ["Three", "Two", "One"]


def test_several_selected_chats_stay_selected_while_another_answers(stage: Stage) -> None:
    make_chats(stage, "One", "Two", "Three")
    click(stage, "Two", CTRL)
    stage.rig.origin.time_s += 1.0
    stage.rig.chat.send(stage.current, "more")
    stage.settle()
    stage.answer("Yes.")
    assert titles_of_selected(stage) == ["Three", "Two"]


def test_delete_key_deletes_all_selected_chats_and_one_undo_restores_them(stage: Stage) -> None:
    make_chats(stage, "One", "Two", "Three")
    click(stage, "One", CTRL)
    assert stage.window.commands[CommandId.DELETE].text() == "Delete 2 Chats"
    QTest.keyClick(stage.list, Key.Key_Delete)
    stage.settle()
    assert stage.rows == ["TODAY", "Two"]
    assert stage.window.sidebar.toast.text == "Deleted 2 chats"
    assert reopened(stage) == ["Two"]
    stage.run(CommandId.UNDO)
    assert stage.rows == ["TODAY", "Three", "Two", "One"]
    assert stage.texts[0] == "Three"
    assert reopened(stage) == ["Three", "Two", "One"]


def test_undo_of_several_restores_the_rest_after_one_was_restored(stage: Stage) -> None:
    make_chats(stage, "One", "Two", "Three")
    first = stage.rig.library.listed.unarchived[2].conversation_id
    click(stage, "One", SHIFT)
    QTest.keyClick(stage.list, Key.Key_Delete)
    stage.settle()
    stage.rig.library.restore_all((first,))
    stage.settle()
    assert stage.rows == ["TODAY", "One"]
    stage.run(CommandId.UNDO)
    assert stage.rows == ["TODAY", "Three", "Two", "One"]
    stage.run(CommandId.UNDO)
    assert stage.rows == ["TODAY", "Three", "Two", "One"], "there is no second undo"


def test_deleted_chat_is_restored_to_its_place(stage: Stage) -> None:
    make_chats(stage, "One", "Two")
    click(stage, "One")
    stage.run(CommandId.PIN)
    stage.run(CommandId.DELETE)
    assert stage.rows == ["TODAY", "Two"]
    stage.run(CommandId.UNDO)
    assert stage.rows == ["PINNED", "One", "TODAY", "Two"]


def test_restored_chat_is_named_after_the_draft_typed_before_its_deletion(stage: Stage) -> None:
    stage.type("A long")
    stage.pane.draft.flush()
    stage.settle()
    assert stage.rows == ["TODAY", "A long"]
    stage.type(" draft")
    stage.run(CommandId.DELETE)
    (deleted,) = stage.rig.library.deleted.all
    assert deleted.summary.title == "A long draft"
    stage.run(CommandId.UNDO)
    assert stage.rows == ["TODAY", "A long draft"]
    assert stage.edit.toPlainText() == "A long draft"


def test_menu_of_several_acts_on_all_of_them(stage: Stage) -> None:
    make_chats(stage, "One", "Two", "Three")
    click(stage, "Two", CTRL)
    named = {"Pin 2 Chats", "Archive 2 Chats", "Move 2 Chats to Folder", "Duplicate 2 Chats"}
    menu = open_menu(stage, "Two")
    assert named <= {action.text() for action in menu.actions()}
    menu.close()
    for command in (CommandId.PIN, CommandId.ARCHIVE, CommandId.DUPLICATE):
        assert stage.window.commands[command].text() in named
    choose(stage, "Archive 2 Chats")
    assert stage.rows == ["TODAY", "One"]
    assert stage.window.sidebar.toast.text == "Archived 2 chats"
    stage.run(CommandId.UNDO)
    assert stage.rows == ["TODAY", "Three", "Two", "One"]


def test_menu_of_several_leaves_them_selected(stage: Stage) -> None:
    make_chats(stage, "One", "Two", "Three")
    click(stage, "Two", CTRL)
    selected = stage.list.selected
    assert len(selected) == 2
    open_menu(stage, "Two").close()
    assert stage.list.selected == selected


def test_menu_of_several_exports_them_to_one_file(stage: Stage) -> None:
    make_chats(stage, "One", "Two", "Three")
    click(stage, "Two", CTRL)
    choose(stage, "Export 2 Chats…")
    (dialog,) = stage.window.findChildren(QFileDialog)
    assert dialog.selectedFiles()[0].endswith("2 chats.json")
    dialog.close()


def test_menu_of_an_unselected_row_is_for_that_row(stage: Stage) -> None:
    make_chats(stage, "One", "Two", "Three")
    click(stage, "Two", CTRL)
    menu = open_menu(stage, "One")
    assert "Delete Chat" in [action.text() for action in menu.actions()]
    menu.close()
    assert titles_of_selected(stage) == ["Three", "Two"]


def test_duplicate_has_all_versions_and_undo_removes_it(stage: Stage) -> None:
    make_chats(stage, "One")
    stage.run(CommandId.REGENERATE)
    stage.answer("No.")
    stage.run(CommandId.PREVIOUS_VERSION)
    original = stage.rig.current
    stage.rig.origin.time_s += 1.0
    stage.run(CommandId.DUPLICATE)
    copied = stage.rig.current
    assert stage.rows == ["TODAY", "One (copy)", "One"]
    assert stage.window.sidebar.toast.text == "Duplicated “One”"
    assert stage.texts == ["One", "Yes."]
    assert copied.nodes.keys().isdisjoint(original.nodes)
    contents = [(node.role, node.content, node.reply) for node in copied.nodes.values()]
    assert contents == [(one.role, one.content, one.reply) for one in original.nodes.values()]
    copied.check_invariants()
    assert stage.rig.stored(lambda store: store.load(copied.conversation_id)) == copied
    stage.run(CommandId.UNDO)
    assert stage.rows == ["TODAY", "One"]


def test_long_title_of_a_copy_is_cut_before_its_ending(stage: Stage) -> None:
    metrics = stage.list.fontMetrics()
    title = copied_title("How the weather of the coast differs from that of the hills")
    shown = elided_title(metrics, title, 160)
    assert shown.startswith("How the")
    assert shown.endswith("… (copy)")
    assert metrics.horizontalAdvance(shown) <= 160
    assert elided_title(metrics, "Short (copy)", 160) == "Short (copy)"
    assert elided_title(metrics, title, 10) in ("", "…", "H…"), "there is no room for the ending"


def test_chat_that_is_answering_cannot_be_duplicated(stage: Stage) -> None:
    stage.send("Hello")
    assert not stage.window.commands[CommandId.DUPLICATE].isEnabled()
    stage.answer("Hi")
    assert stage.window.commands[CommandId.DUPLICATE].isEnabled()


def test_undo_brings_back_the_title_before_a_rename(stage: Stage) -> None:
    make_chats(stage, "One")
    stage.rig.core.organiser.rename(stage.current, "Uno")
    stage.settle()
    assert stage.rows == ["TODAY", "Uno"]
    stage.run(CommandId.UNDO)
    assert stage.rows == ["TODAY", "One"]
    assert not stage.rig.current.title_is_manual


def test_order_by_title_is_kept_in_the_settings(stage: Stage) -> None:
    make_chats(stage, "alpha 10", "Beta", "alpha 9")
    stage.run(CommandId.BY_TITLE)
    assert stage.rows == ["CHATS", "alpha 9", "alpha 10", "Beta"]
    assert stage.rig.core.preferences.value.chat_order is ChatOrder.TITLE
    stage.run(CommandId.NEXT_CHAT)
    assert stage.texts[0] == "alpha 10", "Next Chat follows the order of the list"


def test_list_ends_at_the_footer_while_no_row_is_below_it(stage: Stage) -> None:
    sidebar = stage.window.sidebar
    make_chats(stage, "One", "Two")
    assert sidebar.list.geometry().bottom() + 1 == sidebar.footer.y()
    stage.run(CommandId.ARCHIVE)
    sidebar.toast.dismiss()
    stage.settle()
    assert sidebar.list.geometry().bottom() + 1 == sidebar.foot.y()
    QTest.mouseClick(sidebar.foot.archived, Qt.MouseButton.LeftButton)
    choose(stage, "Unarchive")
    sidebar.toast.dismiss()
    stage.settle()
    assert sidebar.list.geometry().bottom() + 1 == sidebar.footer.y()


def test_row_of_the_archive_has_a_line_above_it_and_an_icon(stage: Stage) -> None:
    make_chats(stage, "One", "Two")
    stage.run(CommandId.ARCHIVE)
    foot = stage.window.sidebar.foot
    picture = foot.grab().toImage()
    line = picture.pixelColor(picture.width() // 2, 0)
    assert line == QColor(LIGHT.hairline)
    assert not foot.archived.icon().isNull()
    assert foot.archived.y() >= Space.S
