"""The scheduler: the order of requests, when one starts, and the time for a piece of prompt."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.events import WaitReason
from engine.scheduler import SHORT_PROMPT, Scheduler
from engine.types import ConversationId, Request, RequestId
from tests.fakes.asking import user


@dataclass(frozen=True)
class BareRequest:
    request: Request
    num_unread: int = 2 * SHORT_PROMPT


def asked(
    chat: str, text: str = "word " * 1000, *, side: bool = False, num_unread: int = 2 * SHORT_PROMPT
) -> BareRequest:
    return BareRequest(
        Request(
            request_id=RequestId(f"{chat} {side}"),
            conversation_id=ConversationId(chat),
            messages=(user("a message that was read " * 200), user(text)),
            new_messages=frozenset({1}),
            side=side,
        ),
        num_unread,
    )


A, B, C, D = map(asked, "ABCD")


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler(max_running=2, max_gap_s=0.2)


def test_order_is_by_arrival_with_the_shown_conversation_first(scheduler: Scheduler) -> None:
    assert scheduler.order([A, B, C]) == [A, B, C]
    scheduler.shown = ConversationId("C")
    assert scheduler.order([A, B, C]) == [C, A, B]


def test_next_request_starts_when_no_prompt_is_being_read(scheduler: Scheduler) -> None:
    assert scheduler.next_to_start([A, B], [], []) == A
    assert scheduler.next_to_start([B], [A], [A]) is None
    assert scheduler.next_to_start([B], [A], []) == B
    assert scheduler.next_to_start([], [A], []) is None


def test_shown_conversation_starts_while_another_prompt_is_read(scheduler: Scheduler) -> None:
    scheduler.shown = ConversationId("B")
    assert scheduler.next_to_start([C, B], [A], [A]) == B
    scheduler.shown = ConversationId("A")
    assert scheduler.next_to_start([C, B], [A], [A]) is None


def test_short_message_starts_while_another_prompt_is_read(scheduler: Scheduler) -> None:
    short = asked("C", "How are you?")
    for shown in (None, *map(ConversationId, "ABC")):
        scheduler.shown = shown
        assert scheduler.next_to_start([short], [A], [A]) == short
    assert scheduler.next_to_start([B, short], [A], [A]) == short


def test_short_prompt_is_read_before_the_longer_one_of_the_shown_chat(
    scheduler: Scheduler,
) -> None:
    short = asked("C", num_unread=SHORT_PROMPT)
    scheduler.shown = ConversationId("B")
    assert scheduler.next_to_read([A, B]) == B
    assert scheduler.next_to_read([A, B, short]) == short


def test_reason_for_a_wait_is_the_queue_a_prompt_or_the_running_answers(
    scheduler: Scheduler,
) -> None:
    assert scheduler.reason([A], []) is WaitReason.TURN
    assert scheduler.reason([A], [A]) is WaitReason.READING
    assert scheduler.reason([A, B], [A]) is WaitReason.ANSWERS


def test_no_request_starts_beyond_max_running(scheduler: Scheduler) -> None:
    assert scheduler.next_to_start([C], [A, B], []) is None


def test_shown_conversation_has_one_place_more(scheduler: Scheduler) -> None:
    """Other programs may take all other places for minutes."""
    scheduler.shown = ConversationId("C")
    assert scheduler.next_to_start([D, C], [A, B], []) == C
    assert scheduler.next_to_start([C], [A, B, D], []) is None


def test_conversation_has_one_answer_at_a_time(scheduler: Scheduler) -> None:
    assert scheduler.next_to_start([A, B], [A], []) == B
    assert scheduler.next_to_start([A], [A], []) is None
    title = asked("A", side=True)
    assert scheduler.next_to_start([title], [A], []) == title
    assert scheduler.next_to_start([A], [title], []) == A


def test_piece_of_prompt_gets_the_time_that_decode_steps_leave(scheduler: Scheduler) -> None:
    assert scheduler.piece_s == pytest.approx(0.17)
    for _ in range(40):
        scheduler.note_decode(0.05)
    assert scheduler.piece_s == pytest.approx(0.12)
    scheduler.note_decode(0.08)
    assert scheduler.piece_s == pytest.approx(0.09), "one slow step must shorten the next piece"
    for _ in range(40):
        scheduler.note_decode(0.5)
    assert scheduler.piece_s == pytest.approx(0.5 / 3)
