"""The search over all conversations in the sidebar, used with keys and mouse."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.conversation.attachments import make_attachment
from app.conversation.folder import Folder
from app.conversation.placement import FolderId
from app.conversation.tree import set_draft_attachments
from app.viewmodels.search import FoundRow
from app.widgets.commands import CommandId, tooltip
from app.widgets.menu import Menu
from app.widgets.search_results import SearchResults
from tests.fakes.stage import Stage

Key = Qt.Key


def search(stage: Stage, words: str) -> SearchResults:
    stage.run(CommandId.SEARCH)
    QTest.keyClicks(stage.window.sidebar.search.edit, words)
    settle(stage)
    return stage.window.sidebar.results


def settle(stage: Stage) -> None:
    """Wait for the running search, and for that of the words that were typed meanwhile."""
    stage.settle()
    stage.settle()


def rows(results: SearchResults) -> list[FoundRow]:
    return [
        results.item(number).data(Qt.ItemDataRole.UserRole) for number in range(results.count())
    ]


@pytest.fixture
def chats(stage: Stage) -> Stage:
    """Return a window with two conversations. The newest one is on show."""
    stage.chat("How do foxes hunt?", "By **ear**, mostly.")
    stage.chat("And in winter?", "They dive into the snow.")
    stage.run(CommandId.NEW_CHAT)
    stage.rig.origin.time_s += 1
    stage.chat("Bread without yeast", "Use soda, or a fox.")
    return stage


def choose_filter(stage: Stage, submenu: str, text: str) -> None:
    """Choose an entry of the menu of the filters."""
    QTest.mouseClick(stage.window.sidebar.search.filter_button, Qt.MouseButton.LeftButton)
    menus = stage.window.sidebar.filters.findChildren(Menu)
    menu = next(one for one in menus if one.title() == submenu)
    next(action for action in menu.actions() if action.text() == text).trigger()
    for one in menus:
        one.close()
    settle(stage)


def titles(results: SearchResults) -> list[str]:
    return [row.text for row in rows(results) if row.node_id is None]


@pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
def test_filter_by_folder_and_archive_limits_the_results(chats: Stage) -> None:
    organiser, library = chats.rig.core.organiser, chats.rig.library
    work = chats.rig.core.folders.create(Folder(folder_id=FolderId(""), name="Work"))
    newest, oldest = (one.conversation_id for one in library.listed.unarchived)
    organiser.move([oldest], work.folder_id)
    organiser.archive([newest], archived=True)
    results = search(chats, "fox")
    assert titles(results) == ["How do foxes hunt?", "Bread without yeast"]
    choose_filter(chats, "Archived Chats", "Only Archived")
    assert titles(results) == ["Bread without yeast"]
    filters = chats.window.sidebar.filters
    assert filters.isVisible()
    assert filters.label.text() == "Only Archived"
    QTest.mouseClick(filters.remove, Qt.MouseButton.LeftButton)
    settle(chats)
    assert len(titles(results)) == 2
    choose_filter(chats, "Folder", "Work")
    assert titles(results) == ["How do foxes hunt?"]
    QTest.keyClick(chats.window.sidebar.search.edit, Key.Key_Escape)
    assert not filters.isVisible(), "the end of a search removes its filters"


@pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
def test_filter_by_date_and_model_limits_the_results(chats: Stage) -> None:
    results = search(chats, "fox")
    choose_filter(chats, "Model", "Tiny 9B 4-bit")
    assert [row.text for row in rows(results)] == ["Bread without yeast", "Use soda, or a fox."]
    chats.rig.origin.time_s += 40 * 24 * 3600
    choose_filter(chats, "Date", "Previous 30 Days")
    assert chats.window.sidebar.nothing_found.isVisible()
    choose_filter(chats, "Date", "Any Time")
    assert len(rows(results)) == 2


def test_found_messages_stand_below_their_conversations(chats: Stage) -> None:
    results = search(chats, "FOX")
    assert results.isVisible()
    assert not chats.list.isVisible()
    assert [row.text for row in rows(results)] == [
        "How do foxes hunt?",
        "How do foxes hunt?",
        "Bread without yeast",
        "Use soda, or a fox.",
    ]
    hit = rows(results)[3]
    assert hit.text[hit.start : hit.end] == "fox"
    assert hit.spoken == "Answer: Use soda, or a fox."
    assert rows(results)[0].spoken == "How do foxes hunt?, 1 message"


def test_search_field_has_the_keys_of_its_command_in_its_tooltip(chats: Stage) -> None:
    field, action = chats.window.sidebar.search.edit, chats.window.commands[CommandId.SEARCH]
    action.setShortcut("Ctrl+J")
    assert field.toolTip() == tooltip(action)
    assert field.toolTip().endswith("Ctrl+J")


def test_marks_of_bold_text_are_left_out(chats: Stage) -> None:
    hit = rows(search(chats, "ear"))[1]
    assert hit.text == "By ear, mostly."
    assert hit.text[hit.start : hit.end] == "ear"


def test_return_opens_the_first_found_message_and_esc_ends_the_search(chats: Stage) -> None:
    results = search(chats, "winter")
    field = chats.window.sidebar.search.edit
    QTest.keyClick(field, Key.Key_Return)
    chats.settle()
    assert chats.texts[0] == "How do foxes hunt?"
    assert rows(results)[results.currentRow()].node_id is not None
    assert results.isVisible(), "the search goes on"
    QTest.keyClick(field, Key.Key_Escape)
    assert field.text() == ""
    assert chats.list.isVisible()
    assert chats.edit.hasFocus()


def test_click_opens_the_message_on_its_branch(chats: Stage) -> None:
    view = chats.pane.view
    chats.click_row("How do foxes hunt?")
    view.editor_host.submitted.emit(chats.items[2].key, "And in summer?")
    chats.settle()
    chats.answer("They eat berries.")
    assert "They dive into the snow." not in chats.texts
    results = search(chats, "snow")
    rect = results.visualItemRect(results.item(1))
    QTest.mouseClick(results.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
    chats.settle()
    assert "They dive into the snow." in chats.texts


def test_version_that_a_result_has_shown_is_undone_and_redone(chats: Stage) -> None:
    view = chats.pane.view
    chats.click_row("How do foxes hunt?")
    view.editor_host.submitted.emit(chats.items[2].key, "And in summer?")
    chats.settle()
    chats.answer("They eat berries.")
    newest = chats.texts
    results = search(chats, "snow")
    rect = results.visualItemRect(results.item(1))
    QTest.mouseClick(results.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
    chats.settle()
    found = chats.texts
    assert chats.window.commands[CommandId.UNDO].text() == "Undo Show Version 1"
    chats.run(CommandId.UNDO)
    assert chats.texts == newest
    chats.run(CommandId.REDO)
    assert chats.texts == found
    # A result on the branch on show is no step.
    QTest.mouseClick(results.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
    chats.settle()
    chats.run(CommandId.UNDO)
    assert chats.texts == newest


def test_click_scrolls_to_the_message(chats: Stage) -> None:
    chats.chat("A list, please", "\n\n".join(f"Line {number}" for number in range(80)))
    results = search(chats, "soda")
    rect = results.visualItemRect(results.item(1))
    for scrolled_to in (None, 0):
        if scrolled_to is not None:
            chats.pane.view.verticalScrollBar().setValue(scrolled_to)
        QTest.mouseClick(results.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
        chats.settle()
        position = chats.pane.transcript.position
        assert position is not None
        assert position.key == chats.items[1].key


def test_arrow_keys_lead_into_the_results_and_back(chats: Stage) -> None:
    results = search(chats, "fox")
    field = chats.window.sidebar.search.edit
    QTest.keyClick(field, Key.Key_Down)
    assert results.hasFocus()
    QTest.keyClick(results, Key.Key_Down)
    QTest.keyClick(results, Key.Key_Return)
    chats.settle()
    assert chats.texts[0] == "How do foxes hunt?"
    QTest.keyClick(results, Key.Key_Up)
    QTest.keyClick(results, Key.Key_Up)
    assert field.hasFocus()
    QTest.keyClick(field, Key.Key_Down)
    QTest.keyClicks(results, "es")
    settle(chats)
    assert field.text() == "foxes"
    assert [row.text for row in rows(results)] == ["How do foxes hunt?"] * 2


def test_sentence_stands_where_nothing_is_found(chats: Stage) -> None:
    sidebar = chats.window.sidebar
    search(chats, "zebra")
    assert sidebar.nothing_found.isVisible()
    assert sidebar.nothing_found.text() == "No chat contains “zebra”."
    QTest.mouseClick(sidebar.search.clear_button, Qt.MouseButton.LeftButton)
    assert chats.list.isVisible()
    assert not sidebar.search.clear_button.isVisible()


def test_single_letter_is_not_searched_for(chats: Stage) -> None:
    search(chats, "f")
    assert chats.list.isVisible()


def test_results_follow_the_conversations(chats: Stage) -> None:
    results = search(chats, "snow")
    assert len(rows(results)) == 2
    chats.rig.core.deletions.delete_all((rows(results)[0].conversation_id,))
    settle(chats)
    assert not results.isVisible()
    assert chats.window.sidebar.nothing_found.isVisible()


def test_command_shows_a_hidden_sidebar(chats: Stage) -> None:
    chats.run(CommandId.SIDEBAR)
    assert not chats.window.sidebar.isVisible()
    chats.run(CommandId.SEARCH)
    assert chats.window.sidebar.search.edit.hasFocus()


def test_selected_result_follows_the_chat_on_show(chats: Stage) -> None:
    results = search(chats, "fox")
    bread, foxes = chats.core.library.listed.unarchived
    QTest.keyClick(chats.window.sidebar.search.edit, Key.Key_Return)
    settle(chats)
    assert rows(results)[results.currentRow()].conversation_id == foxes.conversation_id

    chats.core.library.select(bread.conversation_id)
    settle(chats)
    assert rows(results)[results.currentRow()].conversation_id == bread.conversation_id

    chats.core.library.new_chat()
    settle(chats)
    assert results.isVisible()
    assert results.currentRow() == -1


def test_new_chat_ends_the_search(chats: Stage) -> None:
    results = search(chats, "fox")
    assert results.isVisible()

    chats.run(CommandId.NEW_CHAT)
    settle(chats)

    assert not results.isVisible()
    assert chats.window.sidebar.search.edit.text() == ""
    assert chats.edit.hasFocus()


def test_opened_result_is_found_in_its_chat_until_another_chat_is_shown(chats: Stage) -> None:
    search(chats, "snow")
    bar = chats.pane.find_bar
    assert chats.current == chats.core.library.listed.unarchived[0].conversation_id
    QTest.keyClick(chats.window.sidebar.search.edit, Key.Key_Return)
    settle(chats)

    assert chats.texts[-1] == "They dive into the snow."
    assert bar.isVisible()
    assert (bar.field.text(), bar.count.text()) == ("snow", "1 of 1")
    assert not bar.field.hasFocus()

    QTest.keyClick(chats.window.sidebar.search.edit, Key.Key_Escape)
    chats.run(CommandId.NEW_CHAT)
    assert not bar.isVisible()


def test_chosen_message_has_the_marked_match_and_the_find_bar_the_typed_words(
    chats: Stage,
) -> None:
    chats.chat("Are there lighthouses? A unlightho too?", "Lighthouses, yes.")
    chats.chat("Which is the oldest?", "An unlighthouse, or the Lighthouse of 1611.")
    chats.chat("And the newest one?", "None.")
    results = search(chats, "lightho")
    bar = chats.pane.find_bar
    for row, place in ((1, "5 of 5"), (2, "3 of 5"), (3, "1 of 5")):
        rect = results.visualItemRect(results.item(row))
        QTest.mouseClick(results.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
        settle(chats)
        assert (bar.field.text(), bar.count.text()) == ("lightho", place)
    chats.run(CommandId.FIND_NEXT)
    assert bar.count.text() == "2 of 5"


def test_result_that_the_message_does_not_show_opens_no_find_bar(chats: Stage) -> None:
    chats.chat("A fox?", "A [dog](http://fox).")
    results = search(chats, "fox")
    texts = [row.text for row in rows(results)]
    for text, is_found in (("A fox?", True), ("A [dog](http://fox).", False)):
        rect = results.visualItemRect(results.item(texts.index(text)))
        QTest.mouseClick(results.viewport(), Qt.MouseButton.LeftButton, pos=rect.center())
        settle(chats)
        assert chats.pane.find_bar.isVisible() is is_found


def test_result_in_the_chat_on_show_is_found_at_once(chats: Stage) -> None:
    search(chats, "soda")
    QTest.keyClick(chats.window.sidebar.search.edit, Key.Key_Return)
    settle(chats)

    assert chats.pane.find_bar.field.text() == "soda"
    assert chats.pane.find_bar.isVisible()


@pytest.mark.qt_log_ignore("does not support raise", extend=True)
def test_result_in_a_file_has_its_name_and_opens_its_text_at_the_words(chats: Stage) -> None:
    file = make_attachment(
        "pier.txt", "text", "Boats here.\nBoats longer than twelve metres moor here."
    )
    chats.run(CommandId.NEW_CHAT)
    chats.core.chat.apply(set_draft_attachments(chats.core.desk.get(chats.current), (file,)))
    chats.chat("Summary?", "Boats.")
    results = search(chats, "twelve metres")
    row = results.item(1).data(Qt.ItemDataRole.AccessibleTextRole)
    assert "pier.txt: " in row
    QTest.keyClick(chats.window.sidebar.search.edit, Key.Key_Return)
    chats.wait_until(lambda: chats.pane.texts.window is not None)
    window = chats.pane.texts.window
    assert window is not None
    assert window.edit.textCursor().selectedText() == "twelve"
    assert not chats.pane.find_bar.isVisible()
    window.close()
