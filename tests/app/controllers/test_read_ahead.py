from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from app.controllers import read_ahead
from app.controllers.requests import LONG_DRAFT
from app.conversation.folder import DOCUMENTS_PREFIX
from app.conversation.tree import TERMINAL_CHAT, Setup
from app.server.known_chats import SERVER_PREFIX
from app.settings import Settings
from app.viewmodels.models import ModelPhase
from engine.events import ReadAhead
from engine.questions import AnyQuestion, Forget, ForgetUnknown
from engine.types import Role
from tests.fakes.rig import Rig

MakeRig = Callable[..., Rig]
LONG = "words " * LONG_DRAFT


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "STAY_MS", 0)
    monkeypatch.setattr(read_ahead, "POINTED_MS", 0)


@pytest.fixture
def make_rig(tmp_path: Path, qtbot: QtBot) -> Iterator[MakeRig]:
    """Return a function that starts a Rig on the test's data folder and closes the previous Rig."""
    rigs: list[Rig] = []

    def make(*, settings: Settings | None = None, hold_load: bool = False) -> Rig:
        if rigs:
            rigs[-1].close()
        rig = Rig(tmp_path, settings=settings)
        rigs.append(rig)
        rig.engine.hold_load = hold_load
        rig.start()
        wanted = ModelPhase.LOADING if hold_load else ModelPhase.READY
        qtbot.waitUntil(lambda: rig.models.status.phase is wanted)
        return rig

    yield make
    rigs[-1].close()


@pytest.fixture
def rig(make_rig: MakeRig) -> Rig:
    return make_rig()


def begin(rig: Rig, qtbot: QtBot, text: str) -> None:
    assert rig.chat.send(rig.library.current, text)
    qtbot.waitUntil(lambda: rig.engine.running is not None)


def end(rig: Rig, qtbot: QtBot, reply: str) -> None:
    rig.engine.write(reply)
    rig.engine.finish()
    qtbot.waitUntil(lambda: not rig.turns.live)


def chat(rig: Rig, qtbot: QtBot, text: str, reply: str) -> None:
    begin(rig, qtbot, text)
    end(rig, qtbot, reply)


def restarted(make_rig: MakeRig, rig: Rig, *, hold_load: bool = False) -> Rig:
    """Close `rig`, and start a new Rig on the same data folder that shows the same chat."""
    last = Settings(selected_conversation=rig.library.current)
    return make_rig(settings=last, hold_load=hold_load)


def read_aheads(rig: Rig, qtbot: QtBot, number: int) -> ReadAhead:
    """Wait for `number` ReadAhead commands, assert that there are no more, and return the last."""
    qtbot.waitUntil(lambda: len(rig.engine.read_aheads) >= number)
    assert len(rig.engine.read_aheads) == number
    return rig.engine.read_aheads[-1]


def sent(rig: Rig, kind: type[AnyQuestion]) -> list[AnyQuestion]:
    return [question for question in rig.engine.questions if isinstance(question, kind)]


def test_selected_chat_is_the_one_on_show(rig: Rig, qtbot: QtBot) -> None:
    first = rig.library.current
    chat(rig, qtbot, "One", "1")
    rig.library.new_chat()
    second = rig.library.current
    rig.library.select(first)
    assert rig.engine.changes(lambda one: one.shown) == [first, second, first]


def test_selected_chat_is_read_ahead_after_a_restart(make_rig: MakeRig, qtbot: QtBot) -> None:
    before = make_rig()
    before.chat.set_system_prompt(before.library.current, "Be brief.")
    before.chat.set_setup(before.library.current, Setup(thinking=True))
    chat(before, qtbot, "One", "1")
    rig = restarted(make_rig, before)

    ahead = read_aheads(rig, qtbot, 1)
    assert (ahead.conversation_id, ahead.is_draft) == (rig.library.current, False)
    chat(rig, qtbot, "Two", "2")

    request = rig.engine.submitted[0]
    assert ahead.messages == request.messages[:-1]
    assert ahead.messages[-1].role is Role.ASSISTANT
    assert (ahead.thinking, ahead.keep_thinking) == (request.thinking, request.keep_thinking)


def test_read_ahead_waits_for_the_model_and_is_repeated_for_another_model(
    make_rig: MakeRig, qtbot: QtBot
) -> None:
    before = make_rig()
    chat(before, qtbot, "One", "1")
    rig = restarted(make_rig, before, hold_load=True)
    qtbot.waitUntil(lambda: len(rig.path) == 2)
    assert rig.engine.read_aheads == []
    rig.engine.finish_load()
    first = read_aheads(rig, qtbot, 1)
    rig.models.choose(Path("/models/other"))
    rig.engine.finish_load()
    assert read_aheads(rig, qtbot, 2) == first


def test_read_ahead_is_sent_only_after_the_answer_has_ended(rig: Rig, qtbot: QtBot) -> None:
    begin(rig, qtbot, "One")
    rig.chat.set_setup(rig.library.current, Setup(thinking=True))
    rig.chat.save_draft(rig.library.current, LONG)
    end(rig, qtbot, "1")
    ahead = read_aheads(rig, qtbot, 1)
    assert ahead.is_draft
    assert [message.content for message in ahead.messages] == ["One", "1", LONG]


def test_turn_sends_no_read_ahead_command(rig: Rig, qtbot: QtBot) -> None:
    chat(rig, qtbot, "One", "1")
    chat(rig, qtbot, "Two", "2")
    rig.chat.set_setup(rig.library.current, Setup(thinking=True))
    ahead = read_aheads(rig, qtbot, 1)
    assert [message.content for message in ahead.messages] == ["One", "1", "Two", "2"]


def test_only_a_long_draft_is_read_ahead(rig: Rig, qtbot: QtBot) -> None:
    current = rig.library.current
    rig.chat.save_draft(current, LONG[: LONG_DRAFT - 1])
    rig.chat.save_draft(current, LONG)
    ahead = read_aheads(rig, qtbot, 1)
    assert ahead.is_draft
    assert [message.content for message in ahead.messages] == [LONG]
    rig.chat.save_draft(current, LONG + "more")
    assert read_aheads(rig, qtbot, 2).messages[-1].content == LONG + "more"


def test_read_ahead_of_a_cleared_draft_is_replaced_by_one_without_draft(
    rig: Rig, qtbot: QtBot
) -> None:
    chat(rig, qtbot, "One", "1")
    rig.chat.save_draft(rig.library.current, LONG)
    assert read_aheads(rig, qtbot, 1).is_draft
    rig.chat.save_draft(rig.library.current, "")
    ahead = read_aheads(rig, qtbot, 2)
    assert not ahead.is_draft
    assert [message.content for message in ahead.messages] == ["One", "1"]


def test_cleared_draft_of_a_new_chat_revokes_its_read_ahead(rig: Rig, qtbot: QtBot) -> None:
    current = rig.library.current
    rig.chat.save_draft(current, LONG)
    assert read_aheads(rig, qtbot, 1).is_draft
    rig.chat.save_draft(current, "")
    assert read_aheads(rig, qtbot, 2) == ReadAhead(conversation_id=current, messages=())
    rig.chat.save_draft(current, "again")
    rig.chat.save_draft(current, LONG)
    assert read_aheads(rig, qtbot, 3).is_draft


def test_chat_without_read_ahead_revokes_nothing(rig: Rig, qtbot: QtBot) -> None:
    chat(rig, qtbot, "One", "1")
    rig.chat.set_setup(rig.library.current, Setup(thinking=True))
    assert read_aheads(rig, qtbot, 1).messages
    rig.library.new_chat()
    rig.chat.set_system_prompt(rig.library.current, "Be brief.")
    qtbot.wait(5)
    assert len(rig.engine.read_aheads) == 1


def test_delete_revokes_the_read_ahead_and_undo_repeats_it(rig: Rig, qtbot: QtBot) -> None:
    first = rig.library.current
    chat(rig, qtbot, "One", "1")
    rig.chat.save_draft(first, LONG)
    asked = read_aheads(rig, qtbot, 1)
    rig.core.deletions.delete_all((first,))
    assert read_aheads(rig, qtbot, 2) == ReadAhead(conversation_id=first, messages=())
    rig.core.undoing.undo()
    assert read_aheads(rig, qtbot, 3) == asked


def test_deleted_chat_is_forgotten_after_a_delay(
    rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = rig.library.current
    chat(rig, qtbot, "One", "1")
    monkeypatch.setattr(read_ahead, "FORGET_MS", 0)
    rig.core.deletions.delete_all((first,))
    assert sent(rig, Forget) == []
    qtbot.waitUntil(lambda: sent(rig, Forget) == [Forget(first, on_disk=False)])


def test_chats_that_the_store_lacks_are_forgotten_after_a_model_was_loaded(
    rig: Rig, make_rig: MakeRig, qtbot: QtBot
) -> None:
    """A kill may come between the removal of a chat and the end of its state on disk."""
    stored = rig.library.current
    chat(rig, qtbot, "One", "1")
    again = make_rig()
    qtbot.waitUntil(lambda: bool(sent(again, ForgetUnknown)))
    known = frozenset({stored, again.library.current, TERMINAL_CHAT})
    assert sent(again, ForgetUnknown) == [ForgetUnknown(known, (SERVER_PREFIX, DOCUMENTS_PREFIX))]


def test_restored_chat_is_not_forgotten(
    rig: Rig, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    restored = rig.library.current
    chat(rig, qtbot, "One", "1")
    rig.library.new_chat()
    deleted = rig.library.current
    chat(rig, qtbot, "Two", "2")
    monkeypatch.setattr(read_ahead, "FORGET_MS", 0)
    rig.core.deletions.delete_all((restored,))
    rig.core.undoing.undo()
    rig.core.deletions.delete_all((deleted,))
    qtbot.waitUntil(lambda: bool(sent(rig, Forget)))
    assert sent(rig, Forget) == [Forget(deleted, on_disk=False)]


def test_message_stopped_before_its_answer_is_read_ahead_only_with_a_new_draft(
    rig: Rig, qtbot: QtBot
) -> None:
    current = rig.library.current
    rig.chat.save_draft(current, LONG)
    assert read_aheads(rig, qtbot, 1).is_draft
    begin(rig, qtbot, LONG)
    rig.chat.save_draft(current, "")
    rig.chat.stop(current)
    qtbot.waitUntil(lambda: not rig.turns.live)
    assert read_aheads(rig, qtbot, 2).messages == ()  # withdraws the draft
    rig.chat.set_setup(current, Setup(thinking=True))
    assert read_aheads(rig, qtbot, 2).messages == ()
    rig.chat.save_draft(current, LONG)
    assert read_aheads(rig, qtbot, 3).messages[-1].content.count(LONG.strip()) == 2


def test_draft_is_read_ahead_again_after_each_regenerated_reply(rig: Rig, qtbot: QtBot) -> None:
    current = rig.library.current
    chat(rig, qtbot, "One", "1")
    rig.chat.save_draft(current, LONG)
    assert read_aheads(rig, qtbot, 1).is_draft
    for number, reply in enumerate(("1b", "1b"), 2):
        assert rig.chat.regenerate(current, rig.path[-1].node_id)
        end(rig, qtbot, reply)
        ahead = read_aheads(rig, qtbot, number)
        assert ahead.is_draft
        assert [message.content for message in ahead.messages] == ["One", reply, LONG]


def test_draft_of_a_hidden_chat_is_read_ahead_once_it_is_shown(rig: Rig, qtbot: QtBot) -> None:
    first = rig.library.current
    chat(rig, qtbot, "One", "1")
    rig.library.new_chat()
    rig.chat.save_draft(first, LONG)
    rig.library.select(first)
    assert read_aheads(rig, qtbot, 1).is_draft


def test_read_ahead_is_repeated_only_if_the_next_prompt_changes(rig: Rig, qtbot: QtBot) -> None:
    current = rig.library.current
    chat(rig, qtbot, "One", "1")
    assert rig.chat.regenerate(current, rig.path[-1].node_id)
    end(rig, qtbot, "1b")
    rig.chat.show_neighbour(current, rig.path[-1].node_id, -1)
    assert read_aheads(rig, qtbot, 1).messages[-1].content == "1"
    rig.chat.set_setup(current, Setup(temperature=1.0))
    qtbot.wait(1)
    rig.chat.set_setup(current, Setup(temperature=1.0, thinking=False))
    assert read_aheads(rig, qtbot, 2).thinking is False
    rig.chat.set_system_prompt(current, "Be brief.")
    assert read_aheads(rig, qtbot, 3).messages[0].content == "Be brief."


def test_read_ahead_is_repeated_if_the_exchange_after_it_is_deleted(rig: Rig, qtbot: QtBot) -> None:
    current = rig.library.current
    chat(rig, qtbot, "One", "1")
    rig.chat.set_setup(current, Setup(thinking=True))
    before = read_aheads(rig, qtbot, 1)
    chat(rig, qtbot, "Two", "2")
    rig.chat.delete(current, rig.path[2].node_id)
    assert read_aheads(rig, qtbot, 2) == before


def test_keep_thinking_is_sent_only_if_the_model_supports_it(rig: Rig, qtbot: QtBot) -> None:
    chat(rig, qtbot, "One", "1")
    rig.chat.set_setup(rig.library.current, Setup(keep_thinking=True))
    assert read_aheads(rig, qtbot, 1).keep_thinking
    chat(rig, qtbot, "Two", "2")
    assert [one.keep_thinking for one in rig.engine.submitted] == [False, True]
    rig.engine.facts = replace(rig.engine.facts, can_keep_thinking=False)
    rig.models.choose(Path("/models/other"))
    assert not read_aheads(rig, qtbot, 2).keep_thinking
    chat(rig, qtbot, "Three", "3")
    assert not rig.engine.submitted[-1].keep_thinking


def test_chats_kept_ready_are_pinned_again_after_a_restart(make_rig: MakeRig, qtbot: QtBot) -> None:
    rig = make_rig()
    first = rig.library.current
    chat(rig, qtbot, "One", "1")
    rig.library.new_chat()
    chat(rig, qtbot, "Two", "2")
    rig.core.organiser.keep_ready(first, True)
    assert rig.engine.wanted.pinned == frozenset({first})
    again = restarted(make_rig, rig)
    qtbot.waitUntil(lambda: again.engine.wanted.pinned == frozenset({first}))
    assert first not in again.desk
    again.core.organiser.keep_ready(first, False)
    qtbot.waitUntil(lambda: not again.engine.wanted.pinned)
    last = restarted(make_rig, again)
    qtbot.waitUntil(lambda: bool(last.library.listed.unarchived))
    assert not any(last.engine.changes(lambda one: one.pinned))


def test_model_change_keeps_the_pins(rig: Rig, qtbot: QtBot) -> None:
    chat(rig, qtbot, "One", "1")
    rig.core.organiser.keep_ready(rig.library.current, True)
    rig.models.choose(Path("/models/other"))
    qtbot.waitUntil(lambda: rig.models.status.phase is ModelPhase.READY)
    pins = rig.engine.changes(lambda one: one.pinned)
    assert pins == [set(), {rig.library.current}]


def test_delete_unpins_a_chat_kept_ready_and_undo_pins_it_again(rig: Rig, qtbot: QtBot) -> None:
    first = rig.library.current
    chat(rig, qtbot, "One", "1")
    rig.core.organiser.keep_ready(first, True)
    rig.core.deletions.delete_all((first,))
    rig.core.undoing.undo()
    pins = rig.engine.changes(lambda one: one.pinned)
    assert pins == [set(), {first}, set(), {first}]


def test_keep_ready_set_during_a_turn_is_kept_if_the_turn_is_stopped(
    rig: Rig, qtbot: QtBot
) -> None:
    chat(rig, qtbot, "One", "1")
    rig.engine.hold_start = True
    rig.chat.send(rig.library.current, "Two")
    rig.core.organiser.keep_ready(rig.library.current, True)
    rig.chat.stop(rig.library.current)
    qtbot.waitUntil(lambda: not rig.turns.live)
    assert rig.current.keep_ready
    assert rig.stored(lambda store: store.load(rig.library.current)).keep_ready


@pytest.mark.parametrize("enabled", [True, False])
def test_read_ahead_setting_is_sent_at_start_and_when_it_changes(
    make_rig: MakeRig, enabled: bool
) -> None:
    rig = make_rig(settings=Settings(read_ahead=enabled))
    rig.core.preferences.zoom_in()
    rig.core.preferences.toggle_read_ahead()
    assert rig.engine.changes(lambda one: one.idle_work)[-2:] == [enabled, not enabled]


def test_close_sends_no_read_ahead(rig: Rig, qtbot: QtBot) -> None:
    begin(rig, qtbot, "One")
    rig.chat.save_draft(rig.library.current, LONG)
    rig.close()
    qtbot.wait(1)
    assert rig.engine.read_aheads == []


def test_state_of_pointed_at_chat_is_fetched_and_nothing_fed(rig: Rig, qtbot: QtBot) -> None:
    chat(rig, qtbot, "One", "1")
    first = rig.library.current
    rig.library.new_chat()
    rig.library.expect(first)

    ahead = read_aheads(rig, qtbot, 1)
    assert (ahead.conversation_id, ahead.fetch_only) == (first, True)
    assert [message.content for message in ahead.messages] == ["One", "1"]


def test_pointer_over_a_chat_that_is_answering_fetches_nothing(rig: Rig, qtbot: QtBot) -> None:
    chat(rig, qtbot, "One", "1")
    first = rig.library.current
    rig.library.new_chat()
    assert rig.chat.send(first, "Two")
    qtbot.waitUntil(lambda: rig.engine.running is not None)
    timers = rig.core.read_ahead.findChildren(QTimer)
    rig.library.expect(first)
    assert any(timer.isActive() for timer in timers)
    qtbot.waitUntil(lambda: not any(timer.isActive() for timer in timers))
    assert not rig.engine.read_aheads
    rig.engine.finish()
