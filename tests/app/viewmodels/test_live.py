from __future__ import annotations

import pytest

from app.viewmodels.live import LiveReply
from app.viewmodels.phases import Waiting
from engine.types import Channel


def live(*deltas: tuple[Channel, float]) -> LiveReply:
    reply = LiveReply(Waiting(0))
    for number, (channel, now) in enumerate(deltas, start=1):
        reply.append_delta(channel, "text ", num_tokens=number, now=now)
    return reply


def test_reasoning_lasts_until_the_answer_begins() -> None:
    thoughts = ((Channel.REASONING, 10.0), (Channel.REASONING, 11.5))
    assert live(*thoughts).reasoning_s == 1.5
    assert live(*thoughts, (Channel.ANSWER, 12.0), (Channel.ANSWER, 20.0)).reasoning_s == 2.0


def test_answer_without_reasoning_has_no_duration() -> None:
    assert live().reasoning_s is None
    assert live((Channel.ANSWER, 1.0), (Channel.ANSWER, 3.0)).reasoning_s is None


def test_rate_is_that_of_the_last_seconds() -> None:
    slow = [(Channel.ANSWER, float(second)) for second in range(60)]
    fast = [(Channel.ANSWER, 60 + tenth / 10) for tenth in range(40)]
    assert live(*slow).tok_s == 1.0
    assert live(*slow, *fast).tok_s == pytest.approx(10.0)
    assert live((Channel.ANSWER, 0.0), (Channel.ANSWER, 20.0)).tok_s == 0.05
