"""The state line above an answer: the tokens that were spared and read, and the time of the wait.

A Phase (phases.py) is the current stage of an answer. state_line() turns a phase into a text, a
kind and details. The line of a planned answer has up to three clauses:

    spared   Restored 12,431 tokens | ... from disk | ..., 9,000 from disk
    read     nothing read                                 every token was restored
             read 24 new tokens                           no token was read before
             read 25 tokens                               a few were read before, or the end
             read 3,412 tokens: CAUSE                     most were read because of a change
             read 332 tokens, 307 of them again: CAUSE    many were read before
             read 400 tokens again: CAUSE                 all were read before
             read 4,096 of 61,909 tokens, then stopped
    wait     first word after 0.4 s | ..., 12 s of it waiting to begin
             first word after 9 s, 8 s of it loading the model

"Again" stands only for tokens that this app had read before (PromptPlan.replayed). The kind decides
the colour, and the tooltip shows the details:

    INSTANT, ON_DISK   most tokens were restored, and the first word came within LONG_WAIT_MS
    AVOIDABLE          a long wait for tokens read again, which more room for chats avoids: the line
                       has a link to the settings
    READ               all other lines

A READ or AVOIDABLE line about tokens that were fed has a link to the window that explains them.

A line about few tokens and a short wait is minor: it is not shown above the answer, and stands only
in the tooltip below it. No Qt, no I/O.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from enum import StrEnum

from app.viewmodels import figures
from app.viewmodels.phases import (
    Importing,
    Loading,
    Phase,
    Planned,
    Preparing,
    Reading,
    Stopping,
    Waiting,
)
from app.words import models, state as words, units
from engine.usage import PromptPlan, ReasonKind

# A line is minor if fewer tokens were restored and to be fed, and the wait was shorter than
# LONG_MS.
MANY_TOKENS = 1000
LONG_MS = 1000
LONG_WAIT_MS = 2000  # after a longer wait for the first word, a line is never green
# Fewer tokens that were read again are not mentioned.
FEW_TOKENS = 100
_MAX_DETAILS = 5  # sentences of the tooltip below the text; some take two rows

_CAUSES = {
    ReasonKind.NOT_KEPT: words.NOT_KEPT,
    ReasonKind.INTERRUPTED: words.INTERRUPTED,
    ReasonKind.MODEL_CHANGED: words.MODEL_CHANGED,
    ReasonKind.EDITED_MESSAGE: words.MESSAGE_CHANGED,
    ReasonKind.SYSTEM_CHANGED: words.SYSTEM_CHANGED,
    ReasonKind.OPTIONS_CHANGED: words.OPTIONS_CHANGED,
    ReasonKind.TOOLS_CHANGED: words.TOOLS_CHANGED,
    ReasonKind.REASONING_DROPPED: words.THINKING_DROPPED,
    ReasonKind.REPLY_RENDERED: words.TEXT_RENDERED,
    ReasonKind.SNAPSHOT_EVICTED: words.MEMORY_NEEDED,
    ReasonKind.STATE_EVICTED: words.MEMORY_NEEDED,
    ReasonKind.CHAT_TOO_LARGE: words.CHAT_TOO_LARGE,
    ReasonKind.MODEL_RELOADED: words.MODEL_RELOADED,
    ReasonKind.FAULT: words.STATE_FAULTY,
}
# Causes that more memory or disk space for chats avoids. NOT_KEPT has others too, such as a crash.
_AVOIDABLE = {
    ReasonKind.SNAPSHOT_EVICTED,
    ReasonKind.STATE_EVICTED,
    ReasonKind.CHAT_TOO_LARGE,
    ReasonKind.MODEL_RELOADED,
}


class StateKind(StrEnum):
    """The meaning of a state line. It decides the colour."""

    WAITING = "waiting"  # nothing is known yet: the model is loading, or requests are queued
    READ = "read"
    INSTANT = "instant"
    ON_DISK = "on_disk"  # as INSTANT, but some of the tokens came from the cache on disk
    AVOIDABLE = "avoidable"


class StateLink(StrEnum):
    """A link at the end of a state line."""

    STOP = "stop"
    WHY = "why"  # to the window that explains what was read
    STORAGE = "storage"  # to the settings of memory and disk space for chats


@dataclass(frozen=True, slots=True)
class StateLine:
    """The content of the line above an answer."""

    kind: StateKind
    text: str
    fraction: float | None = None  # progress, 0 to 1; None if no progress bar is shown
    details: tuple[str, ...] = ()  # sentences for the tooltip, at most _MAX_DETAILS
    links: tuple[StateLink, ...] = ()
    # Shorter texts, for a line that is too narrow for `text`. The first one that fits is shown.
    shorter: tuple[str, ...] = ()
    is_minor: bool = False  # True if the line is too unimportant to stand above the answer

    @property
    def explained(self) -> str:
        """The text and its details, one sentence per line."""
        return "\n".join((self.text, *self.details))


_WORDS = {Importing: words.STARTING, Stopping: words.STOPPING}


def state_line(phase: Phase) -> StateLine:
    match phase:
        case Preparing(text=text):
            return StateLine(StateKind.WAITING, text)
        case Importing() | Stopping():
            return StateLine(StateKind.WAITING, _WORDS[type(phase)])
        case Loading():
            return _loading(phase)
        case Waiting(ahead=ahead, text=text, shorter=shorter):
            text = text or words.waiting(ahead)
            return StateLine(StateKind.WAITING, text, shorter=(shorter,) if shorter else ())
        case Reading():
            return _reading(phase)
        case Planned():
            return _planned(phase)


def _loading(phase: Loading) -> StateLine:
    total = phase.total_bytes
    share = figures.share(phase.loaded_bytes, total) if total else ""
    percent = figures.percent(phase.fraction)
    text = words.loading(name=phase.name, percent=percent, share=share)
    shorter = words.loading(name=phase.name, percent=percent, share=""), models.loading(percent)
    return StateLine(StateKind.WAITING, text, phase.fraction, shorter=shorter)


def _reading(phase: Reading) -> StateLine:
    share = units.share(done=figures.count(phase.done), total=units.tokens(phase.total))
    left = ""
    if phase.eta_s is not None and phase.done < phase.total:
        left = figures.seconds(phase.eta_s)
    if left:
        left = words.up_to(left) if phase.is_shared else words.about(left)
    text = words.reading(share=share, time_left=left)
    percent = figures.percent(phase.done / max(1, phase.total))
    shorter, shortest = (words.reading(share=percent, time_left=time) for time in (left, ""))
    is_soon = phase.eta_s is None or phase.eta_s < LONG_MS / 1000
    return StateLine(
        StateKind.READ,
        text,
        phase.done / max(1, phase.total),
        links=(StateLink.STOP,),
        shorter=(shorter, shortest),
        is_minor=is_soon and phase.total < MANY_TOKENS,
    )


def _planned(phase: Planned) -> StateLine:
    plan = phase.plan
    to_feed = plan.prompt_tokens - plan.restored  # more than were fed if it was stopped
    kind = _kind(phase)
    text, *shorter = _texts(phase, kind)
    return StateLine(
        kind,
        text,
        details=_details(phase),
        links=_links(phase, kind),
        shorter=tuple(shorter),
        is_minor=not (plan.restored_disk or _cause(plan) is ReasonKind.MODEL_CHANGED)
        and max(plan.restored, to_feed) < MANY_TOKENS
        and (phase.wait_ms or 0) < LONG_MS,
    )


def _links(phase: Planned, kind: StateKind) -> tuple[StateLink, ...]:
    """Return the links of a planned answer: none before its first word, nor if all read was new."""
    if kind not in (StateKind.READ, StateKind.AVOIDABLE):
        return ()
    is_over = phase.wait_ms is not None or not phase.plan.is_whole
    why = (StateLink.WHY,) if is_over and _cause(phase.plan) is not None else ()
    return (*why, StateLink.STORAGE) if kind is StateKind.AVOIDABLE else why


def _texts(phase: Planned, kind: StateKind) -> list[str]:
    """Return the text of a planned answer, then shorter ones. Each gives up one more part.

    The texts of an AVOIDABLE line keep the cause, because the link beside it is about the cause.
    """
    is_spared = kind in (StateKind.INSTANT, StateKind.ON_DISK)
    keeps_cause = kind is StateKind.AVOIDABLE
    spared, fed = _spared(phase.plan), _fed(phase.plan)
    fed_alone = fed if keeps_cause else _fed(phase.plan, why=False)
    is_queued = phase.wait_ms is not None and phase.queue_ms > phase.wait_ms / 2
    rows = [(spared, fed, _wait(phase))]
    if is_queued:
        # Reading was not the cause of most of the wait, so no text has the wait without its parts.
        before = _before_reading(phase)
        rows += [
            (spared, fed_alone, _wait(phase)),
            (spared, fed, before),
            (spared, fed_alone, before),
        ]
    else:
        rows.append((spared, fed, _wait(replace(phase, queue_ms=0.0, load_ms=0.0))))
    rows += [
        (spared, fed),
        (spared, fed_alone),
        (spared if is_spared else fed_alone,),
    ]
    if is_spared:
        count = figures.count(phase.plan.restored)
        rows += [
            (words.restored(tokens, from_disk="", is_all=False),)
            for tokens in (units.tokens(phase.plan.restored), count)
        ]
    if keeps_cause:
        rows.append((cause_of(phase.plan),))
    texts = [words.line(clause for clause in row if clause) for row in rows]
    return list(dict.fromkeys(texts))


def _kind(phase: Planned) -> StateKind:
    plan, wait_ms, worked_ms = phase.plan, phase.wait_ms or 0, phase.worked_ms or 0
    if plan.is_whole and plan.restored > plan.num_fed and wait_ms <= LONG_WAIT_MS:
        return StateKind.ON_DISK if plan.restored_disk > 0 else StateKind.INSTANT
    is_again = plan.replayed >= FEW_TOKENS and worked_ms > LONG_WAIT_MS
    return StateKind.AVOIDABLE if is_again and _cause(plan) in _AVOIDABLE else StateKind.READ


def _spared(plan: PromptPlan) -> str:
    """Return the clause about restored tokens; empty if there are none."""
    if plan.restored == 0:
        return ""
    from_disk = figures.count(plan.restored_disk) if plan.restored_disk else ""
    is_all = plan.restored_disk >= plan.restored
    return words.restored(units.tokens(plan.restored), from_disk=from_disk, is_all=is_all)


def _fed(plan: PromptPlan, *, why: bool = True) -> str:
    """Return the clause about the tokens that were read, with the cause if `why` is True."""
    num_fed, planned = plan.num_fed, plan.prompt_tokens - plan.restored
    if not plan.is_whole:
        share = units.share(done=figures.count(num_fed), total=units.tokens(planned))
        return words.stopped(share)
    if num_fed == 0:
        return words.NOTHING_READ
    kind = _cause(plan)
    cause = _CAUSES[kind] if why and kind is not None else ""
    tokens = units.tokens(num_fed)
    if plan.replayed == num_fed >= FEW_TOKENS:
        return words.read_again(tokens, cause)
    if plan.replayed >= FEW_TOKENS:
        return words.read_partly_again(tokens, figures.count(plan.replayed), cause)
    is_end = any(one.kind is ReasonKind.PROMPT_END for one in plan.reasons)
    if kind is not None or plan.replayed > 0 or plan.restored == 0 or is_end:
        return words.read(tokens, cause)
    return words.read_new(num_fed)


def _wait(phase: Planned) -> str:
    """Return the clause about the time until the first word; empty without a word."""
    if phase.wait_ms is None:
        return ""
    loaded, queued = _parts_before_reading(phase)
    return words.first_word(figures.milliseconds(phase.wait_ms), loaded=loaded, queued=queued)


def _before_reading(phase: Planned) -> str:
    """Return the clause about the long parts of the wait before reading; empty if there is none."""
    loaded, queued = _parts_before_reading(phase)
    return words.before_reading(loaded=loaded, queued=queued)


def _parts_before_reading(phase: Planned) -> tuple[str, str]:
    """Return the time without a model and the rest of the time before reading; "" if short."""
    loaded, queued = (
        figures.milliseconds(time_ms) if time_ms >= LONG_MS else ""
        for time_ms in (phase.load_ms, phase.queue_ms - phase.load_ms)
    )
    return loaded, queued


def cause_of(plan: PromptPlan) -> str:
    """Return the words for why many tokens of a plan are read again; empty if there are few."""
    kind = _cause(plan) if plan.replayed >= FEW_TOKENS else None
    return "" if kind is None else _CAUSES[kind]


def _cause(plan: PromptPlan) -> ReasonKind | None:
    """Return why most tokens were read again, or if hardly any were, why most others were read.

    None if they are simply new.
    """
    is_again = plan.replayed >= FEW_TOKENS
    counts = Counter[ReasonKind]()
    for reason in plan.reasons:
        if reason.is_again == is_again:
            counts[reason.kind] += reason.num_tokens
    kind = max(counts, key=counts.__getitem__, default=None)
    return kind if kind in _CAUSES else None


def saved_time(phase: Planned) -> str:
    """Return the sentence about the time saved; empty if it is short or was not measured."""
    saved_s = phase.saved_ms / 1000
    return words.saved(figures.seconds(saved_s)) if saved_s >= 1 else ""


def _details(phase: Planned) -> tuple[str, ...]:
    """Return the lines of the tooltip: durations, and the reasons in the order of the prompt.

    Without room for all reasons, those of the fewest tokens are merged to a sentence at the end.
    """
    plan = phase.plan
    lines: list[str] = []
    if phase.worked_ms is not None:
        restore = figures.milliseconds(phase.restore_ms) if plan.restored else ""
        read_ms = max(0.0, phase.worked_ms - phase.restore_ms)
        read = figures.milliseconds(read_ms) if plan.num_fed else ""
        durations = words.durations(restore=restore, read=read)
        lines.append(f"{durations} {saved_time(phase)}".strip())
    if plan.restored_ahead:
        lines.append(words.read_ahead(units.tokens(plan.restored_ahead)))
    reasons = plan.reasons
    room = _MAX_DETAILS - len(lines)
    if len(reasons) <= room:
        return (*lines, *(one.text for one in reasons))
    largest = set(sorted(range(len(reasons)), key=lambda one: -reasons[one].num_tokens)[: room - 1])
    shown = [one.text for index, one in enumerate(reasons) if index in largest]
    others = [one.num_tokens for index, one in enumerate(reasons) if index not in largest]
    rest = words.more_reasons(len(others), units.tokens(sum(others)))
    return (*lines, *shown, rest)
