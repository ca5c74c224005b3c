"""The states of chats in the list: known only for the loaded model, and reported in time."""

from __future__ import annotations

import pytest

from app.controllers import chat_states
from app.conversation.attachments import make_attachment
from app.viewmodels.chat_state import ChatState
from engine.cache_figures import HeldChat, HeldChats
from engine.events import LoadModel
from engine.problem import Problem
from engine.questions import ReportChats
from tests.app.conftest import MakeStage
from tests.fakes.stage import Stage

LOST = Problem(title="The model stopped.", cause="", advice="")


def num_asked(stage: Stage) -> int:
    return sum(isinstance(one, ReportChats) for one in stage.engine.questions)


def in_memory(make_stage: MakeStage) -> Stage:
    """Return a window with a chat whose state is in memory."""
    stage = make_stage()
    stage.chat("Hello", "Hi.")
    stage.wait_until(lambda: num_asked(stage) > 0)
    held = HeldChat(
        conversation_id=stage.current,
        memory_bytes=1_000,
        memory_tokens=100,
        disk_bytes=0,
        disk_tokens=0,
        is_pinned=False,
        is_in_use=False,
    )
    stage.engine.answer(ReportChats, HeldChats(chats=(held,)))
    stage.settle()
    assert stage.core.chat_states.of(stage.current) is ChatState.MEMORY
    return stage


def test_draft_is_to_be_read_once_its_files_are_far_too_long(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_states, "LOOK_MS", 0)
    stage = make_stage()
    stage.engine.num_cached = 5_000
    stage.core.chat_states.look()
    stage.wait_until(lambda: num_asked(stage) > 0)
    stage.engine.answer(ReportChats, HeldChats())
    notes = make_attachment("notes.txt", "text", "The meeting is on Monday.\n" * 400)
    stage.core.draft_files.set(stage.current, (notes,))
    stage.wait_until(lambda: stage.core.chat_states.of(stage.current) is ChatState.MEMORY)
    log = make_attachment("log.txt", "text", "Sail on and on.\n" * 30_000)
    stage.core.draft_files.set(stage.current, (notes, log))
    stage.wait_until(lambda: stage.core.chat_states.of(stage.current) is ChatState.UNREAD)
    stage.core.draft_files.set(stage.current, (notes,))
    stage.wait_until(lambda: stage.core.chat_states.of(stage.current) is ChatState.MEMORY)


@pytest.mark.parametrize("is_lost", [True, False])
def test_state_is_unknown_once_the_model_is_lost_or_another_one_is_loaded(
    make_stage: MakeStage,
    monkeypatch: pytest.MonkeyPatch,
    is_lost: bool,
) -> None:
    monkeypatch.setattr(chat_states, "LOOK_MS", 0)
    stage = in_memory(make_stage)
    if is_lost:
        stage.engine.lose_model(LOST)
    else:
        stage.engine.hold_load = True
        stage.engine.send(LoadModel("/models/other"))
    stage.settle()
    assert stage.core.chat_states.of(stage.current) is None


def test_report_is_asked_for_while_changes_go_on(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_states, "LOOK_MS", 100)
    stage = make_stage()
    before = num_asked(stage)

    def change_until_asked() -> bool:
        stage.engine.stop_idle_work()
        return num_asked(stage) > before

    stage.wait_until(change_until_asked)


def test_report_is_asked_for_after_another_limit_of_memory(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_states, "LOOK_MS", 0)
    stage = in_memory(make_stage)
    before = num_asked(stage)
    stage.core.preferences.change(memory_gb=2)
    stage.wait_until(lambda: num_asked(stage) > before)


def test_report_is_asked_for_while_a_prompt_is_read(
    make_stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_states, "LOOK_MS", 0)
    monkeypatch.setattr(chat_states, "READING_LOOK_MS", 0)
    stage = in_memory(make_stage)
    before = num_asked(stage)
    stage.send("Tell me about rope")
    stage.wait_until(lambda: num_asked(stage) > before)
    begun = num_asked(stage)
    stage.engine.prefill(100, 1_000)
    stage.wait_until(lambda: num_asked(stage) > begun)
