from __future__ import annotations

from dataclasses import replace

import pytest

from app.viewmodels.state_line import (
    Importing,
    Loading,
    Phase,
    Planned,
    Preparing,
    Reading,
    StateKind,
    StateLine,
    Waiting,
    state_line,
)
from engine.types import PromptPlan, Reason, ReasonKind


def planned(
    *, restored: int = 0, replayed: int = 0, read: int = 0, prefill_ms: float | None = None
) -> Planned:
    plan = PromptPlan(
        prompt_tokens=restored + replayed + read, restored=restored, replayed=replayed, read=read
    )
    return Planned(plan=plan, restore_ms=6.2, prefill_ms=prefill_ms)


@pytest.mark.parametrize(
    ("phase", "line"),
    [
        (
            planned(restored=12_431, read=24),
            StateLine(StateKind.INSTANT, "Restored 12,431 tokens in 6 ms, nothing re-read"),
        ),
        (
            planned(restored=1, read=24),
            StateLine(
                StateKind.INSTANT, "Restored 1 token in 6 ms, nothing re-read", is_minor=True
            ),
        ),
        (
            planned(restored=2_047, replayed=1, prefill_ms=358),
            StateLine(StateKind.INSTANT, "Restored 2,047 tokens in 6 ms, 1 re-read"),
        ),
        (
            planned(replayed=1, prefill_ms=358),
            StateLine(StateKind.READ, "Read 1 token in 358 ms", is_minor=True),
        ),
        (
            planned(read=24, prefill_ms=210),
            StateLine(StateKind.READ, "Read 24 tokens in 210 ms", is_minor=True),
        ),
        (planned(read=24), StateLine(StateKind.READ, "Read 24 tokens", is_minor=True)),
        (
            planned(read=24, prefill_ms=2000),
            StateLine(StateKind.READ, "Read 24 tokens in 2.0 s"),
        ),
        (
            planned(restored=500, read=24, prefill_ms=2000),
            StateLine(StateKind.READ, "Read 24 tokens in 2.0 s"),
        ),
        (planned(read=2400), StateLine(StateKind.READ, "Read 2,400 tokens")),
        (
            planned(restored=12_000, replayed=212, read=24, prefill_ms=1234),
            StateLine(StateKind.REPLAYED, "Read 236 tokens in 1.2 s, 212 of them again"),
        ),
        (
            planned(replayed=12_000, read=24, prefill_ms=95_000),
            StateLine(StateKind.REPLAYED, "Read 12,024 tokens in 2 min, 12,000 of them again"),
        ),
        (
            planned(replayed=451, read=6, prefill_ms=200),
            StateLine(
                StateKind.REPLAYED, "Read 457 tokens in 200 ms, 451 of them again", is_minor=True
            ),
        ),
        (
            Reading(done=0, total=24, replayed=0, eta_s=None),
            StateLine(StateKind.READ, "Reading 0 of 24 tokens", 0.0, can_stop=True, is_minor=True),
        ),
        (
            Reading(done=0, total=500, replayed=0, eta_s=4),
            StateLine(
                StateKind.READ, "Reading 0 of 500 tokens · about 4 s left", 0.0, can_stop=True
            ),
        ),
        (
            Reading(done=4096, total=12_431, replayed=300, eta_s=9.2),
            StateLine(
                StateKind.REPLAYED,
                "Reading 4,096 of 12,431 tokens · about 9 s left",
                4096 / 12_431,
                can_stop=True,
            ),
        ),
        (
            Reading(done=0, total=5000, replayed=0, eta_s=None),
            StateLine(StateKind.READ, "Reading 0 of 5,000 tokens", 0.0, can_stop=True),
        ),
        (Waiting(0), StateLine(StateKind.WAITING, "Waiting")),
        (Waiting(1), StateLine(StateKind.WAITING, "Waiting · 1 answer ahead")),
        (Waiting(3), StateLine(StateKind.WAITING, "Waiting · 3 answers ahead")),
        (
            Loading(
                name="Qwen3.5 9B",
                fraction=0.62,
                loaded_bytes=3_100_000_000,
                total_bytes=5_200_000_000,
            ),
            StateLine(StateKind.WAITING, "Loading Qwen3.5 9B · 62% · 3.1 of 5.2 GB", 0.62),
        ),
        (
            Importing(),
            StateLine(StateKind.WAITING, "Starting the engine · takes a few seconds"),
        ),
        (Preparing("Looking for models"), StateLine(StateKind.WAITING, "Looking for models")),
    ],
)
def test_state_line_has_the_expected_text_in_each_phase(phase: Phase, line: StateLine) -> None:
    assert replace(state_line(phase), short="") == line


@pytest.mark.parametrize("restored", [0, 1, 5000])
@pytest.mark.parametrize("replayed", [0, 1, 5000])
@pytest.mark.parametrize("read", [0, 1, 5000])
def test_state_line_says_nothing_re_read_only_without_replayed_tokens(
    restored: int, replayed: int, read: int
) -> None:
    line = state_line(planned(restored=restored, replayed=replayed, read=read))
    assert ("nothing re-read" in line.text) == (replayed == 0 and restored > 0)
    assert (line.kind is StateKind.REPLAYED) == (replayed == 5000)
    assert line.is_minor == (max(restored, replayed, read) < 5000)


def test_state_line_says_that_tokens_came_from_disk() -> None:
    plain = planned(restored=12_431, read=24)
    plan = replace(plain.plan, restored_disk=12_000)
    line = state_line(Planned(plan=plan, restore_ms=210.0))
    assert line.kind is StateKind.ON_DISK
    assert line.text == "Restored 12,431 tokens from disk in 210 ms, nothing re-read"


def test_state_line_names_the_cause_of_most_replayed_tokens() -> None:
    reasons = tuple(
        Reason(kind=kind, num_tokens=num_tokens, at=0, text="A sentence.")
        for kind, num_tokens in (
            (ReasonKind.NEW_MESSAGE, 900),
            (ReasonKind.EDITED_MESSAGE, 51),
            (ReasonKind.SYSTEM_CHANGED, 400),
        )
    )
    plain = planned(replayed=451, read=906, prefill_ms=26_000)
    line = state_line(replace(plain, plan=replace(plain.plan, reasons=reasons)))
    assert line.text == ("Read 1,357 tokens in 26 s, 451 of them again: the system prompt changed")


def test_state_line_of_a_chat_larger_than_the_memory_names_that_cause() -> None:
    reason = Reason(kind=ReasonKind.CHAT_TOO_LARGE, num_tokens=451, at=9, text="A sentence.")
    plain = planned(restored=9, replayed=451, read=906, prefill_ms=26_000)
    line = state_line(replace(plain, plan=replace(plain.plan, reasons=(reason,))))
    assert line.text.endswith("451 of them again: the chat is larger than the memory for chats")


@pytest.mark.parametrize(("restored", "replayed"), [(0, 0), (9, 0), (9, 5)])
def test_reasons_appear_in_details_and_not_in_the_text(restored: int, replayed: int) -> None:
    reasons = [
        Reason(kind=ReasonKind.NEW_MESSAGE, num_tokens=24, at=at, text=f"Message {at} is new.")
        for at in (3, 4)
    ]
    plain = planned(restored=restored, replayed=replayed, read=24)
    line = state_line(replace(plain, plan=replace(plain.plan, reasons=tuple(reasons))))
    assert replace(line, details=()) == state_line(plain)
    assert line.explained == f"{line.text}\nMessage 3 is new.\nMessage 4 is new."
