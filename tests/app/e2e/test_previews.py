"""The preview of an answer in the editor of a message: what is seen, and what is sent with it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest

from app.controllers import prompt_size
from app.conversation.tree import MessageStatus, NodeId
from app.settings import Settings
from app.viewmodels.models import ModelPhase
from app.widgets.check_box import CheckBox
from app.widgets.commands import CommandId
from app.widgets.message_edit import MessageEdit
from app.widgets.transcript.editor.editor import MessageEditor
from app.widgets.transcript.editor.preview_pane import PreviewPane
from app.widgets.transcript.rows.row import RowAction
from app.words import previews as words
from engine.errors import PreviewRefusedError
from engine.events import ModelUnloaded, PreviewStage
from engine.questions import MakePreview, Preview
from tests.app.conftest import MakeStage
from tests.fakes.rig import FakeCatalog, card
from tests.fakes.stage import Key, Stage

ON = Settings(preview_edits=True)
SEEN = "A boat floats. It is small."


def field(stage: Stage) -> MessageEdit:
    fields = stage.pane.view.findChildren(MessageEdit)
    return next(one for one in fields if one.isVisible())


def pane(stage: Stage) -> PreviewPane:
    panes = stage.pane.view.findChildren(PreviewPane)
    return next(one for one in panes if _is_open(one))


def _is_open(pane: PreviewPane) -> bool:
    editor = pane.parent()
    return isinstance(editor, MessageEditor) and editor.isVisible()


def switch(stage: Stage) -> CheckBox:
    switches = stage.pane.view.findChildren(CheckBox)
    return next(one for one in switches if one.isVisible())


def begin_edit(stage: Stage, more: str = " more") -> None:
    """Make a chat, and change its question. Wait until the preview is asked for."""
    stage.rig.core.previews.pause.setInterval(0)
    stage.chat("One", "1")
    stage.click(RowAction.EDIT)
    QTest.keyClicks(field(stage), more)
    text = field(stage).toPlainText()
    stage.wait_until(lambda: _previewed_text(stage) == text)
    stage.settle()


def _previewed_text(stage: Stage) -> str:
    previewed = stage.engine.previewed
    return previewed[-1].messages[-1].content if previewed else ""


def send_edit(stage: Stage) -> None:
    QTest.keyClick(field(stage), Key.Key_Return)
    stage.settle()


def newest_request_text(stage: Stage) -> list[str]:
    assert stage.engine.running is not None
    return [message.content for message in stage.engine.running.messages]


def test_switch_is_off_at_first_and_remembered_by_click_and_key(stage: Stage) -> None:
    stage.chat("One", "1")
    stage.click(RowAction.EDIT)
    assert not switch(stage).isChecked()
    assert pane(stage).isHidden()
    QTest.keyClicks(field(stage), " more")
    assert not stage.rig.core.previews.pause.isActive()

    QTest.mouseClick(switch(stage), Qt.MouseButton.LeftButton)
    assert stage.rig.core.preferences.value.preview_edits
    assert pane(stage).isVisible()
    stage.wait_until(lambda: len(stage.engine.previewed) == 1)
    stage.run(CommandId.PREVIEW_EDITS)
    assert not switch(stage).isChecked()
    assert pane(stage).isHidden()
    stage.settle()
    assert stage.engine.num_withdrawn


def test_editor_of_an_answer_has_no_preview(make_stage: MakeStage) -> None:
    stage = make_stage(settings=ON)
    stage.chat("One", "1")
    stage.click(RowAction.EDIT_ANSWER)
    assert pane(stage).isHidden()
    assert not any(one.isVisible() for one in stage.pane.view.findChildren(CheckBox))
    QTest.keyClicks(field(stage), " more")
    stage.rig.core.previews.pause.timeout.emit()
    assert stage.engine.previewed == []


def test_answer_begins_with_the_preview_on_show(make_stage: MakeStage) -> None:
    stage = make_stage(settings=ON)
    begin_edit(stage)
    previewed = stage.engine.previewed[-1]
    stage.engine.finish_preview(SEEN)
    stage.settle()
    assert (pane(stage).line, pane(stage).text) == (words.BEGINS, f"{SEEN} …")
    send_edit(stage)

    request = stage.engine.running
    assert request is not None
    assert newest_request_text(stage) == ["One more", SEEN]
    assert request.messages[-1].reply is not None
    assert request.sampling == previewed.sampling
    assert request.max_tokens == previewed.max_tokens - 5
    assert request.new_messages == {0, 1}
    assert request.forced is None
    assert stage.texts == ["One more", SEEN]
    stage.answer(" And so on.")
    assert stage.texts == ["One more", f"{SEEN} And so on."]
    nodes = stage.rig.desk.get(stage.current).nodes
    generation = nodes[NodeId(stage.items[-1].key)].generation
    assert generation is not None
    assert generation.max_tokens == previewed.max_tokens, "the limit is not that of the user"
    stage.run(CommandId.UNDO)
    stage.wait_until(lambda: stage.texts == ["One", "1"])


def test_answer_begins_with_a_preview_that_is_not_complete(make_stage: MakeStage) -> None:
    stage = make_stage(settings=ON)
    begin_edit(stage)
    stage.engine.write_preview("A boat")
    stage.settle()
    send_edit(stage)
    assert newest_request_text(stage) == ["One more", "A boat"]


def test_whole_preview_is_the_whole_answer(make_stage: MakeStage) -> None:
    stage = make_stage(settings=ON)
    begin_edit(stage)
    stage.engine.finish_preview("Yes.", is_whole=True)
    stage.settle()
    assert (pane(stage).line, pane(stage).text) == (words.WHOLE, "Yes.")
    send_edit(stage)
    assert stage.engine.running is not None
    assert stage.engine.running.forced is not None
    stage.engine.finish()
    stage.settle()
    assert stage.texts == ["One more", "Yes."]
    chat = stage.current
    reply = stage.stored(lambda store: store.load(chat)).nodes
    assert [one.status for one in reply.values()] == [MessageStatus.COMPLETE] * 4


def change_text(stage: Stage) -> None:
    QTest.keyClicks(field(stage), "!")


def change_options(stage: Stage) -> None:
    core, chat = stage.rig.core, stage.current
    core.chat.set_setup(chat, replace(core.desk.get(chat).setup, temperature=0.1))


def change_prompt(stage: Stage) -> None:
    stage.rig.core.chat.set_system_prompt(stage.current, "Be brief.")


def switch_off(stage: Stage) -> None:
    stage.run(CommandId.PREVIEW_EDITS)


def test_preview_of_another_request_is_not_sent(make_stage: MakeStage) -> None:
    stage = make_stage(settings=ON)
    for change in (change_text, change_options, change_prompt, switch_off):
        begin_edit(stage)
        stage.engine.finish_preview(SEEN)
        stage.settle()
        change(stage)
        send_edit(stage)
        assert SEEN not in newest_request_text(stage), change
        stage.answer("2")
        stage.run(CommandId.NEW_CHAT)


def test_preview_is_dropped_when_another_model_is_chosen_before_the_answer_begins(
    make_stage: MakeStage,
) -> None:
    other = card("Other-3B-4bit")
    stage = make_stage(settings=ON, catalog=FakeCatalog((card(), other)))
    begin_edit(stage)
    stage.engine.finish_preview(SEEN)
    stage.settle()
    stage.engine.hold_start = True
    send_edit(stage)
    stage.rig.models.choose(other.path)
    stage.wait_until(lambda: stage.rig.models.status.phase is ModelPhase.READY)
    stage.settle()
    stage.engine.begin()
    assert newest_request_text(stage) == ["One more"]
    stage.answer("Another answer")
    assert stage.texts == ["One more", "Another answer"]


def test_next_key_drops_the_preview_and_keeps_its_height(make_stage: MakeStage) -> None:
    stage = make_stage(settings=ON)
    begin_edit(stage)
    stage.engine.finish_preview(SEEN)
    stage.settle()
    height = pane(stage).height()
    change_text(stage)
    stage.settle()
    assert (pane(stage).line, pane(stage).text) == ("", "")
    assert pane(stage).height() == height
    stage.wait_until(lambda: _previewed_text(stage) == "One more!")
    assert len({one.sampling for one in stage.engine.previewed}) == 1


def test_end_of_the_editor_withdraws_the_preview(make_stage: MakeStage) -> None:
    stage = make_stage(settings=ON)
    for end in ("cancel", "leave", "send"):
        stage.run(CommandId.NEW_CHAT)
        begin_edit(stage)
        before = stage.engine.num_withdrawn
        match end:
            case "cancel":
                QTest.keyClick(field(stage), Key.Key_Escape)
            case "leave":
                stage.run(CommandId.NEW_CHAT)
            case _:
                send_edit(stage)
        stage.settle()
        assert stage.engine.num_withdrawn > before, end
        assert not stage.rig.core.previews.pause.isActive()


def test_wait_has_its_reason_and_an_interrupted_preview_keeps_its_text(
    make_stage: MakeStage,
) -> None:
    stage = make_stage(settings=ON)
    begin_edit(stage)
    assert pane(stage).line == ""
    for stage_of_preview, num_to_read, line in (
        (PreviewStage.ANSWERS, 0, words.WAITS_FOR_ANSWERS),
        (PreviewStage.CHAT, 0, words.WAITS_FOR_CHAT),
        (PreviewStage.BATTERY, 0, words.WAITS_FOR_POWER),
        (PreviewStage.READING, 1_200, "Reading 1,200 tokens for the preview…"),
    ):
        stage.engine.wait_with_preview(stage_of_preview, num_to_read)
        stage.settle()
        assert (pane(stage).line, pane(stage).text) == (line, "")

    stage.engine.write_preview("A boat floats", num_tokens=3)
    stage.engine.wait_with_preview(PreviewStage.ANSWERS)
    stage.engine.write_preview("A", num_tokens=1)
    stage.settle()
    assert pane(stage).text == "A boat floats…"
    assert pane(stage).line == "The answer would begin (still being written):"
    stage.engine.write_preview("A boat floats well", num_tokens=4)
    stage.settle()
    assert pane(stage).text == "A boat floats well…"


def test_cost_is_counted_again_once_the_message_was_read_for_the_preview(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_size, "COUNT_MS", 0)
    stage = make_stage(settings=ON)
    begin_edit(stage)
    stage.wait_until(lambda: stage.rig.core.prompt_sizes.is_counted)
    num_counts = len(stage.engine.counts)
    stage.engine.write_preview("A boat", num_tokens=2)
    stage.wait_until(lambda: len(stage.engine.counts) == num_counts + 1)
    stage.engine.write_preview("A boat floats", num_tokens=3)
    stage.settle()
    assert len(stage.engine.counts) == num_counts + 1, "the next words change nothing"


def test_thinking_is_named(make_stage: MakeStage) -> None:
    stage = make_stage(settings=ON)
    begin_edit(stage)
    stage.engine.finish_preview("", reasoning="A boat is meant.")
    stage.settle()
    assert (pane(stage).line, pane(stage).text) == (words.THINKS, "A boat is meant. …")
    send_edit(stage)
    assert stage.engine.running is not None
    assert stage.engine.running.messages[-1].reasoning == "A boat is meant."


def test_refusal_is_shown_and_the_message_is_sent_without_preview(make_stage: MakeStage) -> None:
    stage = make_stage(settings=ON)
    begin_edit(stage)
    problem = PreviewRefusedError("9,000 tokens would have to be read.").problem
    stage.engine.answer(MakePreview, Preview(refusal=problem))
    stage.settle()
    assert pane(stage).line == "No preview. 9,000 tokens would have to be read."
    send_edit(stage)
    assert newest_request_text(stage) == ["One more"]


def test_missing_model_is_the_reason(make_stage: MakeStage) -> None:
    stage = make_stage(settings=ON)
    begin_edit(stage)
    stage.engine.on_event(ModelUnloaded(loads_again=True))
    stage.wait_until(lambda: pane(stage).line == words.UNLOADED)
    stage.engine.lose_model(PreviewRefusedError("").problem)
    stage.wait_until(lambda: pane(stage).line == words.NO_MODEL)


@pytest.mark.parametrize(
    ("size", "zoom"), [((640, 480), 100), ((640, 480), 200), ((1280, 800), 130)]
)
def test_editor_with_a_long_preview_is_whole_and_the_preview_is_announced_once(
    make_stage: MakeStage, size: tuple[int, int], zoom: int
) -> None:
    stage = make_stage(settings=replace(ON, text_zoom=zoom), size=size)
    begin_edit(stage, " more and more" * 12)
    said: list[str] = []
    pane(stage).announced.connect(said.append)
    stage.engine.write_preview("A boat")
    stage.settle()
    assert said == []
    text = "A boat floats on the sea and has a long way to go. " * 20
    stage.engine.finish_preview(text)
    stage.settle()
    assert said == [f"{words.BEGINS} {text.strip()} …"]

    text = field(stage)
    assert text.viewport().rect().intersects(text.cursorRect())
    assert text.horizontalScrollBar().value() == 0
    editor = pane(stage).parent()
    assert isinstance(editor, MessageEditor)
    assert editor.rect().contains(pane(stage).geometry())
    top_of_switch = switch(stage).mapTo(editor, QPoint(0, 0)).y()
    assert pane(stage).geometry().bottom() < top_of_switch
    assert top_of_switch + switch(stage).height() <= editor.height()
    assert zoom == 200 or editor.height() <= stage.pane.view.viewport().height()
