"""Words about the state of a chat agree: its dot, its tooltip, the line at the foot, the picker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QToolTip

from app.controllers import chat_states, prompt_size
from app.conversation.attachments import make_attachment
from app.viewmodels.chat_state import ChatState
from app.widgets.commands import CommandId
from engine.events import IdleKind, IdleStopped, IdleWorking
from engine.questions import ReportChats
from engine.types import ConversationId
from tests.app.conftest import MakeStage
from tests.app.widgets.test_cost_tips import point_at, tip
from tests.fakes.held_chats import held_chat, report_all_in_memory, report_chats
from tests.fakes.rig import DEMO, FakeCatalog, card
from tests.fakes.stage import Stage

# A tooltip is raised when its text changes.
pytestmark = pytest.mark.qt_log_ignore("This plugin does not support")


@pytest.fixture(autouse=True)
def no_tip_stays() -> Iterator[None]:
    yield
    QToolTip.hideText()


def tip_of_row(stage: Stage, title: str) -> list[str]:
    """Point at a row until its tooltip has the cost of the next message. Return its lines."""
    index = stage.list.model().index(stage.rows.index(title), 0)
    point_at(stage, stage.list.viewport(), stage.list.visualRect(index).center())
    stage.wait_until(lambda: "Reads" in tip() or "Instant" in tip())
    return tip().splitlines()


def state_of(stage: Stage) -> ChatState | None:
    return stage.core.chat_states.of(stage.current)


def test_chat_that_restores_what_another_one_read_is_in_memory(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    report_chats(stage)  # of other chats
    assert state_of(stage) is ChatState.UNREAD
    stage.engine.num_cached = 1_000
    assert tip_of_row(stage, "Hello") == ["Hello", "In memory · Instant"]
    assert state_of(stage) is ChatState.MEMORY
    assert stage.window.sidebar.memory.text().startswith("1 chat in memory")
    report_chats(stage)
    assert state_of(stage) is ChatState.MEMORY, "the report has nothing that is newer"
    report_chats(stage, held_chat(stage.current, memory_tokens=1, last_tokens=9))
    assert state_of(stage) is ChatState.UNREAD


def test_state_that_was_counted_is_dropped_with_its_model(stage: Stage) -> None:
    stage.chat("Hello", "Hi")
    report_chats(stage)
    stage.engine.num_cached = 1_000
    tip_of_row(stage, "Hello")
    stage.core.models.load_again()
    stage.settle()
    report_chats(stage)
    assert state_of(stage) is ChatState.UNREAD


def test_state_is_asked_for_when_a_prompt_begins_to_be_read(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = stage.core.chat_states
    monkeypatch.setattr(states, "look", lambda: looked.append(None))
    looked: list[None] = []
    emit = stage.engine.on_event
    for done in (0, 100, 200):
        emit(IdleWorking(stage.current, IdleKind.DRAFT, done, 900))
    stage.settle()
    assert len(looked) == 1
    emit(IdleWorking(stage.current, IdleKind.DRAFT, 0, 2_000))
    emit(IdleStopped())
    stage.settle()
    assert len(looked) == 3


@pytest.mark.parametrize("is_in_memory", [True, False])
def test_chat_to_be_kept_in_memory_is_not_said_to_be_there(
    stage: Stage, *, is_in_memory: bool
) -> None:
    stage.chat("Hello", "Hi")
    stage.core.organiser.keep_ready(stage.current, True)
    report_chats(stage, *([held_chat(stage.current)] if is_in_memory else []))
    stage.engine.num_cached = 1_000 if is_in_memory else 0
    state = "In memory · Instant" if is_in_memory else "To be read · Reads 9 tokens"
    assert tip_of_row(stage, "Hello") == ["Hello", "“Keep in Memory” is on", state]


def test_line_at_the_foot_counts_the_dots_of_the_list(stage: Stage) -> None:
    for question in ("One", "Two", "Three"):
        stage.run(CommandId.NEW_CHAT)
        stage.chat(question, "Yes.")
    ids = [one.conversation_id for one in stage.core.library.listed.all]
    line = stage.window.sidebar.memory
    report_chats(
        stage,
        held_chat(ids[0]),
        held_chat(ids[1], memory_tokens=30, last_tokens=900),  # the rest was evicted
        held_chat(ConversationId("server:1")),  # of another program
    )
    assert line.text().startswith("1 chat in memory")
    report_all_in_memory(stage, total_bytes=1_000_000)
    assert line.text() == "3 chats in memory · 1 MB"


def test_line_at_the_foot_comes_back_after_reading_ahead_alone(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_states, "LOOK_MS", 0)
    stage = make_stage()
    stage.chat("Hello", "Hi")
    stage.core.models.load_again()
    stage.settle()
    assert stage.window.sidebar.memory.isHidden()
    num_asked = stage.engine.questions.count(ReportChats())
    stage.engine.on_event(IdleStopped())  # the state of the chat on show was read from disk
    stage.wait_until(lambda: stage.engine.questions.count(ReportChats()) > num_asked)
    report_all_in_memory(stage, total_bytes=1_000_000)
    assert stage.window.sidebar.memory.text() == "1 chat in memory · 1 MB"


def test_picker_in_an_empty_chat_has_no_number_of_the_chat_before(make_stage: MakeStage) -> None:
    stage = make_stage(catalog=FakeCatalog(cards=(DEMO, card())))
    notes = make_attachment("notes.txt", "text", "word " * 3_500)
    stage.core.draft_files.set(stage.current, (notes,))
    stage.wait_until(lambda: stage.core.prompt_sizes.num_tokens is not None)
    stage.run(CommandId.NEW_CHAT)
    assert stage.core.prompt_sizes.num_tokens is None
    stage.run(CommandId.CHOOSE_MODEL)
    assert stage.window.picker.cost.isHidden()
    stage.window.picker.close()


def test_picker_has_no_number_of_a_file_that_was_removed(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_size, "COUNT_MS", 0)
    stage = make_stage(catalog=FakeCatalog(cards=(DEMO, card())))
    notes = make_attachment("notes.txt", "text", "word " * 3_500)
    stage.core.draft_files.set(stage.current, (notes,))
    sizes = stage.core.prompt_sizes
    stage.wait_until(lambda: sizes.num_tokens is not None)
    stage.core.draft_files.set(stage.current, ())
    stage.wait_until(lambda: sizes.is_counted)
    assert sizes.num_tokens is None
