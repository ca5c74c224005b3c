"""Actions of the random user on messages: edit, show a version, delete, undo, select, copy."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton

from app.controllers.undo import MAX_ENTRIES
from app.conversation.replies import is_empty_reply
from app.conversation.tree import NodeId, shown_path, versions
from app.widgets.commands import CommandId
from app.widgets.transcript.editor.editor import MessageEditor
from app.widgets.transcript.rows.row import RowAction
from app.words import previews as words
from tests.person.kinds.registry import kind
from tests.person.person import CTRL, LEFT, Person

ALT_CTRL = Qt.KeyboardModifier.AltModifier | CTRL
SHIFT_CTRL = Qt.KeyboardModifier.ShiftModifier | CTRL


def open_editor(person: Person) -> MessageEditor | None:
    editors = person.pane.view.viewport().findChildren(MessageEditor)
    return next((one for one in editors if one.isVisible()), None)


def _edit_a_message(person: Person) -> bool:
    if person.answers or open_editor(person) is not None:
        return False
    person.stay_with_model()
    if person.random.random() < 0.5:
        if not person.window.commands[CommandId.EDIT_LAST].isEnabled():
            return False
        person.run(CommandId.EDIT_LAST)
    elif not person.click_in_transcript(RowAction.EDIT):
        return False
    assert open_editor(person) is not None
    return True


@kind("edit a message")
def edit_message(person: Person) -> bool:
    if not _edit_a_message(person):
        return False
    text = person.some_text()
    QGuiApplication.clipboard().setText(text)
    person.press(Qt.Key.Key_A, CTRL)
    person.press(Qt.Key.Key_V, CTRL)
    person.press(Qt.Key.Key_Return)
    person.entrust(text)
    assert text in person.texts, text
    return True


@kind("give an edit up")
def cancel_edit(person: Person) -> bool:
    if not _edit_a_message(person):
        return False
    before = person.texts
    person.press(Qt.Key.Key_X)
    person.press(Qt.Key.Key_Escape)
    assert open_editor(person) is None
    assert person.texts == before
    return True


@kind("preview an edit")
def preview_edit(person: Person) -> bool:
    """Change a message until its preview has text. Then send it, give it up or leave the chat."""
    previews = person.core.previews
    if not previews.is_on:
        person.run(CommandId.PREVIEW_EDITS)
    if not _edit_a_message(person):
        return False
    text = person.some_text()
    QGuiApplication.clipboard().setText(text)
    person.press(Qt.Key.Key_A, CTRL)
    person.press(Qt.Key.Key_V, CTRL)
    person.wait_until(lambda: bool(previews.shown.line))
    if person.random.random() < 0.7:
        # Another chat’s answer may take long, and a preview may be refused.
        try:
            person.wait_until(
                lambda: bool(
                    previews.shown.text or previews.shown.is_complete or person.core.turns.live
                )
            )
        except AssertionError as error:
            raise AssertionError(f"the preview stays at {previews.shown.line!r}") from error
    if person.random.random() < 0.2:
        person.run(CommandId.PREVIEW_EDITS)
    seen = previews.shown
    if person.random.random() < 0.3:
        person.press(Qt.Key.Key_Escape)
        assert previews.shown.text == ""
        return True
    person.press(Qt.Key.Key_Return)
    person.entrust(text)
    assert text in person.texts, text
    if seen.line == words.BEGINS:
        reply = shown_path(person.conversation)[-1]
        live = person.core.turns.live_in(person.current)
        content = reply.content if live is None else live.content
        assert content.strip().startswith(seen.text.removesuffix("…")), (content, seen.text)
    return True


@kind("edit an answer")
def edit_answer(person: Person) -> bool:
    if person.answers or open_editor(person) is not None:
        return False
    if not person.click_in_transcript(RowAction.EDIT_ANSWER):
        return False
    assert open_editor(person) is not None
    text = person.some_text()
    QGuiApplication.clipboard().setText(text)
    person.press(Qt.Key.Key_A, CTRL)
    person.press(Qt.Key.Key_V, CTRL)
    person.press(Qt.Key.Key_Return, CTRL)
    person.entrust(text)
    assert text in person.texts, text
    assert not person.answers
    return True


@kind("fork a chat")
def fork_chat(person: Person) -> bool:
    before = person.current
    if person.answers or not person.click_in_transcript(RowAction.FORK):
        return False
    assert person.current != before
    assert person.current in person.listed
    return True


@kind("show another version with the button")
def version_with_button(person: Person) -> bool:
    before = [item.key for item in person.items]
    action = person.random.choice((RowAction.PREVIOUS_VERSION, RowAction.NEXT_VERSION))
    if not person.click_in_transcript(action):
        return False
    assert [item.key for item in person.items] != before
    return True


@kind("show the version before with the key")
def previous_version(person: Person) -> bool:
    return _version_with_key(person, Qt.Key.Key_Left, -1)


@kind("show the next version with the key")
def next_version(person: Person) -> bool:
    return _version_with_key(person, Qt.Key.Key_Right, 1)


def _version_with_key(person: Person, key: Qt.Key, step: int) -> bool:
    forks = [item for item in person.items if item.version.count > 1]
    if person.pane.reading.is_open:  # the keys move between its columns
        return False
    if not forks or not 1 <= forks[-1].version.number + step <= forks[-1].version.count:
        return False
    place, before = person.items.index(forks[-1]), forks[-1].version
    conversation = person.core.desk.get(person.current)
    every = [conversation.nodes[one] for one in versions(conversation, NodeId(forks[-1].key))]
    num_empty = sum(is_empty_reply(one) for one in every)
    person.press(key, ALT_CTRL)
    after = person.items[place].version
    # Answers that were stopped without text are removed when one of them is left.
    num_removed = before.count - max(1, after.count)
    assert 0 <= num_removed <= num_empty, f"{before} became {after}"
    if num_removed < 2:
        wanted = before.number + step - (num_removed and step > 0)
        assert after.number == wanted, f"{before}, {after}"
    return True


@kind("delete a message")
def delete_message(person: Person) -> bool:
    before = [item.key for item in person.items]
    if person.answers or len(before) < 3 or not person.click_in_transcript(RowAction.DELETE):
        return False
    assert [item.key for item in person.items] != before
    return True


@kind("undo with the key")
def undo_action(person: Person) -> bool:
    """Undo the action that the menu names, unless an answer in its chat is being written."""
    person.window.sidebar.list.setFocus()
    if open_editor(person) is not None or not person.window.sidebar.list.hasFocus():
        return False
    undo, undone = person.core.undoing, list[str]()
    name, before = undo.name, tuple(person.core.undo.entries)
    assert person.window.commands[CommandId.UNDO].text() == f"Undo {name}".strip()
    undo.undone.connect(undone.append)
    person.press(Qt.Key.Key_Z, CTRL)
    person.settle()
    undo.undone.disconnect(undone.append)
    was_refused = bool(name) and bool(person.answers) and not undone
    assert was_refused or undone == ([name] if name else [])
    # An undo in another chat leaves this one, which adds the text typed here as a step. A full list then
    # drops its oldest step.
    gone = set(before[len(before) == MAX_ENTRIES :]).difference(person.core.undo.entries)
    assert len(gone) == len(undone), f"{name!r} was undone, and gone are {gone} of {before}"
    return bool(undone)


@kind("redo with the key")
def redo_action(person: Person) -> bool:
    """Redo the action that the menu names, unless an answer in its chat is being written."""
    person.window.sidebar.list.setFocus()
    if open_editor(person) is not None or not person.window.sidebar.list.hasFocus():
        return False
    undo, redone = person.core.undoing, list[str]()
    name = undo.redo_name
    assert person.window.commands[CommandId.REDO].text() == f"Redo {name}".strip()
    undo.redone.connect(redone.append)
    person.press(Qt.Key.Key_Z, SHIFT_CTRL)
    person.settle()
    undo.redone.disconnect(redone.append)
    assert redone == ([name] if name else []) or (person.answers and not redone)
    return bool(redone)


@kind("edit an answer and undo it")
def undo_edited_answer(person: Person) -> bool:
    before = person.texts
    if not edit_answer(person):
        return False
    person.window.sidebar.list.setFocus()
    person.press(Qt.Key.Key_Z, CTRL)
    assert person.texts == before
    return True


@kind("undo with the toast")
def undo_with_toast(person: Person) -> bool:
    for toast in (person.window.toast, person.window.sidebar.toast):
        button = toast.findChild(QPushButton)
        if toast.isVisible() and isinstance(button, QPushButton) and button.isVisible():
            before = toast.text
            person.click(button)
            assert not toast.isVisible() or toast.text != before
            return True
    return False


@kind("copy a message")
def copy_message(person: Person) -> bool:
    QGuiApplication.clipboard().setText("nothing")
    if person.answers or not person.click_in_transcript(RowAction.COPY_MESSAGE):
        return False
    assert person.clipboard in person.shown_texts
    return True


@kind("copy code")
def copy_code(person: Person) -> bool:
    QGuiApplication.clipboard().setText("nothing")
    if not person.click_in_transcript(RowAction.COPY_CODE):
        return False
    assert person.clipboard != "nothing"
    return True


@kind("select with the mouse and copy")
def select_and_copy(person: Person) -> bool:
    view = person.pane.view
    if not view.isVisible() or open_editor(person) is not None:
        return False
    viewport = view.viewport()
    ends = [
        QPoint(
            person.random.randrange(viewport.width()), person.random.randrange(viewport.height())
        )
        for _ in range(2)
    ]
    view.selection.select(None)  # a drag of selected text waits for a drop
    QTest.mousePress(viewport, LEFT, pos=ends[0])
    QTest.mouseMove(viewport, (ends[0] + ends[1]) / 2)
    QTest.mouseMove(viewport, ends[1])
    QTest.mouseRelease(viewport, LEFT, pos=ends[1])
    if view.selection.is_empty:
        return False
    view.setFocus()
    QGuiApplication.clipboard().setText("nothing")
    person.press(Qt.Key.Key_C, CTRL)
    # A selection from the end of a block to the start of the next one has no text.
    return person.clipboard != "nothing"


@kind("select all and copy")
def select_all_and_copy(person: Person) -> bool:
    view = person.pane.view
    if not view.isVisible() or person.answers or open_editor(person) is not None:
        return False
    view.setFocus()
    person.press(Qt.Key.Key_A, CTRL)
    person.press(Qt.Key.Key_C, CTRL)
    assert all(text in person.clipboard for text in person.texts if _is_plain(text))
    return True


def _is_plain(text: str) -> bool:
    """Return True if the text looks the same when it is rendered as Markdown."""
    return text.replace(" ", "").isalnum() and "  " not in text and text == text.strip()
