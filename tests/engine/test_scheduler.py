"""Who starts, whose prompt is read, for how long."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from engine.scheduler import Scheduler
from engine.types import ConversationId, Request, RequestId


@dataclass(frozen=True)
class BareRequest:
    request: Request


def asked(chat: str, *, side: bool = False) -> BareRequest:
    return BareRequest(
        Request(
            request_id=RequestId(f"{chat} {side}"),
            conversation_id=ConversationId(chat),
            messages=(),
            new_messages=frozenset(),
            side=side,
        )
    )


A, B, C = map(asked, "ABC")


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler(max_running=2, max_gap_s=0.2)


def test_who_came_first_is_first_but_for_the_shown_conversation(scheduler: Scheduler) -> None:
    assert scheduler.order([A, B, C]) == [A, B, C]
    scheduler.shown = ConversationId("C")
    assert scheduler.order([A, B, C]) == [C, A, B]


def test_the_next_starts_when_no_prompt_is_read(scheduler: Scheduler) -> None:
    assert scheduler.next_to_start([A, B], [], []) == A
    assert scheduler.next_to_start([B], [A], [A]) is None
    assert scheduler.next_to_start([B], [A], []) == B
    assert scheduler.next_to_start([], [A], []) is None


def test_the_shown_conversation_does_not_wait_for_others_to_be_read(scheduler: Scheduler) -> None:
    scheduler.shown = ConversationId("B")
    assert scheduler.next_to_start([C, B], [A], [A]) == B
    scheduler.shown = ConversationId("A")
    assert scheduler.next_to_start([C, B], [A], [A]) is None


def test_no_more_run_than_may(scheduler: Scheduler) -> None:
    scheduler.shown = ConversationId("C")
    assert scheduler.next_to_start([C], [A, B], []) is None


def test_a_conversation_has_one_answer_at_a_time(scheduler: Scheduler) -> None:
    assert scheduler.next_to_start([A, B], [A], []) == B
    assert scheduler.next_to_start([A], [A], []) is None
    title = asked("A", side=True)
    assert scheduler.next_to_start([title], [A], []) == title
    assert scheduler.next_to_start([A], [title], []) == A


def test_a_prompt_is_read_in_what_the_answers_leave(scheduler: Scheduler) -> None:
    assert scheduler.piece_s == pytest.approx(0.17)
    for _ in range(40):
        scheduler.note_decode(0.05)
    assert scheduler.piece_s == pytest.approx(0.12)
    scheduler.note_decode(0.08)
    assert scheduler.piece_s == pytest.approx(0.09), "a slow step may come again"
    for _ in range(40):
        scheduler.note_decode(0.5)
    assert scheduler.piece_s == pytest.approx(0.5 / 3)
