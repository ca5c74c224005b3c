"""Tests of names, actions, Tab order and visible focus in many states of the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible, QAccessibleInterface, QGuiApplication, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from app.viewmodels.transcript import ItemStatus
from app.widgets.commands import CommandId
from app.widgets.icon_button import IconButton
from app.widgets.transcript.accessibility.canvas import TranscriptCanvas, install_accessibility
from app.widgets.transcript.editor.editor import EditorText
from engine.errors import ContextFullError, OutOfMemoryError
from tests.app.conftest import MakeStage
from tests.fakes.rig import card
from tests.fakes.stage import SHIFT, Key, Stage
from tests.screenshots.branches import branch_map

# The offscreen platform logs these messages for every popup.
pytestmark = pytest.mark.qt_log_ignore("does not support (raise|grabbing)", extend=True)

Role = QAccessible.Role
NAME, DESCRIPTION = QAccessible.Text.Name, QAccessible.Text.Description
CONTROLS = {
    *(Role.Button, Role.ButtonMenu, Role.CheckBox, Role.RadioButton, Role.ComboBox, Role.Link),
    *(Role.EditableText, Role.SpinBox, Role.Slider, Role.ProgressBar, Role.Dialog),
    *(Role.List, Role.ListItem, Role.MenuItem, Role.Tree, Role.TreeItem),
    *(Role.Table, Role.Cell, Role.PageTab),
}
LONG = (
    """Here it is:

```python
def restore(chat):
    return chat.nearest()
```

| Step | Time |
|---|---|
| restore | 6 ms |

And $x_t$ is a formula. """
    + "More words follow. " * 200
)


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    install_accessibility()


def empty(_stage: Stage) -> None:
    """Do nothing: the state of the window right after it opens."""


def long_answer(stage: Stage) -> None:
    stage.send("Hello")
    stage.engine.think("The state is a sum.")
    stage.answer(LONG)
    stage.run(CommandId.REGENERATE)
    stage.answer(LONG)
    stage.send("And then?")
    stage.answer("Then this.")


def answering(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.send("Again")
    stage.engine.write("Half an ")
    stage.settle()


def queued(stage: Stage) -> None:
    answering(stage)
    stage.send("Next")


def editing(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.EDIT_LAST)


def finding(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.FIND)


def inspecting(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.INSPECTOR)


def choosing(stage: Stage) -> None:
    stage.run(CommandId.CHOOSE_MODEL)


def toast(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.DELETE)


def notice(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.engine.hold_start = True
    stage.send("Again")
    stage.engine.fail(ContextFullError("It is too long.").problem)
    stage.settle()


def crashed(stage: Stage) -> None:
    """Show the notice of a crash with its details open."""
    stage.chat("Hello", "Hi")
    notice = stage.pane.app_notice
    notice.show_crash(Path(__file__))
    notice.details_button.click()
    stage.settle()


def failed(stage: Stage) -> None:
    stage.send("Hello")
    stage.engine.fail(OutOfMemoryError("8 GB were needed.").problem)
    stage.settle()


def renaming(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.run(CommandId.RENAME)


def renaming_row(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.click_row("Hello")
    stage.list.edit_current()


def sheet(stage: Stage) -> None:
    stage.run(CommandId.SHORTCUTS)


def settings(stage: Stage) -> None:
    stage.run(CommandId.SETTINGS)


def mapping(stage: Stage) -> None:
    branch_map(stage)


def about(stage: Stage) -> None:
    stage.run(CommandId.ABOUT)


def quitting(stage: Stage) -> None:
    answering(stage)
    stage.window.close()


def narrow(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.window.resize(640, 480)
    stage.run(CommandId.INSPECTOR)


STATES = (
    *(empty, long_answer, answering, queued, editing, finding, inspecting, choosing, toast),
    *(
        notice,
        crashed,
        failed,
        renaming,
        renaming_row,
        sheet,
        settings,
        mapping,
        about,
        quitting,
        narrow,
    ),
)
TABBED = (empty, long_answer, queued, finding, inspecting, notice, crashed)
FOCUSED = (long_answer, queued, finding, inspecting, notice, crashed)
every_state = pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
State = Callable[[Stage], None]


def walk(node: QAccessibleInterface) -> Iterator[QAccessibleInterface]:
    yield node
    for number in range(node.childCount()):
        yield from walk(node.child(number))


def nodes(stage: Stage) -> list[QAccessibleInterface]:
    """Return every accessible node of the visible windows, popups and menus."""
    over = [widget for widget in QApplication.topLevelWidgets() if widget.isVisible()]
    menus = [action.menu() for action in stage.window.menuBar().actions()]
    roots = [QAccessible.queryAccessibleInterface(root) for root in (*over, *menus)]
    return [node for root in roots for node in walk(root)]


def is_there(node: QAccessibleInterface) -> bool:
    """Return True if an accessible node is visible or belongs to a menu, open or closed."""
    return node.role() is Role.MenuItem or not node.state().invisible


def said(node: QAccessibleInterface) -> str:
    return f"{node.role()} {node.text(NAME)!r} {node.object()}"


@pytest.mark.slow
@every_state
def test_controls_have_a_name_a_tooltip_a_place_for_tab_and_a_visible_focus(
    stage: Stage, state: State
) -> None:
    state(stage)
    check_names(stage)
    check_icon_buttons(stage)
    if state in TABBED:
        check_tab(stage, state)
    if state in FOCUSED:
        check_focus(stage)


def check_names(stage: Stage) -> None:
    """Assert that every control of the window has an accessible name."""
    controls = [node for node in nodes(stage) if node.role() in CONTROLS and is_there(node)]
    nameless = [said(node) for node in controls if not node.text(NAME).strip()]
    num_controls = len(controls)
    # Otherwise pytest would keep the deleted window's controls after a failed assertion.
    del controls

    assert num_controls > 40
    assert nameless == []


def check_icon_buttons(stage: Stage) -> None:
    """Assert that every button without text has a name, and a tooltip with its shortcut."""
    found = [node.object() for node in nodes(stage)]
    buttons = {
        one
        for one in found
        if isinstance(one, QAbstractButton) and one.isVisible() and not one.text()
    }
    for button in buttons:
        assert button.accessibleName() or button.parent() is None, button
        assert button.toolTip(), button
        described = QAccessible.queryAccessibleInterface(button).text(DESCRIPTION)
        assert described == button.toolTip()
    keyed = {
        action.shortcut().toString(): action.text().removesuffix("…")
        for action in stage.window.commands.values()
        if not action.shortcut().isEmpty()
    }
    for key, words in keyed.items():
        same = [
            one for one in buttons if isinstance(one, IconButton) and one.accessibleName() == words
        ]
        assert all(key in one.toolTip() for one in same), words


def test_loading_progress_bar_has_an_accessible_name(make_stage: MakeStage) -> None:
    stage = make_stage(hold_load=True)
    stage.engine.load_progress(0.62)
    stage.settle()
    bars = [node for node in nodes(stage) if node.role() is Role.ProgressBar and is_there(node)]
    assert [bar.text(NAME) for bar in bars] == ["Loading"]


def messages(stage: Stage) -> list[QAccessibleInterface]:
    canvas = stage.pane.view.viewport()
    assert isinstance(canvas, TranscriptCanvas)
    listed = QAccessible.queryAccessibleInterface(canvas)
    assert listed.role() is Role.List
    inner = [listed.child(number) for number in range(listed.childCount())]
    return [one for one in inner if one.role() is Role.ListItem]


def test_accessible_text_of_messages_out_of_view_is_complete(stage: Stage) -> None:
    long_answer(stage)
    items = messages(stage)
    assert [item.text(NAME) for item in items] == [
        "You, message 1 of 4",
        "Assistant, message 2 of 4, 2 of 2 versions",
        "You, message 3 of 4",
        "Assistant, message 4 of 4",
    ]
    assert [bool(item.state().offscreen) for item in items] == [True, False, False, False]
    for item, text in zip(items, stage.texts, strict=True):
        whole = item.textInterface()
        assert whole.characterCount() == len(text)
        assert whole.text(0, whole.characterCount()) == text
        assert whole.text(2, 5) == text[2:5]
        assert whole.selectionCount() == 0
        assert item.parent().indexOfChild(item) == items.index(item)


def test_accessible_scroll_brings_a_message_into_view(stage: Stage) -> None:
    long_answer(stage)
    first = messages(stage)[0]
    first.textInterface().scrollToSubstring(0, 1)
    assert not first.state().offscreen


def test_accessible_actions_of_a_message_equal_its_buttons(stage: Stage) -> None:
    long_answer(stage)
    question, answer, *_others, last = messages(stage)
    delete = "Delete This and Everything After"
    fork = "Fork into a New Chat"
    assert question.actionInterface().actionNames() == ["Edit", "Copy", fork, delete]
    offered = ["Copy", "Regenerate", "Edit Answer", fork]
    offered += [
        "Delete This Version",
        "Previous Version",
        "Show Answers Side by Side",
        "Why Was This Read?",
    ]
    assert answer.actionInterface().actionNames() == offered
    last.actionInterface().doAction("Copy")
    assert QGuiApplication.clipboard().text() == "Then this."
    answer.actionInterface().doAction("Previous Version")
    stage.settle()
    assert stage.items[1].version.number == 1
    assert last.actionInterface().actionNames() == [], "the message is on the hidden branch"
    question.actionInterface().doAction("Edit")
    stage.settle()
    assert stage.items[0].editing


def test_accessible_continue_and_retry_restart_the_answer(stage: Stage) -> None:
    answering(stage)
    assert messages(stage)[-1].actionInterface().actionNames() == ["Stop"]
    stage.run(CommandId.STOP)
    messages(stage)[-1].actionInterface().doAction("Continue")
    stage.settle()
    assert stage.items[-1].status is ItemStatus.STREAMING
    stage.engine.fail(OutOfMemoryError("8 GB were needed.").problem)
    stage.settle()
    messages(stage)[-1].actionInterface().doAction("Retry")
    stage.settle()
    assert stage.items[-1].status is ItemStatus.STREAMING


def test_accessible_stop_of_a_waiting_edit_focuses_its_editor_again(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.engine.hold_load = True
    stage.rig.models.choose(card("Other-4B").path)
    stage.run(CommandId.EDIT_LAST)
    QTest.keyClicks(stage.pane.view.focusWidget(), " more")
    QTest.keyClick(stage.pane.view.focusWidget(), Key.Key_Return)
    stage.settle()
    assert stage.edit.hasFocus()
    messages(stage)[-1].actionInterface().doAction("Stop")
    stage.settle()
    assert stage.pane.view.editor_host.edit == (stage.items[0].key, "One more")
    assert isinstance(QApplication.focusWidget(), EditorText)


def tabbed(
    start: QWidget, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> Iterator[QWidget]:
    """Yield the widgets in Tab order, from `start` until Tab reaches a widget again.

    Each widget has the keyboard focus when it is yielded.
    """
    start.setFocus(Qt.FocusReason.TabFocusReason)
    found: list[QWidget] = []
    while (widget := QApplication.focusWidget()) is not None and widget not in found:
        found.append(widget)
        yield widget
        # The transcript keeps the focus for several Tab stops.
        while QApplication.focusWidget() is widget:
            QTest.keyClick(widget, Key.Key_Tab, modifier)


def check_tab(stage: Stage, state: State) -> None:
    """Assert that Tab reaches every control, part by part, and Shift+Tab in the reverse order."""
    takes = Qt.FocusPolicy.TabFocus
    reachable = {
        widget
        for widget in stage.window.findChildren(QWidget)
        if widget.isVisibleTo(stage.window)
        and widget.window() is stage.window
        and widget.isEnabled()
        and widget.focusPolicy() & takes
        and widget.focusProxy() is None
        and not (widget is stage.list and not stage.rows)  # Tab passes an empty list
    }
    first = stage.window.sidebar.search.edit
    around = list(tabbed(first))
    assert {widget for widget in reachable if widget not in around} == set()
    if state is not empty:
        assert around.index(stage.pane.view) < around.index(stage.edit)
    parts = [_part(stage, widget) for widget in around]
    turns = [part for before, part in zip(["", *parts], parts, strict=False) if part != before]
    inspector = ["inspector"] if state is inspecting else []
    assert turns == ["sidebar", "pane", *inspector, "toolbar"]
    back = list(tabbed(first, SHIFT))
    assert back[1:] == around[:0:-1]


def _part(stage: Stage, widget: QWidget) -> str:
    window = stage.window
    parts = {
        "sidebar": window.sidebar,
        "toolbar": window.toolbar,
        "inspector": window.inspector,
        "pane": stage.pane,
    }
    return next((name for name, part in parts.items() if part.isAncestorOf(widget)), "")


def picture(window: QWidget) -> QImage:
    return window.grab().toImage()


def check_focus(stage: Stage) -> None:
    """Assert that each control looks different while it has the keyboard focus."""
    stage.settle()  # lay out a card that has appeared
    QApplication.setCursorFlashTime(0)  # stops the blinking of the text cursor
    for widget in tabbed(stage.list):
        with_focus = picture(stage.window)
        widget.clearFocus()
        assert picture(stage.window) != with_focus, widget
        widget.setFocus(Qt.FocusReason.TabFocusReason)
