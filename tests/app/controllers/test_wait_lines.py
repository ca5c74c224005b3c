"""The line above an answer without text: what its message waits for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.controllers.wait_lines import WaitLines
from app.conversation.folder import Folder
from app.conversation.placement import FolderId
from app.viewmodels.models import ModelPhase
from app.viewmodels.state_line import LONG_MS, state_line
from engine.events import (
    Event,
    IdleKind,
    IdleWorking,
    LoadStage,
    ModelLoaded,
    ModelLoading,
    RequestQueued,
    WaitReason,
)
from engine.types import ConversationId
from tests.fakes.rig import Rig, card


@pytest.fixture
def rig(tmp_path: Path, qtbot: QtBot) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    rig.start()
    qtbot.waitUntil(lambda: rig.models.status.phase is ModelPhase.READY)
    yield rig
    rig.close()


def send(rig: Rig, qtbot: QtBot, text: str) -> ConversationId:
    shown = rig.library.current
    assert rig.chat.send(shown, text)
    qtbot.waitUntil(lambda: rig.turns.live_in(shown) is not None)
    return shown


def line(rig: Rig, conversation_id: ConversationId) -> str:
    live = rig.turns.live_in(conversation_id)
    assert live is not None
    shown = state_line(live.phase)
    return "" if shown.is_minor and not live.is_late else shown.text


def ignore(_event: Event) -> None: ...


def pass_time(rig: Rig) -> None:
    """Let the time pass after which even a minor line is shown."""
    rig.origin.tick_s += LONG_MS / 1000
    (lines,) = rig.turns.findChildren(WaitLines)
    lines.timer.timeout.emit()


@pytest.mark.parametrize(
    ("reason", "ahead", "text"),
    [
        (WaitReason.READING, 1, "Waiting until “A long text” is read"),
        (WaitReason.READING, 3, "Waiting until “A long text” is read · 2 more ahead"),
        (WaitReason.ANSWERS, 1, "Waiting until an answer in another chat ends"),
        (WaitReason.MEMORY, 1, "Waiting for memory that answers in other chats use"),
        (WaitReason.TURN, 1, "Waiting · 1 answer ahead"),
    ],
)
def test_line_of_a_queued_message_names_the_reason(
    rig: Rig, qtbot: QtBot, reason: WaitReason, ahead: int, text: str
) -> None:
    first = send(rig, qtbot, "A long text")
    rig.library.new_chat()
    rig.engine.hold_start = True
    second = send(rig, qtbot, "Short")
    request_id = rig.engine.submitted[-1].request_id
    behind = first if reason is WaitReason.READING else None
    rig.engine.on_event(RequestQueued(request_id, ahead, reason, behind))
    qtbot.waitUntil(lambda: line(rig, second) == text)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (WaitReason.READING, "Waiting until the messages are read"),
        (WaitReason.ANSWERS, "Waiting until another answer ends"),
        (WaitReason.MEMORY, "Waiting for memory that other answers use"),
    ],
)
def test_line_of_one_of_several_answers_names_what_it_waits_for(
    rig: Rig, qtbot: QtBot, reason: WaitReason, text: str
) -> None:
    rig.engine.hold_start = True
    shown = rig.library.current
    assert rig.chat.send(shown, "Hello", answers=2)
    rig.engine.begin_first()
    second = rig.turns.replies_in(shown)[1]
    request = rig.engine.submitted[-1]
    rig.engine.on_event(RequestQueued(request.request_id, 1, reason, shown))
    qtbot.waitUntil(lambda: state_line(rig.turns.live[second].phase).text == text)


def test_late_message_says_that_a_part_of_another_chat_is_read(
    rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = send(rig, qtbot, "A long text of chapters, each with a heading")
    rig.engine.prefill(512, 8000)
    qtbot.waitUntil(lambda: line(rig, first).startswith("Reading"))
    rig.library.new_chat()
    # The engine has not ended its step.
    monkeypatch.setattr(rig.engine, "send", rig.engine.commands.append)
    second = send(rig, qtbot, "Short")
    assert line(rig, second) == "Waiting"
    pass_time(rig)
    assert line(rig, second) == (
        "Waiting until a part of “A long text of chapters, each with a hea…” is read"
    )
    assert line(rig, first) == "Reading 512 of 8,000 tokens"


@pytest.mark.parametrize("kind", [IdleKind.READ_AHEAD, IdleKind.DRAFT, IdleKind.TITLE])
def test_late_message_names_the_chat_that_is_read_ahead(
    rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, kind: IdleKind
) -> None:
    first = send(rig, qtbot, "A long text")
    rig.engine.write("Yes")
    rig.engine.finish()
    qtbot.waitUntil(lambda: not rig.turns.live)
    with qtbot.waitSignal(rig.core.idle.note_changed):
        rig.engine.on_event(IdleWorking(first, kind, 512, 2000))
    rig.library.new_chat()
    monkeypatch.setattr(rig.engine, "send", rig.engine.commands.append)
    shown = send(rig, qtbot, "Short")
    pass_time(rig)
    is_named = kind is not IdleKind.TITLE
    wanted = (
        "Waiting until a part of “A long text” is read" if is_named else "Waiting for the model"
    )
    assert line(rig, shown) == wanted


@pytest.mark.parametrize("is_known", [True, False])
def test_late_message_names_the_folder_whose_documents_are_read(
    rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    folder_id = FolderId("folder")
    if is_known:
        folder_id = rig.core.folders.create(Folder(folder_id=folder_id, name="Harbour")).folder_id
    name = ConversationId(f"documents:{folder_id}:0123456789abcdef")
    with qtbot.waitSignal(rig.core.idle.note_changed):
        rig.engine.on_event(IdleWorking(name, IdleKind.DRAFT, 512, 2000))
    monkeypatch.setattr(rig.engine, "send", rig.engine.commands.append)
    shown = send(rig, qtbot, "Short")
    pass_time(rig)
    whose = "the documents of “Harbour”" if is_known else "a folder’s documents"
    assert line(rig, shown) == f"Waiting until a part of {whose} is read"


def test_late_answer_to_a_short_prompt_shows_that_it_is_read(rig: Rig, qtbot: QtBot) -> None:
    shown = send(rig, qtbot, "Hello")
    qtbot.waitUntil(lambda: rig.turns.num_writing == 1)
    assert line(rig, shown) == "", "most answers begin at once"
    pass_time(rig)
    assert line(rig, shown) == "Reading 0 of 5 tokens"
    rig.engine.write("Hi")
    qtbot.waitUntil(lambda: line(rig, shown) == "Read 5 tokens · first word after 1.1 s")
    rig.engine.finish()
    qtbot.waitUntil(lambda: not rig.turns.live)


def test_message_to_another_model_waits_until_the_first_one_is_unloaded(
    rig: Rig, qtbot: QtBot
) -> None:
    events, rig.engine.on_event = rig.engine.on_event, ignore
    rig.models.choose(card("Next").path)
    shown = send(rig, qtbot, "Hello")
    assert line(rig, shown) == "Waiting until Tiny 9B 4-bit is unloaded"
    assert rig.models.status.phase is ModelPhase.CLOSING
    rig.engine.on_event, path = events, rig.models.status.path
    rig.origin.tick_s += 2
    rig.engine.on_event(ModelLoading(path, LoadStage.LOADING, 0.0, 0, 0))
    qtbot.waitUntil(lambda: line(rig, shown) == "Loading Next · 0%")
    rig.origin.tick_s += 8
    rig.engine.on_event(ModelLoaded(rig.engine.facts))
    qtbot.waitUntil(lambda: rig.turns.num_writing == 1)
    rig.engine.write("Hi")
    qtbot.waitUntil(lambda: "first word" in line(rig, shown))
    _, _, wait = line(rig, shown).partition(" · ")
    assert (
        wait == "first word after 10 s, 8.0 s of it loading the model, 2.0 s of it waiting to begin"
    )
    rig.engine.finish()
    qtbot.waitUntil(lambda: not rig.turns.live)
    generation = rig.path[-1].generation
    assert generation is not None
    assert generation.usage is not None
    assert rig.stored_path(shown) == rig.path
    assert 8_000 < generation.usage.load_ms < 9_000 < generation.usage.queue_ms
