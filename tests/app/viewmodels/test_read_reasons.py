"""The parts and reasons that the window "Why Was This Read?" shows, from plans of all kinds."""

from __future__ import annotations

import pytest

from app.viewmodels.phases import Planned
from app.viewmodels.read_reasons import (
    AdviceFacts,
    PromptPart,
    ReadAdvice,
    ReadReport,
    Remedy,
    TokenOrigin,
    read_report,
)
from app.words import reasons as words
from engine.usage import PromptPlan, Reason, ReasonKind

# Advice for each kind while the settings are as at first: disk on, nothing kept.
NOTHING = ReadAdvice()
ROOM = ReadAdvice(words.KEEP_READY, (Remedy.KEEP_READY, Remedy.STORAGE))
ADVICE = {
    ReasonKind.NEW_CONVERSATION: NOTHING,
    ReasonKind.NEW_MESSAGE: NOTHING,
    ReasonKind.NOT_KEPT: NOTHING,
    ReasonKind.INTERRUPTED: NOTHING,
    ReasonKind.MODEL_CHANGED: ReadAdvice(words.SAME_MODEL),
    ReasonKind.EDITED_MESSAGE: NOTHING,
    ReasonKind.ADDED_TEXT: NOTHING,
    ReasonKind.SYSTEM_CHANGED: ReadAdvice(words.PROMPT_FIRST),
    ReasonKind.OPTIONS_CHANGED: ReadAdvice(words.OPTIONS_FIRST),
    ReasonKind.TOOLS_CHANGED: NOTHING,
    ReasonKind.REASONING_DROPPED: NOTHING,
    ReasonKind.REPLY_RENDERED: NOTHING,
    ReasonKind.SNAPSHOT_EVICTED: ROOM,
    ReasonKind.STATE_EVICTED: ROOM,
    ReasonKind.CHAT_TOO_LARGE: ReadAdvice(words.LARGER_ROOM),
    ReasonKind.MODEL_RELOADED: ReadAdvice(words.STAY_LOADED),
    ReasonKind.PROMPT_END: NOTHING,
    ReasonKind.FAULT: NOTHING,
}


def reason(
    kind: ReasonKind, num_tokens: int = 10, *, message: int | None = None, again: bool = True
) -> Reason:
    return Reason(kind=kind, num_tokens=num_tokens, at=0, text="", is_again=again, message=message)


def report_of(
    *reasons: Reason, facts: AdviceFacts | None = None, unread: int = 0, saved_ms: float = 0.0
) -> ReadReport:
    replayed = sum(one.num_tokens for one in reasons if one.is_again)
    read = sum(one.num_tokens for one in reasons) - replayed
    plan = PromptPlan(
        prompt_tokens=900 + replayed + read + unread,
        restored=900,
        restored_disk=200,
        restored_ahead=30,
        replayed=replayed,
        read=read,
        reasons=reasons,
    )
    phase = Planned(plan=plan, restore_ms=6.2, wait_ms=400.0, saved_ms=saved_ms)
    return read_report(phase, facts or AdviceFacts())


@pytest.mark.parametrize("kind", ReasonKind)
def test_each_kind_has_a_sentence_and_the_advice_that_is_true_for_it(kind: ReasonKind) -> None:
    (row,) = report_of(reason(kind)).rows
    assert row.sentence.endswith(".")
    assert row.advice == ADVICE[kind]


@pytest.mark.parametrize(
    ("kind", "facts", "advice"),
    [
        (
            ReasonKind.NOT_KEPT,
            AdviceFacts(is_disk_off=True),
            ReadAdvice(words.DISK_IS_OFF, (Remedy.STORAGE,)),
        ),
        (
            ReasonKind.MODEL_RELOADED,
            AdviceFacts(is_disk_off=True),
            ReadAdvice(f"{words.STAY_LOADED} {words.DISK_IS_OFF}", (Remedy.STORAGE,)),
        ),
        (
            ReasonKind.STATE_EVICTED,
            AdviceFacts(is_kept_ready=True),
            ReadAdvice(words.IS_KEPT_READY, (Remedy.STORAGE,)),
        ),
        (
            ReasonKind.REASONING_DROPPED,
            AdviceFacts(can_keep_thinking=True),
            ReadAdvice(words.KEEP_THINKING, (Remedy.KEEP_THINKING,)),
        ),
        (
            ReasonKind.REASONING_DROPPED,
            AdviceFacts(can_keep_thinking=True, keeps_thinking=True),
            ReadAdvice(words.THINKING_IS_KEPT),
        ),
        (ReasonKind.REASONING_DROPPED, AdviceFacts(keeps_thinking=True), NOTHING),
        (ReasonKind.CHAT_TOO_LARGE, AdviceFacts(), ReadAdvice(words.LARGER_ROOM)),
    ],
)
def test_advice_depends_on_the_settings(
    kind: ReasonKind, facts: AdviceFacts, advice: ReadAdvice
) -> None:
    (row,) = report_of(reason(kind), facts=facts).rows
    assert row.advice == advice


def test_parts_are_the_counters_of_the_plan_without_empty_ones() -> None:
    again = reason(ReasonKind.STATE_EVICTED, 40)
    first = reason(ReasonKind.NEW_MESSAGE, 7, again=False)
    report = report_of(again, first, unread=3)
    assert report.heading == "The prompt of this answer has 950 tokens."
    assert report.parts == (
        PromptPart(TokenOrigin.MEMORY, 700),
        PromptPart(TokenOrigin.DISK, 200),
        PromptPart(TokenOrigin.AGAIN, 40),
        PromptPart(TokenOrigin.FIRST, 7),
        PromptPart(TokenOrigin.LEFT, 3),
    )
    assert [part.label for part in report.parts] == [
        "700 tokens restored from memory",
        "200 tokens restored from disk",
        "40 tokens read again",
        "7 tokens read for the first time",
        "3 tokens not read, because the answer was stopped",
    ]
    assert [part.origin for part in report_of().parts] == [TokenOrigin.MEMORY, TokenOrigin.DISK]


def test_reasons_with_the_same_sentence_share_a_row_with_all_their_messages() -> None:
    rows = report_of(
        reason(ReasonKind.SNAPSHOT_EVICTED, 40, message=1),
        reason(ReasonKind.EDITED_MESSAGE, 5, message=3),
        reason(ReasonKind.STATE_EVICTED, 2, message=2),
        reason(ReasonKind.STATE_EVICTED, 1, message=1),
        reason(ReasonKind.EDITED_MESSAGE, 6, message=3, again=False),
        reason(ReasonKind.NEW_MESSAGE, 8, again=False),
    ).rows
    assert [(row.title, row.messages) for row in rows] == [
        ("43 tokens read again", (1, 2)),
        ("5 tokens read again", (3,)),
        ("6 tokens read", (3,)),
        ("8 tokens read", ()),  # a plan of an earlier version names no message
    ]


def test_notes_have_the_durations_and_the_time_saved_if_it_is_a_second() -> None:
    notes = report_of(saved_ms=47_600.0).notes
    assert notes == (
        "Nothing was read: the whole prompt was restored.",
        "Restored in 6 ms.",
        "30 tokens of those restored were read ahead, before you asked.",
        "Saved about 48 s of reading.",
    )
    assert not any("Saved" in note for note in report_of(saved_ms=900.0).notes)
    assert "Nothing was read" not in report_of(unread=5).notes[0]
