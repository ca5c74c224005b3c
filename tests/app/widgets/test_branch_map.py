"""The branch map: clicks, keys, deletion with undo, comparison, costs, and screen readers."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtGui import QAccessible, QAccessibleActionInterface, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QToolTip

from app.conversation.tree import NodeId
from app.viewmodels.branch_cost import BranchCost, BranchState
from app.widgets.branch_map.compare_window import CompareWindow
from app.widgets.branch_map.window import BranchMapWindow
from app.widgets.commands import CommandId
from engine.errors import TemplateError
from engine.questions import CountTokens
from tests.fakes.stage import CTRL, Key, Stage
from tests.screenshots.branches import branch_map

pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)
ALT = Qt.KeyboardModifier.AltModifier
NAME, VALUE = QAccessible.Text.Name, QAccessible.Text.Value
ON_SHOW = [
    "Why can the state of a linear-attention layer not be trimmed?",
    "Because it is a sum.",
    "What does an edit in the middle cost?",
    "Show me the code.",
    "def restore(chat, node): ...",
    "Does it work for a hybrid model?",
    "Yes: its attention layers are cut instead.",
]


def node(window: BranchMapWindow, text: str) -> NodeId:
    branches = window.map.branches
    return next(one for one in branches.order if branches.label(one).startswith(text))


def label(window: BranchMapWindow) -> str:
    """Return the text of the message that keys act on."""
    current = window.map.current
    assert current is not None
    return window.map.branches.label(current)


def click(
    stage: Stage,
    window: BranchMapWindow,
    text: str,
    modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier,
) -> None:
    found = node(window, text)
    window.map.set_current(found)
    place = window.map.place_of(found)
    QTest.mouseClick(window.map.canvas, Qt.MouseButton.LeftButton, modifier, place)
    stage.settle()


def press(window: BranchMapWindow, *keys: Qt.Key) -> None:
    for key in keys:
        QTest.keyClick(window.map, key)


def labels(stage: Stage) -> list[str]:
    return [text.split("\n")[0] for text in stage.texts]


def test_map_opens_at_the_place_of_the_transcript(stage: Stage) -> None:
    window = branch_map(stage)

    assert window.isVisible()
    assert window.windowTitle() == "Branches of “DeltaNet cache design”"
    assert window.summary.text() == "19 messages · 4 branches"
    assert window.map.current == window.map.marks.here
    assert {window.map.branches.label(one) for one in window.map.branches.shown} > set(ON_SHOW)


def test_command_is_disabled_in_a_chat_without_messages(stage: Stage) -> None:
    action = stage.window.commands[CommandId.BRANCH_MAP]
    assert not action.isEnabled()
    stage.chat("One", "1")
    assert action.isEnabled()


def test_click_shows_the_branch_and_scrolls_to_the_message(stage: Stage) -> None:
    window = branch_map(stage)

    click(stage, window, "And on disk?")

    assert "And on disk?" in stage.texts
    assert "Show me the code." not in stage.texts
    assert node(window, "And on disk?") in window.map.branches.shown
    stage.window.resize(640, 480)
    click(stage, window, "Because it is a sum.")
    position = stage.pane.transcript.position
    assert position is not None
    assert (position.key, position.offset) == (node(window, "Because it is a sum."), 0)
    assert window.map.marks.here == position.key


def test_click_shows_the_message_that_answers_side_by_side_cover(stage: Stage) -> None:
    stage.chat("A boat?", "Yes.")
    stage.run(CommandId.REGENERATE)
    stage.answer("No.")
    stage.run(CommandId.SIDE_BY_SIDE)
    assert not stage.pane.view.isVisible()
    stage.run(CommandId.BRANCH_MAP)
    (window,) = stage.window.findChildren(BranchMapWindow)

    click(stage, window, "A boat?")

    assert stage.pane.view.isVisible()


def test_message_at_the_top_of_the_transcript_is_marked_when_it_scrolls(stage: Stage) -> None:
    stage.window.resize(640, 480)
    window = branch_map(stage)
    bar = stage.pane.view.verticalScrollBar()

    bar.setValue(bar.minimum())

    assert window.map.marks.here == node(window, "Why can the state")
    bar.setValue(bar.maximum())
    assert window.map.marks.here == node(window, "Yes: its attention")


def test_keys_move_between_messages_and_return_shows_one(stage: Stage) -> None:
    window = branch_map(stage)

    press(window, Key.Key_Home)
    assert label(window) == ON_SHOW[0]
    press(window, Key.Key_Down, Key.Key_Down)
    assert label(window) == ON_SHOW[2]
    press(window, Key.Key_Left)
    assert label(window) == "What does a snapshot cost?"
    press(window, Key.Key_End)
    assert label(window).startswith("The newest one")
    QTest.keyClick(window.map, Key.Key_Up, ALT)
    assert label(window) == "What does a snapshot cost?"
    press(window, Key.Key_Up)
    assert label(window) == "Because it is a sum."
    QTest.keyClick(window.map, Key.Key_Down, ALT)
    assert label(window) == ON_SHOW[2]
    press(window, Key.Key_Left, Key.Key_Return)
    stage.settle()
    assert "And on disk?" in stage.texts


def test_escape_and_close_key_close_the_window(stage: Stage) -> None:
    window = branch_map(stage)
    press(window, Key.Key_Escape)
    assert not window.isVisible()
    stage.run(CommandId.BRANCH_MAP)
    window.activateWindow()
    stage.wait_until(lambda: QApplication.activeWindow() is window)
    QTest.keyClick(window, Key.Key_W, CTRL)
    assert not window.isVisible()


def test_branch_is_deleted_with_undo_and_redo(stage: Stage) -> None:
    window = branch_map(stage)
    before = stage.texts
    window.map.set_current(node(window, "And on disk?"))
    assert window.delete_button.text() == "Delete Branch · 6 messages"

    press(window, Key.Key_Delete)
    stage.settle()

    assert window.summary.text() == "13 messages · 3 branches"
    assert stage.texts == before, "another branch is on show"
    assert stage.window.toast.text == "Deleted 6 messages"
    assert label(window) == "Because it is a sum.", "the message above is current"
    assert stage.window.commands[CommandId.UNDO].text() == "Undo Delete Branch"
    stage.run(CommandId.UNDO)
    assert window.summary.text() == "19 messages · 4 branches"
    assert stage.texts == before
    stage.run(CommandId.REDO)
    assert window.summary.text() == "13 messages · 3 branches"


def test_deletion_of_the_branch_on_show_shows_another_and_undo_shows_it_again(
    stage: Stage,
) -> None:
    window = branch_map(stage)
    window.map.set_current(node(window, "Does it work"))
    assert window.delete_button.text() == "Delete Branch · 4 messages"

    window.delete_button.click()
    stage.settle()

    assert "Show me the code." not in stage.texts
    assert "Then why not keep all of them?" in stage.texts
    stage.run(CommandId.UNDO)
    assert "Does it work for a hybrid model?" in stage.texts


def test_message_that_all_branches_contain_cannot_be_deleted_with_one(stage: Stage) -> None:
    window = branch_map(stage)
    press(window, Key.Key_Home)

    press(window, Key.Key_Delete)
    stage.settle()

    assert not window.delete_button.isEnabled()
    assert window.delete_button.toolTip() == "Every branch contains this message"
    assert window.summary.text() == "19 messages · 4 branches"


def test_no_branch_is_deleted_while_an_answer_is_running(stage: Stage) -> None:
    window = branch_map(stage)
    stage.send("And now?")
    stage.engine.write("Half")
    stage.settle()
    window.map.set_current(node(window, "And on disk?"))

    press(window, Key.Key_Delete)
    stage.settle()

    assert window.delete_button.toolTip() == "Wait until the answer in this chat has ended"
    assert window.summary.text() == "21 messages · 4 branches"
    stage.core.chat.prune(stage.current, node(window, "And on disk?"))
    stage.settle()
    assert window.summary.text() == "21 messages · 4 branches"
    stage.answer(" an answer")
    assert window.delete_button.isEnabled()


def test_two_selected_branches_are_compared_with_their_differences(stage: Stage) -> None:
    window = branch_map(stage)
    click(stage, window, "What does a snapshot cost?", CTRL)
    assert "And on disk?" not in stage.texts, "it selects and does not show"
    click(stage, window, "What does an edit", CTRL)

    window.compare_button.click()

    compared = stage.window.findChild(CompareWindow)
    assert compared is not None
    assert compared.isVisible()
    assert [head.text() for head in compared.heads] == ["A · 6 messages", "B · 6 messages"]
    assert compared.summary.text().startswith("The branches share 2 messages · ")
    assert compared.summary.indent() == compared.heads[0].indent()
    text = compared.text.toPlainText()
    assert "a snapshot" in text
    assert underlined(compared)[:2] == ["a snapshot", "an edit in the middle"]
    QTest.keyClick(compared.text, Key.Key_Escape)
    assert not compared.isVisible()


def underlined(window: CompareWindow) -> list[str]:
    found: list[str] = []
    block = window.text.document().begin()
    while block.isValid():
        for layout in block.textFormats():
            if layout.format.fontUnderline():
                begin = layout.start
                found.append(block.text()[begin : begin + layout.length])
        block = block.next()
    return found


def test_one_branch_is_compared_with_the_branch_on_show(stage: Stage) -> None:
    window = branch_map(stage)
    press(window, Key.Key_End)
    assert not window.compare_button.isEnabled(), "it is the branch on show"
    assert window.compare_button.toolTip()
    window.map.set_current(node(window, "And on disk?"))
    assert window.compare_button.text() == "Compare with Current Branch"

    window.compare_button.click()

    compared = stage.window.findChild(CompareWindow)
    assert compared is not None
    assert compared.heads[0].text() == "On show · 6 messages"


def test_space_selects_two_branches_and_a_third_replaces_the_first(stage: Stage) -> None:
    window = branch_map(stage)
    texts = ("And on disk?", "Show me the code.", "Could they be compressed?")
    for text in texts:
        window.map.set_current(node(window, text))
        press(window, Key.Key_Space)
    assert window.map.marks.selected == [node(window, text) for text in texts[1:]]
    press(window, Key.Key_Space)
    assert window.map.marks.selected == [node(window, texts[1])]


def test_zoom_keeps_the_message_that_keys_act_on_in_sight(stage: Stage) -> None:
    window = branch_map(stage)
    current = window.map.current
    assert current is not None
    for key in (Key.Key_Plus, Key.Key_Minus, Key.Key_Minus, Key.Key_Minus, Key.Key_Minus):
        press(window, key)
        assert window.map.canvas.rect().contains(window.map.place_of(current))
    assert not window.smaller.isEnabled()
    press(window, Key.Key_0)
    assert window.smaller.isEnabled()
    assert window.larger.isEnabled()


def test_costs_stand_at_the_ends_and_in_their_tooltips(stage: Stage) -> None:
    window = branch_map(stage)
    end = node(window, "To a half")
    window.show_costs({end: BranchCost(BranchState.UNREAD, "Reads 212 tokens", "Reads 212 tokens")})
    window.map.set_current(end)
    place = window.map.place_of(end)
    canvas = window.map.canvas

    QApplication.sendEvent(
        canvas, QHelpEvent(QEvent.Type.ToolTip, place, canvas.mapToGlobal(place))
    )

    assert "Assistant · Reads 212\xa0tokens\nTo a half" in QToolTip.text()


def test_tooltip_shows_markup_in_a_message_as_text(stage: Stage) -> None:
    stage.chat("<b>bold</b>", "1")
    stage.run(CommandId.BRANCH_MAP)
    window = stage.window.findChild(BranchMapWindow)
    assert window is not None
    press(window, Key.Key_Home)
    assert window.map.current is not None
    place = window.map.place_of(window.map.current)
    canvas = window.map.canvas

    QApplication.sendEvent(
        canvas, QHelpEvent(QEvent.Type.ToolTip, place, canvas.mapToGlobal(place))
    )

    assert "&lt;b&gt;bold&lt;/b&gt;" in QToolTip.text()


def test_click_on_a_message_at_the_edge_shows_it(stage: Stage) -> None:
    window = branch_map(stage)
    window.map.verticalScrollBar().setValue(0)
    found = node(window, "Because it is a sum.")
    rect = window.map.item_rect(window.map.branches.order.index(found))
    bar = window.map.horizontalScrollBar()
    bar.setValue(bar.value() + rect.left() + rect.width() // 2)
    rect = window.map.item_rect(window.map.branches.order.index(found))
    place = QPoint(rect.right() - 4, rect.center().y())
    shown: list[str] = []
    window.map.chosen.connect(shown.append)

    QTest.mouseClick(window.map.canvas, Qt.MouseButton.LeftButton, pos=place)

    assert rect.left() < 0, "a part of the message is out of sight"
    assert shown == [found]


def test_visible_ends_are_reported_until_the_window_is_closed(stage: Stage) -> None:
    window = branch_map(stage)
    seen: list[list[NodeId]] = []
    window.ends_seen.connect(seen.append)
    window.resize(1400, 700)
    stage.settle()
    assert set(seen[-1]) == window.map.branches.ends
    window.close()
    assert seen[-1] == []


def test_map_follows_the_chat_on_show_and_new_messages(stage: Stage) -> None:
    window = branch_map(stage)
    stage.chat("And now?", "Now this.")
    assert window.summary.text() == "21 messages · 4 branches"
    stage.run(CommandId.NEW_CHAT)
    assert window.empty.isVisible()
    assert window.map.isHidden()
    stage.chat("One", "1")
    assert window.summary.text() == "2 messages · 1 branch"
    assert window.map.isVisible()
    assert window.windowTitle() == "Branches of “One”"


def test_menu_of_a_message_has_its_actions(stage: Stage) -> None:
    window = branch_map(stage)
    window.map.set_current(node(window, "And on disk?"))
    window.map.menu_requested.emit(QPoint(10, 10))
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    texts = [action.text() for action in menu.actions() if not action.isSeparator()]
    assert texts == [
        "Show in Chat",
        "Select to Compare",
        "Compare with Current Branch",
        "Delete Branch · 6 messages",
    ]
    menu.actions()[0].trigger()
    menu.close()
    stage.settle()
    assert "And on disk?" in stage.texts


def test_screen_readers_read_names_values_and_states_and_press_a_message(stage: Stage) -> None:
    window = branch_map(stage)
    canvas = QAccessible.queryAccessibleInterface(window.map.canvas)
    items = [canvas.child(at) for at in range(canvas.childCount())]

    assert (canvas.role(), canvas.text(NAME)) == (QAccessible.Role.List, "Branch map")
    assert len(items) == 19
    assert {item.role() for item in items} == {QAccessible.Role.ListItem}
    names = [item.text(NAME) for item in items]
    assert names[2] == "You, message 3: What does a snapshot cost?, 1 of 2 versions"
    assert names[0].endswith("trimmed?, on show")
    assert names[-1].endswith("instead., on show, you are here")
    assert "Instant" in [item.text(VALUE) for item in items]
    window.map.set_current(window.map.branches.order[2])
    window.map.toggle_selected(window.map.current)
    assert items[2].state().selected
    assert not items[3].state().selected
    assert items[2].text(NAME).endswith(", A")
    at = items[2].rect().center()
    assert canvas.childAt(at.x(), at.y()) is items[2]
    press_action = items[4].actionInterface()
    assert press_action is not None
    press_action.doAction(QAccessibleActionInterface.pressAction())
    stage.settle()
    assert "And on disk?" in stage.texts


def costs(window: BranchMapWindow) -> dict[str, str]:
    """Return the costs on show, by the beginning of the last message."""
    branches = window.map.branches
    return {branches.label(end)[:12]: cost.text for end, cost in window.map.marks.costs.items()}


def with_costs(stage: Stage) -> BranchMapWindow:
    """Open a map that asks for the costs of all branches."""
    window = branch_map(stage)
    window.show_costs({})
    window.resize(1600, 900)
    return window


def other_counts(stage: Stage) -> int:
    """Return the number of questions about branches that are not on show."""
    end = stage.texts[-1]
    return sum(prompt.messages[-1].content != end for prompt in stage.engine.counts)


def test_costs_are_asked_for_the_branches_in_sight(stage: Stage) -> None:
    window = with_costs(stage)
    stage.wait_until(lambda: len(window.map.marks.costs) == 4)
    assert all(text.startswith("Reads ") for text in costs(window).values()), costs(window)

    stage.engine.num_cached = 10_000
    stage.chat("And now?", "Now this.")

    stage.wait_until(lambda: len(window.map.marks.costs) == 4)
    assert all(cost.state is BranchState.MEMORY for cost in window.map.marks.costs.values())
    assert set(costs(window).values()) == {"Instant"}
    window.close()
    assert window.map.marks.costs == {}


def test_costs_are_asked_one_at_a_time_and_withdrawn_when_the_window_is_closed(
    stage: Stage,
) -> None:
    window = with_costs(stage)
    stage.wait_until(lambda: len(window.map.marks.costs) == 4)
    stage.engine.hold_counts = True
    asked = other_counts(stage)
    stage.core.branch_costs.want(stage.current, [])
    stage.core.branch_costs.want(stage.current, window.map.visible_ends)
    stage.wait_until(lambda: other_counts(stage) > asked)
    assert other_counts(stage) == asked + 1
    withdrawn = stage.engine.num_withdrawn

    window.close()
    assert stage.engine.num_withdrawn == withdrawn + 1
    stage.engine.finish_counts()
    stage.settle()
    assert stage.core.branch_costs.costs == {}


def test_branch_of_which_no_prompt_can_be_made_has_no_cost_and_the_next_one_has(
    stage: Stage,
) -> None:
    stage.engine.hold_counts = True
    window = with_costs(stage)
    stage.wait_until(lambda: other_counts(stage) > 0)

    stage.engine.answer(CountTokens, TemplateError("It refuses this order of roles.").problem)
    stage.engine.finish_counts()

    stage.wait_until(lambda: len(window.map.marks.costs) == 3)
    assert other_counts(stage) == 3, "a branch that was refused is asked for again"


def test_no_cost_is_on_show_while_an_answer_is_running(stage: Stage) -> None:
    window = with_costs(stage)
    stage.wait_until(lambda: len(window.map.marks.costs) == 4)

    stage.send("And now?")

    assert window.map.marks.costs == {}
    stage.answer("Now this.")
    stage.wait_until(lambda: len(window.map.marks.costs) == 4)
