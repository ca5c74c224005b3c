from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from app.viewmodels.phases import Importing, Loading, Phase, Planned, Preparing, Reading, Waiting
from app.viewmodels.state_line import StateKind, StateLine, StateLink, state_line
from engine.usage import PromptPlan, Reason, ReasonKind

SENTENCE = "A sentence."


def reason(kind: ReasonKind, num_tokens: int, *, again: bool = False) -> Reason:
    return Reason(kind=kind, num_tokens=num_tokens, at=0, text=SENTENCE, is_again=again)


def planned(
    *reasons: Reason,
    restored: int = 0,
    disk: int = 0,
    replayed: int = 0,
    read: int = 0,
    unread: int = 0,
    queue_ms: float = 0,
    wait_ms: float | None = None,
) -> Planned:
    plan = PromptPlan(
        prompt_tokens=restored + replayed + read + unread,
        restored=restored,
        restored_disk=disk,
        replayed=replayed,
        read=read,
        reasons=reasons,
    )
    return Planned(plan=plan, restore_ms=6.2, queue_ms=queue_ms, wait_ms=wait_ms)


def new(num_tokens: int) -> Reason:
    return reason(ReasonKind.NEW_MESSAGE, num_tokens)


def again(kind: ReasonKind, num_tokens: int) -> Reason:
    return reason(kind, num_tokens, again=True)


# Lines of planned answers: the phase, the kind, and the text. A text with "(minor)" is not shown above the
# answer.
_LINES = {
    "first message": (
        planned(reason(ReasonKind.NEW_CONVERSATION, 24), read=24, wait_ms=310),
        StateKind.READ,
        "Read 24 tokens · first word after 310 ms (minor)",
    ),
    "long first message": (
        planned(reason(ReasonKind.NEW_CONVERSATION, 2400), read=2400, wait_ms=7100),
        StateKind.READ,
        "Read 2,400 tokens · first word after 7.1 s",
    ),
    "before the first word": (planned(new(2400), read=2400), StateKind.READ, "Read 2,400 tokens"),
    "next message": (
        planned(new(24), restored=12_431, read=24, wait_ms=400),
        StateKind.INSTANT,
        "Restored 12,431 tokens · read 24 new tokens · first word after 400 ms",
    ),
    "one new token": (
        planned(new(1), restored=5000, read=1, wait_ms=9),
        StateKind.INSTANT,
        "Restored 5,000 tokens · read 1 new token · first word after 9 ms",
    ),
    "short chat": (
        planned(new(24), restored=90, read=24, wait_ms=400),
        StateKind.INSTANT,
        "Restored 90 tokens · read 24 new tokens · first word after 400 ms (minor)",
    ),
    "everything restored": (
        planned(restored=12_431, wait_ms=9),
        StateKind.INSTANT,
        "Restored 12,431 tokens · nothing read · first word after 9 ms",
    ),
    "a few read again": (
        planned(again(ReasonKind.SNAPSHOT_EVICTED, 1), restored=2047, replayed=1, wait_ms=358),
        StateKind.INSTANT,
        ("Restored 2,047 tokens · read 1 token · "
        "first word after 358 ms"),
    ),
    "from disk": (
        planned(new(24), restored=12_431, disk=12_431, read=24, wait_ms=600),
        StateKind.ON_DISK,
        "Restored 12,431 tokens from disk · read 24 new tokens · first word after 600 ms",
    ),
    "partly from disk": (
        planned(new(24), restored=12_431, disk=9000, read=24, wait_ms=600),
        StateKind.ON_DISK,
        "Restored 12,431 tokens, 9,000 from disk · read 24 new tokens · first word after 600 ms",
    ),
    "restored, but a long wait": (
        planned(new(900), restored=12_431, read=900, wait_ms=2100),
        StateKind.READ,
        "Restored 12,431 tokens · read 900 new tokens · first word after 2.1 s",
    ),
    "waited for another answer": (
        planned(new(12), restored=69, read=12, queue_ms=25_200, wait_ms=25_800),
        StateKind.READ,
        ("Restored 69 tokens · read 12 new tokens · first word after 26 s, 25 s of it"
        " waiting to begin"),
    ),
    "waited for the model": (
        planned(new(24), restored=12_431, disk=12_431, read=24, queue_ms=12_000, wait_ms=12_400),
        StateKind.READ,
        ("Restored 12,431 tokens from disk · read 24 new tokens · first word after 12 s, 12 s of it"
        " waiting to begin"),
    ),
    "start of a long message edited": (
        planned(
            reason(ReasonKind.EDITED_MESSAGE, 3412), restored=31, read=3412, wait_ms=60_000
        ),
        StateKind.READ,
        "Restored 31 tokens · read 3,412 tokens: a message changed · first word after 60 s",
    ),
    "restart, the end was not kept": (
        planned(
            again(ReasonKind.NOT_KEPT, 307), new(25), restored=7481, disk=7481, replayed=307,
            read=25, wait_ms=1500,
        ),
        StateKind.ON_DISK,
        ("Restored 7,481 tokens from disk · read 332 tokens, 307 of them again: their state was not"
        " kept · first word after 1.5 s"),
    ),
    "restart, nothing was kept": (
        planned(
            again(ReasonKind.NOT_KEPT, 12_000), new(24), replayed=12_000, read=24, wait_ms=95_000
        ),
        StateKind.READ,
        "Read 12,024 tokens, 12,000 of them again: their state was not kept · first word after 1 min 35 s",
    ),
    "evicted, but soon read": (
        planned(
            again(ReasonKind.STATE_EVICTED, 1200), new(24), replayed=1200, read=24, wait_ms=1900
        ),
        StateKind.READ,
        ("Read 1,224 tokens, 1,200 of them again: their saved state had to make room · "
        "first word after 1.9 s"),
    ),
    "evicted": (
        planned(
            again(ReasonKind.STATE_EVICTED, 1200), new(24), replayed=1200, read=24, wait_ms=5000
        ),
        StateKind.AVOIDABLE,
        ("Read 1,224 tokens, 1,200 of them again: their saved state had to make room · "
        "first word after 5.0 s"),
    ),
    "evicted, a short read and a long queue": (
        planned(
            again(ReasonKind.STATE_EVICTED, 1200), replayed=1200, queue_ms=4000, wait_ms=5000
        ),
        StateKind.READ,
        ("Read 1,200 tokens again: their saved state had to make room · "
        "first word after 5.0 s, 4.0 s of it waiting to begin"),
    ),
    "larger than the memory": (
        planned(
            again(ReasonKind.CHAT_TOO_LARGE, 4510), new(9), replayed=4510, read=9, wait_ms=26_000
        ),
        StateKind.AVOIDABLE,
        ("Read 4,519 tokens, 4,510 of them again: the chat is larger than the memory for chats · "
        "first word after 26 s"),
    ),
    "another model": (
        planned(
            again(ReasonKind.MODEL_CHANGED, 14_300), new(24), replayed=14_300, read=24,
            wait_ms=48_000,
        ),
        StateKind.READ,
        ("Read 14,324 tokens, 14,300 of them again: another model had read them · "
        "first word after 48 s"),
    ),
    "tools changed": (
        planned(
            again(ReasonKind.TOOLS_CHANGED, 3412), new(24), restored=31, replayed=3412, read=24,
            wait_ms=9000,
        ),
        StateKind.READ,
        ("Restored 31 tokens · read 3,436 tokens, 3,412 of them again: the list of tools changed · "
        "first word after 9.0 s"),
    ),
    "thinking left out by the template": (
        planned(
            again(ReasonKind.REASONING_DROPPED, 607), new(24), restored=5000, replayed=607, read=24,
            wait_ms=3100,
        ),
        StateKind.READ,
        ("Restored 5,000 tokens · read 631 tokens, 607 of them again: the model’s template left out"
        " earlier thinking · first word after 3.1 s"),
    ),
    "continued after a crash": (
        planned(
            again(ReasonKind.INTERRUPTED, 400), restored=5000, disk=5000, replayed=400, wait_ms=900
        ),
        StateKind.ON_DISK,
        ("Restored 5,000 tokens from disk · read 400 tokens again: an answer was cut"
        " off before its state was saved · first word after 900 ms"),
    ),
    "imported chat, stopped while it was read": (
        planned(reason(ReasonKind.NEW_CONVERSATION, 9000), read=9000, unread=52_909),
        StateKind.READ,
        "Read 9,000 of 61,909 tokens, then stopped",
    ),
    "stopped early in a long message": (
        planned(reason(ReasonKind.NEW_CONVERSATION, 745), read=745, unread=1204),
        StateKind.READ,
        "Read 745 of 1,949 tokens, then stopped",
    ),
    "stopped while little was left to read": (
        planned(new(100), restored=31_000, read=100, unread=90),
        StateKind.READ,
        "Restored 31,000 tokens · read 100 of 190 tokens, then stopped",
    ),
    "stopped after a part was restored": (
        planned(new(4096), restored=31, read=4096, unread=8000),
        StateKind.READ,
        "Restored 31 tokens · read 4,096 of 12,096 tokens, then stopped",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", _LINES)
def test_line_of_an_answer_has_spared_read_and_waited_clauses(case: str) -> None:
    phase, kind, text = _LINES[case]
    line = state_line(phase)
    assert (line.kind, line.text + " (minor)" * line.is_minor) == (kind, text)
    assert (StateLink.STORAGE in line.links) == (kind is StateKind.AVOIDABLE)


STOP = StateLink.STOP


@pytest.mark.parametrize(
    ("phase", "links"),
    [
        (planned(new(3_000), read=3_000, wait_ms=400.0), ()),  # all of it was new
        (planned(again(ReasonKind.NOT_KEPT, 500), replayed=500), ()),  # before the first word
        (planned(again(ReasonKind.NOT_KEPT, 500), replayed=500, unread=9), (StateLink.WHY,)),
        (planned(new(24), restored=3_000, read=24, wait_ms=400.0), ()),  # green
        (planned(restored=3_000, wait_ms=5_000.0), ()),  # nothing read
        (
            planned(again(ReasonKind.STATE_EVICTED, 500), replayed=500, wait_ms=5_000.0),
            (StateLink.WHY, StateLink.STORAGE),
        ),
    ],
)
def test_line_that_names_a_cause_links_to_the_reasons(
    phase: Planned, links: tuple[StateLink, ...]
) -> None:
    assert state_line(phase).links == links


def test_tooltip_has_the_time_saved_from_a_second_on() -> None:
    phase = planned(restored=3_000, wait_ms=400.0)
    assert "Saved" not in state_line(replace(phase, saved_ms=999.0)).explained
    explained = state_line(replace(phase, saved_ms=12_400.0)).explained
    assert "Restored in 6 ms. Saved about 12 s of reading." in explained.splitlines()


@pytest.mark.parametrize(
    ("phase", "line"),
    [
        (
            Reading(done=0, total=24, eta_s=None),
            StateLine(StateKind.READ, "Reading 0 of 24 tokens", 0.0, links=(STOP,), is_minor=True),
        ),
        (
            Reading(done=0, total=500, eta_s=4),
            StateLine(
                StateKind.READ, "Reading 0 of 500 tokens · about 4 s left", 0.0, links=(STOP,)
            ),
        ),
        (
            Reading(done=4096, total=12_431, eta_s=9.2),
            StateLine(
                StateKind.READ,
                "Reading 4,096 of 12,431 tokens · about 9 s left",
                4096 / 12_431,
                links=(STOP,),
            ),
        ),
        (
            Reading(done=4096, total=12_431, eta_s=9.2, is_shared=True),
            StateLine(
                StateKind.READ,
                "Reading 4,096 of 12,431 tokens · up to about 9 s left",
                4096 / 12_431,
                links=(STOP,),
            ),
        ),
        (
            Reading(done=0, total=5000, eta_s=None),
            StateLine(StateKind.READ, "Reading 0 of 5,000 tokens", 0.0, links=(STOP,)),
        ),
        (Waiting(0), StateLine(StateKind.WAITING, "Waiting")),
        (Waiting(1), StateLine(StateKind.WAITING, "Waiting · 1 answer ahead")),
        (Waiting(3), StateLine(StateKind.WAITING, "Waiting · 3 answers ahead")),
        (Waiting(1, "Why", "Y"), StateLine(StateKind.WAITING, "Why")),
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
            Loading(name="Qwen3.5 9B", fraction=0.0, loaded_bytes=0, total_bytes=0),
            StateLine(StateKind.WAITING, "Loading Qwen3.5 9B · 0%", 0.0),
        ),
        (
            Importing(),
            StateLine(StateKind.WAITING, "Starting the engine · takes a few seconds"),
        ),
        (Preparing("Looking for models"), StateLine(StateKind.WAITING, "Looking for models")),
    ],
)
def test_line_before_an_answer_has_the_progress(phase: Phase, line: StateLine) -> None:
    found = state_line(phase)
    assert replace(found, shorter=()) == line
    assert all(len(text) <= len(line.text) for text in found.shorter)


def test_line_gives_up_the_wait_first_and_then_all_but_the_main_clause() -> None:
    spared = state_line(planned(new(24), restored=12_431, read=24, wait_ms=400))
    assert spared.shorter == (
        "Restored 12,431 tokens · read 24 new tokens",
        "Restored 12,431 tokens",
        "Restored 12,431",
    )
    partly = state_line(planned(new(24), restored=12_431, disk=9_000, read=24))
    assert partly.shorter[-3:] == (
        "Restored 12,431 tokens, 9,000 from disk",
        "Restored 12,431 tokens",
        "Restored 12,431",
    )
    read = state_line(planned(new(2400), restored=31, read=2400, wait_ms=4000))
    assert read.shorter == ("Restored 31 tokens · read 2,400 new tokens", "Read 2,400 new tokens")


def test_line_gives_up_the_cause_before_what_was_spared() -> None:
    lost = again(ReasonKind.NOT_KEPT, 287)
    line = state_line(planned(lost, restored=1792, replayed=287, wait_ms=19_500, queue_ms=5400))
    assert line.shorter == (
        ("Restored 1,792 tokens · read 287 tokens again: their state was not kept"
        " · first word after 20 s"),
        "Restored 1,792 tokens · read 287 tokens again: their state was not kept",
        "Restored 1,792 tokens · read 287 tokens again",
        "Read 287 tokens again",
    )  # fmt: skip


def test_line_gives_up_the_cause_before_the_parts_of_a_wait_that_tokens_did_not_cause() -> None:
    lost = again(ReasonKind.NOT_KEPT, 287)
    line = state_line(planned(lost, restored=84, replayed=287, wait_ms=19_500, queue_ms=18_000))
    assert line.shorter == (
        "Restored 84 tokens · read 287 tokens again · first word after 20 s, 18 s of it waiting to begin",
        ("Restored 84 tokens · read 287 tokens again: their state was not kept"
        " · 18 s waiting to begin"),
        "Restored 84 tokens · read 287 tokens again · 18 s waiting to begin",
        "Restored 84 tokens · read 287 tokens again: their state was not kept",
        "Restored 84 tokens · read 287 tokens again",
        "Read 287 tokens again",
    )  # fmt: skip


def test_line_with_a_link_keeps_the_cause_that_the_link_is_about() -> None:
    lost = again(ReasonKind.MODEL_RELOADED, 514)
    phase = planned(lost, new(15), replayed=514, read=15, wait_ms=12_000, queue_ms=8300)
    line = state_line(replace(phase, load_ms=8300))
    assert StateLink.STORAGE in line.links
    assert all("the model was reloaded" in text.lower() for text in (line.text, *line.shorter))
    assert line.shorter[-2:] == (
        "Read 529 tokens, 514 of them again: the model was reloaded",
        "The model was reloaded",
    )


def test_line_without_room_keeps_the_time_of_loading_and_leaves_out_short_parts() -> None:
    waited = planned(new(12), restored=84, read=12, wait_ms=9_000, queue_ms=8_000)
    loaded = replace(waited, load_ms=5_000)
    assert (
        "Restored 84 tokens · read 12 new tokens · 5.0 s loading the model, 3.0 s waiting to begin"
        in (state_line(loaded).shorter)
    )
    short = planned(new(12), restored=84, read=12, wait_ms=900, queue_ms=700)
    assert state_line(short).shorter == (
        "Restored 84 tokens · read 12 new tokens", "Restored 84 tokens", "Restored 84",
    )  # fmt: skip


def test_first_line_after_a_restart_or_a_change_of_model_is_shown_also_if_it_is_short() -> None:
    def is_minor(phase: Planned) -> bool:
        return state_line(phase).is_minor

    assert is_minor(planned(restored=80, read=8, wait_ms=400))
    assert not is_minor(planned(restored=80, disk=80, read=8, wait_ms=400))
    changed = reason(ReasonKind.MODEL_CHANGED, 88)
    assert not is_minor(planned(changed, read=88, wait_ms=400))


def test_line_of_a_wait_gives_up_the_numbers_and_keeps_the_percentage() -> None:
    reading = state_line(Reading(done=4096, total=12_431, eta_s=9.2))
    assert reading.shorter == ("Reading 32% · about 9 s left", "Reading 32%")
    loading = Loading(name="Qwen", fraction=0.62, loaded_bytes=3 * 10**9, total_bytes=5 * 10**9)
    assert state_line(loading).shorter == ("Loading Qwen · 62%", "Loading 62%")


_AMOUNTS = (0, 1, 99, 100, 5000)


_WAITS = (None, 1, 2000, 2001, 60_000)


def test_line_is_green_only_if_the_wait_was_spared() -> None:
    for restored, replayed, read, wait_ms in product(_AMOUNTS, _AMOUNTS, _AMOUNTS, _WAITS):
        reasons = again(ReasonKind.STATE_EVICTED, replayed), new(read)
        line = state_line(
            planned(*reasons, restored=restored, replayed=replayed, read=read, wait_ms=wait_ms)
        )
        is_long = wait_ms is not None and wait_ms > 2000
        assert (line.kind is StateKind.INSTANT) == (restored > replayed + read and not is_long)
        assert (line.kind is StateKind.AVOIDABLE) == (replayed >= 100 and is_long)
        assert ("again" in line.text) == (replayed >= 100)
        assert " new token" not in line.text or replayed == 0
        assert ("nothing read" in line.text) == (replayed + read == 0 and restored > 0)


def test_reasons_of_an_earlier_version_give_no_cause() -> None:
    # They do not tell which tokens were read again.
    reasons = new(906), reason(ReasonKind.SYSTEM_CHANGED, 451)
    line = state_line(planned(*reasons, replayed=451, read=906, wait_ms=26_000))
    assert line.text == "Read 1,357 tokens, 451 of them again · first word after 26 s"


def test_tooltip_has_durations_and_reasons() -> None:
    line = state_line(planned(new(24), restored=9, read=24, queue_ms=100, wait_ms=500))
    assert line.explained.splitlines() == [line.text, "Restored in 6 ms, read in 394 ms.", SENTENCE]


def said(kind: ReasonKind, num_tokens: int, text: str) -> Reason:
    return replace(reason(kind, num_tokens), text=text)


def test_tooltip_of_many_reasons_has_six_lines() -> None:
    line = state_line(planned(*(new(10) for _ in range(450)), read=4500, wait_ms=9000))
    lines = line.explained.splitlines()
    assert len(lines) == 6
    assert lines[-1] == "And 447 more reasons: 4,470 tokens."


def test_tooltip_with_all_other_sentences_names_the_reasons() -> None:
    first = said(ReasonKind.MODEL_CHANGED, 510, "Another model.")
    last = said(ReasonKind.NEW_MESSAGE, 15, "A new message.")
    phase = planned(first, last, restored=512, replayed=510, read=15, wait_ms=18_000)
    line = state_line(replace(phase, plan=replace(phase.plan, restored_ahead=512)))
    assert line.details[-2:] == ("Another model.", "A new message.")


def test_tooltip_has_the_reason_of_few_tokens_that_were_read_again() -> None:
    # The line itself says neither "new" nor "again" then.
    first = said(ReasonKind.NOT_KEPT, 96, "Not kept.")
    phase = planned(first, new(15), restored=512, replayed=96, read=15, wait_ms=9000)
    line = state_line(replace(phase, plan=replace(phase.plan, restored_ahead=512)))
    assert "again" not in line.text
    assert "Not kept." in line.details


def test_tooltip_without_room_names_the_largest_reasons_in_the_order_of_the_prompt() -> None:
    counts = (3, 500, 2, 40, 1)
    reasons = [said(ReasonKind.NEW_MESSAGE, one, f"{one} tokens.") for one in counts]
    phase = planned(*reasons, restored=512, read=546, wait_ms=9000)
    line = state_line(replace(phase, plan=replace(phase.plan, restored_ahead=512)))
    assert line.details[2:] == ("500 tokens.", "40 tokens.", "And 3 more reasons: 6 tokens.")
