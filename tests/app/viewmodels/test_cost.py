"""The cost of an action in one line."""

from __future__ import annotations

import pytest

from app.viewmodels.chat_state import ChatState
from app.viewmodels.cost import chat_line, cost_line, other_model_cost
from app.viewmodels.reading import ToRead
from engine.reading_pace import ReadingTime
from engine.usage import PromptPlan, Reason, ReasonKind

SHORT = ReadingTime(0.2, 0.18, 0.22)
LONG = ReadingTime(48, 46, 50)
AGAIN = PromptPlan(
    prompt_tokens=14_310,
    restored=0,
    replayed=14_300,
    read=10,
    reasons=(
        Reason(kind=ReasonKind.SYSTEM_CHANGED, num_tokens=14_300, at=0, text="", is_again=True),
        Reason(kind=ReasonKind.NEW_MESSAGE, num_tokens=10, at=14_300, text=""),
    ),
)


@pytest.mark.parametrize(
    ("to_read", "line"),
    [
        (ToRead(0, num_prompt=900), "Instant"),
        (ToRead(24, SHORT, num_prompt=9_000), "Instant"),
        (ToRead(24, num_prompt=9_000), "Reads 24 tokens"),  # nothing was measured
        (ToRead(24, SHORT, num_prompt=9_000, is_shared=True), "Reads 24 tokens, about 1 s"),
        (ToRead(0, num_prompt=900, is_shared=True), "Reads nothing"),
        (ToRead(212, ReadingTime(1, 0.9, 1.2), num_prompt=9_000), "Reads 212 tokens, about 1 s"),
        (ToRead(14_310, LONG, num_prompt=14_310), "Reads all 14,310 tokens, about 48 s"),
        (ToRead(40, LONG, num_prompt=40), "Reads 40 tokens, about 48 s"),
        (ToRead(900, ReadingTime(30, 20, 45), num_prompt=9_000), "Reads 900 tokens, 20 to 45 s"),
        (
            ToRead(14_310, LONG, num_prompt=14_310, plan=AGAIN),
            "Reads all 14,310 tokens, about 48 s: the system prompt changed",
        ),
        (
            ToRead(24, SHORT, num_prompt=9_000, num_on_disk=8_976),
            "Restores 8,976 tokens from disk · reads 24 tokens, about 1 s",
        ),
        (
            ToRead(0, None, num_prompt=9_000, num_on_disk=9_000),
            "Restores 9,000 tokens from disk · reads nothing",
        ),
    ],
)
def test_line_names_what_is_read_and_the_time(to_read: ToRead, line: str) -> None:
    assert cost_line(to_read) == line


def test_chat_to_be_read_has_its_tokens_even_if_reading_is_instant() -> None:
    instant = ToRead(24, ReadingTime(0.02, 0.01, 0.03), num_prompt=24)
    assert cost_line(instant) == "Instant"
    assert chat_line(ChatState.UNREAD, instant) == "To be read · Reads 24 tokens"
    assert chat_line(ChatState.MEMORY, instant) == "In memory · Instant"
    long = ToRead(14_310, LONG, num_prompt=14_310)
    assert chat_line(ChatState.UNREAD, long) == "To be read · Reads all 14,310 tokens, about 48 s"


def test_few_tokens_on_disk_are_not_mentioned() -> None:
    assert cost_line(ToRead(0, num_on_disk=1)) == "Instant"
    assert cost_line(ToRead(0, num_on_disk=93)) == "Restores 93 tokens from disk · reads nothing"


def test_other_model_reads_a_long_chat() -> None:
    sentence = "A model that has not read this chat first reads about 14,000 tokens."
    assert other_model_cost(14_310, 2) == sentence
    assert other_model_cost(14_310, 1) == "", "there is no other model"
    assert other_model_cost(200, 2) == other_model_cost(None, 2) == ""
