from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.conversation.tree import (
    MessageStatus,
    NodeId,
    Setup,
    add_nodes,
    shown_path,
    versions,
)
from app.store.conversations import ConversationStore
from app.store.errors import DatabaseFullError
from app.viewmodels.models import ModelPhase
from app.viewmodels.phases import Loading, Planned, Reading, Waiting
from engine.errors import ContextFullError, ModelFolderError, OutOfMemoryError
from engine.events import Cancel, LoadModel, LoadStage, ModelLoaded, ModelLoading
from engine.types import Channel, ConversationId, FinishReason, Role
from engine.usage import PromptPlan
from tests.fakes.rig import Rig, card

FULL = ContextFullError("33,012 tokens; the model takes 32,768.").problem
NO_MEMORY = OutOfMemoryError("8.1 GB were needed, 6.0 GB are free.").problem


@pytest.fixture
def rig(tmp_path: Path, qtbot: QtBot) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    rig.start()
    qtbot.waitUntil(lambda: rig.models.status.phase is ModelPhase.READY)
    yield rig
    rig.close()


@pytest.fixture
def loading(tmp_path: Path, qtbot: QtBot) -> Iterator[Rig]:
    rig = Rig(tmp_path)
    rig.engine.hold_load = True
    rig.start()
    qtbot.waitUntil(lambda: rig.models.status.phase is ModelPhase.LOADING)
    yield rig
    rig.close()


def send(rig: Rig, qtbot: QtBot, text: str) -> None:
    assert rig.chat.send(rig.library.current, text)
    qtbot.waitUntil(lambda: rig.turns.live_in(rig.library.current) is not None)


def settle(rig: Rig, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not rig.turns.live)


def answer(rig: Rig, qtbot: QtBot, text: str, reply: str) -> None:
    send(rig, qtbot, text)
    rig.engine.write(reply)
    rig.engine.finish()
    settle(rig, qtbot)


def test_a_message_is_answered_and_stored(rig: Rig, qtbot: QtBot) -> None:
    answer(rig, qtbot, "Hello", "Hi there")
    path = rig.path
    assert [(node.role, node.content) for node in path] == [
        (Role.USER, "Hello"),
        (Role.ASSISTANT, "Hi there"),
    ]
    assert rig.stored_path(rig.library.current) == path
    assert rig.current.title == "Hello"


def test_answer_records_model_sampling_and_usage(rig: Rig, qtbot: QtBot) -> None:
    rig.chat.set_setup(rig.library.current, Setup(top_k=20))
    answer(rig, qtbot, "Hello", "Hi")
    generation = rig.path[-1].generation
    assert generation is not None
    request = rig.engine.submitted[0]
    assert generation.model_path == "/models/Tiny-9B-4bit"
    assert generation.template_hash == "tmpl-1"
    assert generation.sampling == request.sampling
    assert (request.sampling.top_k, request.sampling.temperature) == (20, 0.6)
    assert generation.usage is not None
    assert generation.finish_reason is FinishReason.STOP


def test_each_answer_has_its_own_seed_unless_one_is_set(rig: Rig, qtbot: QtBot) -> None:
    answer(rig, qtbot, "One", "1")
    answer(rig, qtbot, "Two", "2")
    rig.chat.set_setup(rig.library.current, Setup(seed=7))
    answer(rig, qtbot, "Three", "3")
    first, second, third = (request.sampling.seed for request in rig.engine.submitted)
    assert first != second
    assert third == 7


def test_only_the_last_message_of_a_second_request_counts_as_new(rig: Rig, qtbot: QtBot) -> None:
    answer(rig, qtbot, "One", "1")
    answer(rig, qtbot, "Two", "2")
    second = rig.engine.submitted[1]
    assert [message.content for message in second.messages] == ["One", "1", "Two"]
    assert second.new_messages == {2}
    assert second.messages[1].reply is not None, "a reply must be sent with its own token ids"


def test_empty_message_is_refused(rig: Rig) -> None:
    assert not rig.chat.send(rig.library.current, "  \n ")
    assert rig.refusals[0].problem is not None
    assert rig.refusals[0].problem.title == "The message is empty."
    assert rig.current.nodes == {}


def test_second_message_is_queued_until_the_answer_ends(rig: Rig, qtbot: QtBot) -> None:
    send(rig, qtbot, "One")
    assert rig.chat.send(rig.library.current, "Two")
    assert rig.chat.queued(rig.library.current).text == "Two"
    assert len(rig.engine.submitted) == 1
    rig.engine.finish()
    qtbot.waitUntil(lambda: len(rig.engine.submitted) == 2)
    assert rig.chat.queued(rig.library.current).text == ""


def test_save_draft_stores_the_queued_message_with_the_draft(rig: Rig, qtbot: QtBot) -> None:
    send(rig, qtbot, "One")
    qtbot.waitUntil(lambda: rig.turns.num_writing == 1)
    rig.chat.send(rig.library.current, "Two")
    rig.chat.save_draft(rig.library.current, "and a bit")
    stored = rig.stored(lambda store: store.load(rig.library.current))
    assert stored.draft == "Two\n\nand a bit"


def test_stop_keeps_the_written_text(rig: Rig, qtbot: QtBot) -> None:
    send(rig, qtbot, "Hello")
    rig.engine.write("Half an ans")
    rig.chat.stop(rig.library.current)
    settle(rig, qtbot)
    assert rig.path[-1].content == "Half an ans"
    assert rig.path[-1].status is MessageStatus.STOPPED
    assert rig.path[-1].reply is not None


def test_stop_before_the_first_token_leaves_an_empty_stopped_reply(rig: Rig, qtbot: QtBot) -> None:
    send(rig, qtbot, "Hello")
    rig.chat.stop(rig.library.current)
    settle(rig, qtbot)
    assert rig.path[-1].status is MessageStatus.STOPPED
    assert rig.path[-1].content == ""


def test_version_that_is_stopped_before_its_first_token_goes_away(rig: Rig, qtbot: QtBot) -> None:
    answer(rig, qtbot, "Hello", "First")
    first = rig.path[-1].node_id
    for is_on_show in (True, False):
        rig.chat.regenerate(rig.library.current, first)
        if not is_on_show:
            rig.chat.show_neighbour(rig.library.current, rig.path[-1].node_id, -1)
        rig.chat.send(rig.library.current, "And then?")
        rig.chat.stop(rig.library.current)
        settle(rig, qtbot)
        assert versions(rig.current, first) == (first,)
        assert [node.content for node in rig.path] == ["Hello", "First"]
        assert len(rig.engine.submitted) == 2 + (not is_on_show), "the queued message has come back"
    assert "Regenerate" not in [one.name for one in rig.core.undo.entries]


def test_newer_one_of_two_empty_versions_stays(rig: Rig, qtbot: QtBot) -> None:
    """The older one may have been cut off by a crash, and the newer one was stopped."""
    rig.chat.send(rig.library.current, "Hello")
    qtbot.waitUntil(lambda: rig.engine.running is not None)
    rig.chat.stop(rig.library.current)
    settle(rig, qtbot)
    first = rig.path[-1].node_id
    rig.chat.regenerate(rig.library.current, first)
    qtbot.waitUntil(lambda: rig.engine.running is not None)
    rig.chat.stop(rig.library.current)
    settle(rig, qtbot)

    newer = rig.path[-1].node_id
    assert newer != first
    assert versions(rig.current, newer) == (newer,)
    assert "Regenerate" not in [one.name for one in rig.core.undo.entries]
    answer(rig, qtbot, "And now?", "Yes")
    assert [node.content for node in rig.path] == ["Hello", "", "And now?", "Yes"]


def test_empty_versions_that_crashes_left_go_away_with_the_next_one(rig: Rig, qtbot: QtBot) -> None:
    rig.chat.send(rig.library.current, "Hello")
    qtbot.waitUntil(lambda: rig.engine.running is not None)
    rig.chat.stop(rig.library.current)
    settle(rig, qtbot)
    empty = rig.path[-1]
    crashed = [replace(empty, node_id=NodeId(f"crashed {number}")) for number in range(2)]
    rig.desk.save(add_nodes(rig.current, *crashed))
    settle(rig, qtbot)
    assert len(versions(rig.current, empty.node_id)) == 3

    rig.chat.regenerate(rig.library.current, crashed[-1].node_id)
    qtbot.waitUntil(lambda: rig.engine.running is not None)
    rig.engine.write("Hi")
    rig.engine.finish()
    settle(rig, qtbot)

    assert [node.content for node in rig.path] == ["Hello", "Hi"]
    assert versions(rig.current, rig.path[-1].node_id) == (rig.path[-1].node_id,)


def test_regenerate_adds_a_version(rig: Rig, qtbot: QtBot) -> None:
    answer(rig, qtbot, "Hello", "First")
    first = rig.path[-1].node_id
    assert rig.chat.regenerate(rig.library.current, first)
    qtbot.waitUntil(lambda: rig.engine.running is not None)
    rig.engine.write("Second")
    rig.engine.finish()
    settle(rig, qtbot)
    assert rig.path[-1].content == "Second"
    assert versions(rig.current, first)[0] == first
    assert rig.engine.submitted[1].new_messages == frozenset()


def test_edit_adds_a_version_and_the_old_branch_stays(rig: Rig, qtbot: QtBot) -> None:
    answer(rig, qtbot, "Capital of France?", "Paris")
    asked = rig.path[0].node_id
    assert rig.chat.edit(rig.library.current, asked, "Capital of Spain?")
    qtbot.waitUntil(lambda: rig.engine.running is not None)
    rig.engine.write("Madrid")
    rig.engine.finish()
    settle(rig, qtbot)
    assert [node.content for node in rig.path] == ["Capital of Spain?", "Madrid"]
    rig.chat.show_neighbour(rig.library.current, rig.path[0].node_id, -1)
    assert [node.content for node in rig.path] == ["Capital of France?", "Paris"]
    rig.chat.show_neighbour(rig.library.current, rig.path[0].node_id, -1)
    assert [node.content for node in rig.path] == ["Capital of France?", "Paris"]
    assert rig.stored_path(rig.library.current) == rig.path


def test_answer_in_a_hidden_conversation_continues_and_is_unseen(rig: Rig, qtbot: QtBot) -> None:
    send(rig, qtbot, "Slow question")
    slow = rig.library.current
    rig.engine.write("The ")
    rig.library.new_chat()
    assert rig.library.current != slow
    rig.engine.write("answer")
    rig.engine.finish()
    settle(rig, qtbot)
    assert rig.library.unseen.ids == {slow}
    rig.library.select(slow)
    assert rig.path[-1].content == "The answer"
    assert rig.library.unseen.ids == frozenset()


def test_a_deleted_conversation_is_no_longer_unseen(rig: Rig, qtbot: QtBot) -> None:
    send(rig, qtbot, "Slow question")
    slow = rig.library.current
    rig.library.new_chat()
    rig.engine.finish()
    settle(rig, qtbot)
    assert rig.library.unseen.ids == {slow}
    rig.core.deletions.delete_all((slow,))
    assert rig.library.unseen.ids == frozenset()


def answer_out_of_sight(rig: Rig, qtbot: QtBot, text: str) -> ConversationId:
    """Answer a message while a new conversation is on show."""
    rig.library.new_chat()
    send(rig, qtbot, text)
    asked = rig.library.current
    rig.library.new_chat()
    rig.engine.write("The answer")
    rig.engine.finish()
    settle(rig, qtbot)
    return asked


def restart(rig: Rig, tmp_path: Path, qtbot: QtBot) -> Rig:
    rig.close()
    again = Rig(tmp_path, settings=rig.core.preferences.value)
    again.start()
    qtbot.waitUntil(lambda: again.models.status.phase is ModelPhase.READY)
    last = rig.core.preferences.value.selected_conversation
    qtbot.waitUntil(lambda: again.library.current == last)
    return again


def test_unseen_answers_are_unseen_after_a_restart_until_opened(
    rig: Rig, tmp_path: Path, qtbot: QtBot
) -> None:
    opened, deleted, left = (answer_out_of_sight(rig, qtbot, text) for text in "ABC")
    rig.library.select(opened)
    rig.core.deletions.delete_all((left, deleted))
    send(rig, qtbot, "Cut off")
    cut = opened
    rig.library.new_chat()
    rig.engine.write("The an")
    qtbot.waitUntil(lambda: rig.turns.writing == [cut])
    rig.chat.save_draft(rig.library.current, "On show")
    shown = rig.library.current
    rig.library.unseen.note_cut_off()  # as app.main does before it hides the window
    again = restart(rig, tmp_path, qtbot)
    assert again.library.current == shown
    assert again.library.unseen.ids == {cut}
    again.library.restore_all((left, deleted))
    qtbot.waitUntil(lambda: again.library.current == left)
    assert again.library.unseen.ids == {cut, deleted}
    again.library.select(cut)
    qtbot.waitUntil(lambda: again.library.current == cut)
    last = restart(again, tmp_path, qtbot)
    assert last.library.unseen.ids == {deleted}
    last.close()


def test_requests_of_several_conversations_are_queued(rig: Rig, qtbot: QtBot) -> None:
    send(rig, qtbot, "First")
    first = rig.library.current
    rig.library.new_chat()
    send(rig, qtbot, "Second")
    second = rig.library.current
    qtbot.waitUntil(lambda: rig.turns.live_in(second).phase == Waiting(1))  # pyright: ignore[reportOptionalMemberAccess] (sent above)
    rig.engine.write("1")
    rig.engine.finish()
    qtbot.waitUntil(lambda: rig.turns.live_in(first) is None)
    rig.engine.write("2")
    rig.engine.finish()
    settle(rig, qtbot)
    assert [shown_path(rig.desk.get(one))[-1].content for one in (first, second)] == ["1", "2"]


def test_a_queued_message_is_only_a_draft_in_the_store(rig: Rig, qtbot: QtBot) -> None:
    rig.engine.hold_start = True
    send(rig, qtbot, "Patience")
    stored = rig.stored(lambda store: store.load(rig.library.current))
    assert (stored.draft, len(stored.nodes)) == ("Patience", 0)
    assert len(rig.path) == 2, "the queued message must be shown"
    rig.engine.begin()
    qtbot.waitUntil(lambda: isinstance(_phase(rig), Planned))
    stored = rig.stored(lambda store: store.load(rig.library.current))
    assert (stored.draft, len(stored.nodes)) == ("", 2)
    rig.chat.stop(rig.library.current)
    settle(rig, qtbot)


def _phase(rig: Rig) -> object:
    live = rig.turns.live_in(rig.library.current)
    return live and live.phase


def test_message_refused_by_a_full_context_is_returned_and_not_stored(
    rig: Rig, qtbot: QtBot
) -> None:
    answer(rig, qtbot, "Hello", "Hi")
    rig.engine.hold_start = True
    send(rig, qtbot, "A very long question")
    rig.engine.fail(FULL)
    settle(rig, qtbot)
    assert [(refusal.text, refusal.problem) for refusal in rig.refusals] == [
        ("A very long question", FULL)
    ]
    assert [node.content for node in rig.path] == ["Hello", "Hi"]
    stored = rig.stored(lambda store: store.load(rig.library.current))
    assert stored.draft == "A very long question"
    assert len(stored.nodes) == 2


def test_refusal_keeps_the_draft_and_title_changed_since_sending(rig: Rig, qtbot: QtBot) -> None:
    rig.engine.hold_start = True
    send(rig, qtbot, "Too long")
    rig.core.organiser.rename(rig.library.current, "My chat")
    rig.chat.save_draft(rig.library.current, "next thought")
    rig.engine.fail(FULL)
    settle(rig, qtbot)
    assert rig.current.title == "My chat"
    assert rig.current.draft == "Too long\n\nnext thought"


def test_stop_of_a_queued_message_returns_its_text_without_a_problem(
    rig: Rig, qtbot: QtBot
) -> None:
    rig.engine.hold_start = True
    send(rig, qtbot, "Never mind")
    rig.chat.stop(rig.library.current)
    settle(rig, qtbot)
    assert [(refusal.text, refusal.problem) for refusal in rig.refusals] == [("Never mind", None)]
    assert rig.path == []


def test_failed_answer_keeps_its_text_and_can_be_regenerated(rig: Rig, qtbot: QtBot) -> None:
    send(rig, qtbot, "Hello")
    rig.engine.write("Half")
    rig.engine.fail(NO_MEMORY)
    settle(rig, qtbot)
    failed = rig.path[-1]
    assert (failed.status, failed.content, failed.problem) == (
        MessageStatus.FAILED,
        "Half",
        NO_MEMORY,
    )
    assert rig.chat.regenerate(rig.library.current, failed.node_id)
    qtbot.waitUntil(lambda: rig.engine.running is not None)
    rig.engine.write("Whole")
    rig.engine.finish()
    settle(rig, qtbot)
    assert [node.content for node in rig.path] == ["Hello", "Whole"]
    assert rig.stored_path(rig.library.current) == rig.path


@pytest.mark.slow
def test_streamed_text_is_saved_while_it_streams(rig: Rig, qtbot: QtBot) -> None:
    send(rig, qtbot, "Hello")
    rig.engine.write("So far so good")
    conversation_id = rig.library.current
    qtbot.waitUntil(
        lambda: (
            [node.content for node in rig.stored_path(conversation_id)]
            == ["Hello", "So far so good"]
        ),
    )
    assert rig.engine.running is not None
    rig.engine.finish()
    settle(rig, qtbot)


@pytest.mark.slow
def test_failed_save_of_streamed_text_is_not_reported_and_the_ended_answer_is_stored(
    rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = threading.Event()

    def fail(*_args: object, **_named: object) -> None:
        tried.set()
        raise DatabaseFullError("No space is left for conversations.db.")

    monkeypatch.setattr(ConversationStore, "save_text", fail)
    send(rig, qtbot, "Hello")
    rig.engine.write("So far")
    qtbot.waitUntil(tried.is_set)
    rig.engine.finish()
    settle(rig, qtbot)
    assert [node.content for node in rig.stored_path(rig.library.current)] == ["Hello", "So far"]
    qtbot.wait(1)
    assert rig.problems == []


def test_message_sent_during_loading_waits_for_the_model(loading: Rig, qtbot: QtBot) -> None:
    rig = loading
    send(rig, qtbot, "Early bird")
    assert rig.engine.submitted == []
    rig.engine.load_progress(0.62)
    qtbot.waitUntil(lambda: isinstance(_phase(rig), Loading))
    rig.engine.finish_load()
    qtbot.waitUntil(lambda: rig.engine.running is not None)
    rig.engine.write("Worm")
    rig.engine.finish()
    settle(rig, qtbot)
    assert [node.content for node in rig.path] == ["Early bird", "Worm"]


def test_waiting_message_returns_to_the_composer_if_loading_fails(
    loading: Rig, qtbot: QtBot
) -> None:
    rig = loading
    send(rig, qtbot, "Early bird")
    problem = ModelFolderError("model.safetensors is missing.").problem
    rig.engine.fail_load(problem)
    settle(rig, qtbot)
    assert [(refusal.text, refusal.problem) for refusal in rig.refusals] == [
        ("Early bird", problem)
    ]
    assert not rig.chat.send(rig.library.current, "Again")
    assert rig.refusals[-1].problem == problem


def test_stop_during_loading_returns_the_message_to_the_composer(
    loading: Rig, qtbot: QtBot
) -> None:
    send(loading, qtbot, "Early bird")
    loading.chat.stop(loading.library.current)
    assert loading.refusals[0].text == "Early bird"
    assert loading.current.draft == "Early bird"


def test_long_prompt_shows_reading_progress_until_the_first_text(rig: Rig, qtbot: QtBot) -> None:
    rig.engine.plan = PromptPlan(prompt_tokens=9000, restored=0, replayed=8000, read=1000)
    send(rig, qtbot, "Long")
    qtbot.waitUntil(lambda: _phase(rig) == Reading(done=0, total=9000, eta_s=None))
    rig.engine.prefill(4096, 9000, 9.0)
    qtbot.waitUntil(lambda: _phase(rig) == Reading(done=4096, total=9000, eta_s=9.0))
    rig.engine.write("Done")
    qtbot.waitUntil(lambda: isinstance(_phase(rig), Planned))
    phase = _phase(rig)
    assert isinstance(phase, Planned)
    assert (phase.plan, phase.restore_ms) == (rig.engine.plan, rig.engine.restore_ms)
    assert phase.wait_ms is not None
    assert phase.wait_ms > phase.queue_ms > 0
    rig.engine.finish()
    settle(rig, qtbot)


def test_line_of_a_submitted_message_says_that_its_model_is_loaded_again(
    rig: Rig, qtbot: QtBot
) -> None:
    rig.engine.hold_start = True
    rig.chat.send(rig.library.current, "Early bird")
    path, size = rig.engine.facts.path, rig.engine.facts.weight_bytes
    rig.engine.on_event(ModelLoading(path, LoadStage.LOADING, 0.5, size // 2, size))
    qtbot.waitUntil(lambda: isinstance(_phase(rig), Loading))
    rig.engine.on_event(ModelLoaded(rig.engine.facts))
    qtbot.waitUntil(lambda: _phase(rig) == Waiting(0))
    rig.engine.begin()
    rig.engine.finish()
    settle(rig, qtbot)


def test_wait_of_an_answer_includes_the_loading_of_the_model(loading: Rig, qtbot: QtBot) -> None:
    send(loading, qtbot, "Early bird")
    loading.origin.tick_s += 20
    loading.engine.finish_load()
    qtbot.waitUntil(lambda: loading.engine.running is not None)
    loading.engine.write("Done")
    loading.engine.finish()
    settle(loading, qtbot)
    generation = loading.path[-1].generation
    assert generation is not None
    usage = generation.usage
    assert usage is not None
    assert usage.queue_ms > 19_000
    assert usage.ttft_ms > usage.queue_ms


def test_model_change_stops_the_running_answer_and_answers_the_queued_one(
    rig: Rig, qtbot: QtBot
) -> None:
    send(rig, qtbot, "First")
    first = rig.library.current
    rig.engine.write("Half")
    qtbot.waitUntil(lambda: isinstance(_phase(rig), Planned))
    rig.library.new_chat()
    send(rig, qtbot, "Second")
    other = card("Other-4B")
    rig.engine.facts = replace(rig.engine.facts, name="Other 4B")
    rig.models.choose(other.path)
    qtbot.waitUntil(lambda: rig.turns.live_in(first) is None)
    kept = shown_path(rig.desk.get(first))[-1]
    assert (kept.content, kept.status) == ("Half", MessageStatus.STOPPED)
    qtbot.waitUntil(lambda: rig.engine.running is not None)
    rig.engine.write("From the new one")
    rig.engine.finish()
    settle(rig, qtbot)
    generation = rig.path[-1].generation
    assert generation is not None
    assert generation.model_name == "Other 4B"
    assert rig.refusals == []


def test_model_change_right_after_a_stop_does_not_submit_the_message_again(
    rig: Rig, qtbot: QtBot
) -> None:
    rig.engine.hold_start = True
    send(rig, qtbot, "Never mind")
    # Stop and change the model before the event loop delivers the engine's answer.
    rig.chat.stop(rig.library.current)
    rig.models.choose(card("Other-4B").path)
    settle(rig, qtbot)
    assert len(rig.engine.submitted) == 1
    assert [(refusal.text, refusal.problem) for refusal in rig.refusals] == [("Never mind", None)]
    assert rig.current.draft == "Never mind"


def test_closing_while_answering_keeps_the_text(tmp_path: Path, qtbot: QtBot) -> None:
    rig = Rig(tmp_path)
    rig.start()
    qtbot.waitUntil(lambda: rig.models.status.phase is ModelPhase.READY)
    send(rig, qtbot, "Hello")
    rig.engine.write("Half an ans")
    conversation_id = rig.library.current
    rig.close()
    again = Rig(tmp_path)
    again.start()
    assert [node.content for node in again.stored_path(conversation_id)] == [
        "Hello",
        "Half an ans",
    ]
    assert again.stored_path(conversation_id)[-1].status is MessageStatus.STOPPED
    again.close()


def test_closing_while_loading_keeps_the_message_as_a_draft(tmp_path: Path, qtbot: QtBot) -> None:
    rig = Rig(tmp_path)
    rig.engine.hold_load = True
    rig.start()
    assert rig.chat.send(rig.library.current, "Early bird")
    conversation_id = rig.library.current
    rig.close()
    again = Rig(tmp_path)
    again.start()
    assert again.stored(lambda store: store.load(conversation_id)).draft == "Early bird"
    again.close()


@pytest.mark.usefixtures("qapp")  # timers need an event dispatcher
def test_close_right_after_start_closes_the_engine(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    rig.start()
    rig.close()
    assert rig.engine.closed


def test_reasoning_and_answer_arrive_on_separate_channels(rig: Rig, qtbot: QtBot) -> None:
    heard: list[tuple[Channel, str]] = []

    def hear(_node: NodeId, channel: Channel, text: str) -> None:
        heard.append((channel, text))

    rig.turns.text_arrived.connect(hear)
    send(rig, qtbot, "Why?")
    rig.engine.think("Hmm.")
    rig.engine.write("Because.")
    rig.engine.finish()
    settle(rig, qtbot)
    assert heard == [(Channel.REASONING, "Hmm."), (Channel.ANSWER, "Because.")]
    assert (rig.path[-1].reasoning, rig.path[-1].content) == ("Hmm.", "Because.")


def test_model_change_cancels_the_request_before_it_loads(rig: Rig, qtbot: QtBot) -> None:
    send(rig, qtbot, "Hello")
    qtbot.waitUntil(lambda: isinstance(_phase(rig), Planned))
    rig.models.choose(card("Other-4B").path)
    kinds = [type(command) for command in rig.engine.commands]
    assert kinds.index(Cancel) < len(kinds) - 1 - kinds[::-1].index(LoadModel)
    settle(rig, qtbot)
