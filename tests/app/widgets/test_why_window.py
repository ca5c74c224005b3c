"""The window "Why Was This Read?", used with the mouse and with the keys."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAccessible, QKeySequence
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from app.conversation.tree import NodeId, shown_path
from app.settings import Settings
from app.theme.icons import Icon
from app.viewmodels.read_reasons import PromptPart, TokenOrigin
from app.widgets.commands import CommandId
from app.widgets.line_height import Sentences
from app.widgets.prompt_bar import PromptBar, origin_ink, part_widths
from app.widgets.settings_window import SettingsWindow
from app.widgets.transcript.rows.row import RowAction
from app.widgets.why_window import MessageLink, WhyWindow
from app.words import commands, composer, reasons as words, state
from engine.usage import PromptPlan, Reason, ReasonKind
from tests.app.conftest import MakeStage
from tests.fakes.stage import CTRL, Key, Stage
from tests.fakes.transcript_stage import targets

pytestmark = pytest.mark.qt_log_ignore("does not support raise", extend=True)
LEFT = Qt.MouseButton.LeftButton


def reason(kind: ReasonKind, num_tokens: int, message: int | None, *, again: bool = True) -> Reason:
    return Reason(kind=kind, num_tokens=num_tokens, at=0, text="", is_again=again, message=message)


def plan(*reasons: Reason, restored: int = 500, disk: int = 100) -> PromptPlan:
    replayed = sum(one.num_tokens for one in reasons if one.is_again)
    read = sum(one.num_tokens for one in reasons) - replayed
    return PromptPlan(
        prompt_tokens=restored + replayed + read,
        restored=restored,
        restored_disk=disk,
        replayed=replayed,
        read=read,
        reasons=reasons,
    )


EVICTED = plan(
    reason(ReasonKind.STATE_EVICTED, 1_200, 1),
    reason(ReasonKind.NEW_MESSAGE, 24, 3, again=False),
)


def asked(stage: Stage, how: PromptPlan) -> None:
    """Ask twice. The second prompt has the plan."""
    stage.chat("A long story " * 7, "Once upon a time.")
    stage.engine.plan = how
    stage.chat("And then?", "The end.")


def opened(stage: Stage) -> WhyWindow:
    stage.run(CommandId.WHY_READ)
    return window_of(stage)


def window_of(stage: Stage) -> WhyWindow:
    window = stage.window.findChild(WhyWindow)
    assert isinstance(window, WhyWindow)
    assert window.isVisible()
    return window


def texts(window: WhyWindow) -> list[str]:
    return [one.text() for one in window.findChildren(QLabel) if one.isVisible()]


def names(window: WhyWindow) -> list[str]:
    return [one.text() for one in window.controls]


def test_link_in_the_state_line_opens_the_window_with_the_counters(stage: Stage) -> None:
    asked(stage, EVICTED)
    stage.click(RowAction.WHY_READ)
    window = window_of(stage)
    assert window.windowTitle() == commands.WHY_READ
    assert texts(window) == [
        "The prompt of this answer has 1,724 tokens.",
        "400 tokens restored from memory",
        "100 tokens restored from disk",
        "1,200 tokens read again",
        "24 tokens read for the first time",
        "Restored in 6 ms.",
        "1,200 tokens read again",
        words.MADE_ROOM,
        words.KEEP_READY,
        "24 tokens read",
        words.NEW,
    ]
    (bar,) = window.findChildren(PromptBar)
    assert bar.accessibleName() == ", ".join(texts(window)[1:5])
    assert names(window) == [
        f"Message 1: “{'A long story ' * 6}A…”",
        commands.KEEP_READY,
        state.STORAGE,
        "Message 3: “And then?”",
    ]


def test_line_of_restored_tokens_has_no_link_but_the_key_explains_it(stage: Stage) -> None:
    asked(stage, plan(reason(ReasonKind.NEW_MESSAGE, 24, 3, again=False), restored=2_000))
    assert not list(targets(stage.pane.view, RowAction.WHY_READ))
    action = stage.window.commands[CommandId.WHY_READ]
    assert action.shortcut() == QKeySequence("Ctrl+I")
    QTest.keyClick(stage.edit, Key.Key_I, CTRL)
    window = window_of(stage)
    assert "24 tokens read for the first time" in texts(window)


def test_command_explains_the_focused_answer_else_the_last_one(stage: Stage) -> None:
    action = stage.window.commands[CommandId.WHY_READ]
    assert not action.isEnabled()
    stage.engine.plan = plan(reason(ReasonKind.FAULT, 77, 1))
    stage.chat("Hello", "Hi")
    assert action.isEnabled()
    stage.engine.plan = EVICTED
    stage.chat("And then?", "The end.")
    window = opened(stage)
    assert "1,200 tokens read again" in texts(window)
    window.close()
    stage.window.activateWindow()
    view = stage.pane.view
    view.setFocus()
    stage.wait_until(view.hasFocus)
    for _ in range(40):
        if view.focused_message == 1:
            break
        QTest.keyClick(view, Key.Key_Tab)
    assert view.focused_message == 1
    assert "77 tokens read again" in texts(opened(stage))


def test_link_scrolls_to_its_message_and_the_window_stays(stage: Stage) -> None:
    asked(stage, EVICTED)
    for number in range(12):
        stage.chat(f"More {number}", "Yes.\n\n" * 8)
    answer = stage.items[3].key
    stage.pane.transcript.why_requested.emit(stage.current, answer)
    window = window_of(stage)
    bar = stage.pane.view.verticalScrollBar()
    bar.setValue(bar.maximum())
    first = window.controls[0]
    assert isinstance(first, MessageLink)
    QTest.mouseClick(first, LEFT)
    stage.settle()
    position = stage.pane.transcript.position
    assert position is not None
    assert position.key == stage.items[0].key
    assert window.isVisible()
    chat = stage.current
    stage.run(CommandId.NEW_CHAT)
    QTest.mouseClick(first, LEFT)
    stage.settle()
    assert stage.current == chat, "the chat of the message is shown again"


def test_keep_in_memory_keeps_the_chat_and_changes_the_advice(stage: Stage) -> None:
    asked(stage, EVICTED)
    window = opened(stage)
    window.controls[1].setFocus()
    QTest.keyClick(window.controls[1], Key.Key_Return)
    stage.settle()
    assert stage.current in stage.core.library.listed.kept_ready
    assert words.IS_KEPT_READY in texts(window)
    assert names(window)[1] == state.STORAGE
    assert window.controls[1].hasFocus(), "the button that is now in its place"


def test_keep_earlier_thinking_is_offered_if_the_model_in_use_can(stage: Stage) -> None:
    asked(stage, plan(reason(ReasonKind.REASONING_DROPPED, 400, 2)))
    window = opened(stage)
    assert composer.KEEP_THOUGHTS in names(window)
    QTest.mouseClick(window.controls[names(window).index(composer.KEEP_THOUGHTS)], LEFT)
    stage.settle()
    assert stage.core.desk.get(stage.current).setup.keep_thinking
    assert composer.KEEP_THOUGHTS not in names(window)
    assert words.THINKING_IS_KEPT in texts(window)


def test_keep_earlier_thinking_is_not_offered_for_the_answer_of_another_model(
    stage: Stage,
) -> None:
    asked(stage, plan(reason(ReasonKind.REASONING_DROPPED, 400, 2)))
    status = stage.core.models.status
    assert status.facts is not None
    stage.core.models.status = replace(status, facts=replace(status.facts, path="/models/other"))
    window = opened(stage)
    assert names(window) == ["Message 2: “Once upon a time.”"]


def test_room_for_chats_opens_the_settings_of_storage(make_stage: MakeStage) -> None:
    stage = make_stage(settings=Settings(keep_on_disk=False))
    asked(stage, plan(reason(ReasonKind.NOT_KEPT, 400, 1)))
    window = opened(stage)
    assert words.DISK_IS_OFF in texts(window)
    QTest.mouseClick(window.controls[-1], LEFT)
    settings = stage.window.findChild(SettingsWindow)
    assert isinstance(settings, SettingsWindow)
    assert settings.tabs[Icon.STORAGE].isChecked()
    QTest.mouseClick(settings.storage.keep, LEFT)
    assert words.DISK_IS_OFF not in texts(window)


def test_window_is_used_and_closed_by_keys_alone(stage: Stage) -> None:
    asked(stage, EVICTED)
    window = opened(stage)
    for control in window.controls:
        QTest.keyClick(QApplication.focusWidget() or window, Key.Key_Tab)
        assert control.hasFocus()
    QTest.keyClick(window, Key.Key_Escape)
    assert not window.isVisible()
    opened(stage)
    QTest.keyClick(window, Key.Key_W, CTRL)
    assert not window.isVisible()
    assert stage.window.isVisible()


def test_screen_readers_get_every_text_and_button(stage: Stage) -> None:
    asked(stage, EVICTED)
    window = opened(stage)
    interface = QAccessible.queryAccessibleInterface(window)
    assert interface.text(QAccessible.Text.Name) == commands.WHY_READ
    for label in window.findChildren(Sentences):
        assert QAccessible.queryAccessibleInterface(label).text(QAccessible.Text.Name)
    for control in window.controls:
        inner = QAccessible.queryAccessibleInterface(control)
        assert inner.role() == QAccessible.Role.Button
        assert inner.text(QAccessible.Text.Name) == control.text()


def test_system_prompt_and_plans_of_earlier_versions_have_no_link(stage: Stage) -> None:
    changed = reason(ReasonKind.SYSTEM_CHANGED, 300, 0)
    asked(stage, plan(changed, reason(ReasonKind.FAULT, 9, None), reason(ReasonKind.FAULT, 1, 99)))
    window = opened(stage)
    assert window.controls == []
    assert words.SYSTEM_PROMPT in texts(window)


def test_many_messages_of_a_reason_are_counted(stage: Stage) -> None:
    for number in range(5):
        stage.chat(f"Question {number}", "Yes.")
    reasons = [reason(ReasonKind.STATE_EVICTED, 300, number) for number in range(1, 9, 2)]
    stage.engine.plan = plan(*reasons, reason(ReasonKind.SNAPSHOT_EVICTED, 4, 9))
    stage.chat("And?", "So.")
    window = opened(stage)
    assert sum(isinstance(one, MessageLink) for one in window.controls) == 3
    assert "And 2 more messages" in texts(window)


def test_answer_in_progress_is_explained_and_its_end_updates_the_window(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    stage.engine.plan = EVICTED
    stage.send("And then?")
    stage.engine.write("The")
    stage.settle()
    window = opened(stage)
    assert "1,200 tokens read again" in texts(window)
    stage.answer(" end.")
    assert "1,200 tokens read again" in texts(window)


def test_window_explains_after_a_restart_and_closes_with_its_chat(make_stage: MakeStage) -> None:
    stage = make_stage()
    asked(stage, EVICTED)
    before = texts(opened(stage))
    chat = stage.current
    stage.close()
    later = make_stage(settings=Settings(selected_conversation=chat))
    later.wait_until(lambda: len(later.texts) == 4)
    window = opened(later)
    assert texts(window) == before
    assert shown_path(later.core.desk.get(chat))[0].node_id == later.items[0].key
    later.core.deletions.delete_all((chat,))
    later.settle()
    assert not window.isVisible()


def test_bar_has_the_parts_in_proportion_and_in_their_colors(stage: Stage) -> None:
    assert part_widths([600, 200, 200], 1_004.0) == [600.0, 200.0, 200.0]
    few = part_widths([100_000, 1], 402.0)
    assert few == [396.0, 4.0]
    assert sum(part_widths([1] * 5, 10.0)) + 4 * 2 == pytest.approx(10.0)
    parts = [PromptPart(origin, 10) for origin in TokenOrigin]
    bar = PromptBar(stage.theme, parts, stage.window)
    bar.resize(508, 16)
    image = bar.grab().toImage()
    ratio = image.devicePixelRatio()
    colors = [image.pixelColor(QPoint(round((50 + 102 * at) * ratio), 8)) for at in range(5)]
    expected = [origin_ink(stage.theme.colors, part.origin).lower() for part in parts]
    assert [one.name() for one in colors] == expected
    assert len(set(expected)) == 5


def test_links_to_messages_that_were_deleted_with_one_above_are_disabled(stage: Stage) -> None:
    asked(stage, EVICTED)
    window = opened(stage)

    def links() -> list[bool]:
        return [one.isEnabled() for one in window.controls if isinstance(one, MessageLink)]

    assert links() == [True, True]
    last = stage.items[-1].key
    stage.core.chat.delete(stage.current, NodeId(stage.items[0].key))
    stage.settle()
    assert links() == [False, False]
    stage.core.chat.show_branch(stage.current, NodeId(last))
    assert not shown_path(stage.core.desk.get(stage.current))
    stage.core.undoing.undo()
    stage.settle()
    assert links() == [True, True]
