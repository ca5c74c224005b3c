"""The state line above an answer: the origin of its context, or the reason for a wait.

A Phase is the current stage of an answer: the model is loading, the request is queued, the engine
feeds the prompt, or it has planned which tokens to restore and which to feed. state_line() turns a
phase into a text, a kind and details. The kind decides the colour of the line, and the tooltip
shows the details. The text says "nothing re-read" only if the engine restored tokens and replayed
none. To replay is to feed tokens of earlier messages. A line about few tokens is minor: it is not
shown above the answer, and stands only in the tooltip below it. No Qt, no I/O.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from app.viewmodels import figures
from app.words import state as words, units
from engine.types import PromptPlan, ReasonKind

# A line is minor if fewer tokens were restored, and fewer fed in less than LONG_MS.
MANY_TOKENS = 1000
LONG_MS = 1000
# An answer that feeds fewer tokens of earlier messages again counts as restored.
FEW_TOKENS = 100

_CAUSES = {
    ReasonKind.NEW_CONVERSATION: words.NOT_IN_MEMORY,
    ReasonKind.EDITED_MESSAGE: words.MESSAGE_CHANGED,
    ReasonKind.SYSTEM_CHANGED: words.SYSTEM_CHANGED,
    ReasonKind.OPTIONS_CHANGED: words.OPTIONS_CHANGED,
    ReasonKind.REASONING_DROPPED: words.THINKING_DROPPED,
    ReasonKind.REPLY_RENDERED: words.ANSWER_RENDERED,
    ReasonKind.SNAPSHOT_EVICTED: words.MEMORY_NEEDED,
    ReasonKind.STATE_EVICTED: words.MEMORY_NEEDED,
    ReasonKind.CHAT_TOO_LARGE: words.CHAT_TOO_LARGE,
    ReasonKind.MODEL_RELOADED: words.MODEL_RELOADED,
    ReasonKind.FAULT: words.STATE_FAULTY,
}


class StateKind(StrEnum):
    """The origin of an answer's context. It decides the colour of the state line."""

    WAITING = "waiting"  # the origin is not known yet: the model is loading, or requests are queued
    READ = "read"  # the engine fed only tokens of new messages
    # Tokens came from the cache in memory, and hardly any earlier token was fed again.
    INSTANT = "instant"
    ON_DISK = "on_disk"  # as INSTANT, but some of the tokens came from the cache on disk
    REPLAYED = "replayed"  # the engine fed tokens of earlier messages again


@dataclass(frozen=True, slots=True)
class StateLine:
    """The content of the line above an answer."""

    kind: StateKind
    text: str
    fraction: float | None = None  # progress, 0 to 1; None if no progress bar is shown
    details: tuple[str, ...] = ()  # sentences for the tooltip: the reasons why tokens were fed
    can_stop: bool = False  # True if the line has a Stop button at its end
    short: str = ""  # shorter text, shown if the line is too narrow for `text`
    is_minor: bool = False  # True if the line is too unimportant to stand above the answer

    @property
    def explained(self) -> str:
        """The text and its details, one sentence per line."""
        return "\n".join((self.text, *self.details))


@dataclass(frozen=True, slots=True)
class Preparing:
    """Phase: the app searches for models or unpacks the demo model. `text` describes the work."""

    text: str


@dataclass(frozen=True, slots=True)
class Importing:
    """Phase: the engine imports its libraries. This happens once after the start of the app."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """Phase: the engine loads the weights of the model."""

    name: str
    fraction: float
    loaded_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Phase: the request is queued."""

    ahead: int  # number of answers before this one in the queue


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Phase: the engine feeds the prompt. `done`, `total` and `replayed` are numbers of tokens."""

    done: int
    total: int  # number of tokens to feed; restored tokens do not count
    replayed: int  # number of tokens in `total` that belong to earlier messages
    eta_s: float | None  # estimated seconds until all tokens are fed; None if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Phase: the engine has reported how many tokens it restores, replays and reads."""

    plan: PromptPlan
    restore_ms: float
    prefill_ms: float | None = None  # duration of the prefill; None until all tokens are fed


Phase = Preparing | Importing | Loading | Waiting | Reading | Planned


def state_line(phase: Phase) -> StateLine:
    match phase:
        case Preparing(text=text):
            return StateLine(StateKind.WAITING, text)
        case Importing():
            return StateLine(StateKind.WAITING, words.STARTING)
        case Loading():
            return _loading(phase)
        case Waiting(ahead=ahead):
            return StateLine(StateKind.WAITING, words.waiting(ahead))
        case Reading():
            return _reading(phase)
        case Planned():
            return _planned(phase)


def _loading(phase: Loading) -> StateLine:
    share = figures.share(phase.loaded_bytes, phase.total_bytes)
    text = words.loading(name=phase.name, percent=figures.percent(phase.fraction), share=share)
    return StateLine(StateKind.WAITING, text, phase.fraction)


def _reading(phase: Reading) -> StateLine:
    share = units.share(done=figures.count(phase.done), total=units.tokens(phase.total))
    left = ""
    if phase.eta_s is not None and phase.done < phase.total:
        left = figures.seconds(phase.eta_s)
    text = words.reading(share=share, time_left=left)
    kind = StateKind.REPLAYED if phase.replayed >= FEW_TOKENS else StateKind.READ
    is_soon = phase.eta_s is None or phase.eta_s < LONG_MS / 1000
    return StateLine(
        kind,
        text,
        phase.done / max(1, phase.total),
        can_stop=True,
        is_minor=is_soon and phase.total < MANY_TOKENS,
    )


def _planned(phase: Planned) -> StateLine:
    plan = phase.plan
    num_fed = plan.read + plan.replayed
    is_long = phase.prefill_ms is not None and phase.prefill_ms >= LONG_MS
    is_minor = max(plan.restored, num_fed) < MANY_TOKENS and not is_long
    why = tuple(reason.text for reason in plan.reasons)
    time = "" if phase.prefill_ms is None else figures.milliseconds(phase.prefill_ms)
    if plan.replayed >= FEW_TOKENS:
        text = words.replayed(
            tokens=units.tokens(num_fed),
            time=time,
            again=figures.count(plan.replayed),
            cause=_main_cause(plan),
        )
        return StateLine(StateKind.REPLAYED, text, details=why, is_minor=is_minor)
    if plan.restored > 0 and not (is_long and plan.restored < MANY_TOKENS):
        is_from_disk = plan.restored_disk > 0
        text = words.restored(
            tokens=units.tokens(plan.restored),
            time=figures.milliseconds(phase.restore_ms),
            again=figures.count(plan.replayed) if plan.replayed else "",
            is_from_disk=is_from_disk,
        )
        short = "" if plan.replayed else words.NOTHING_REREAD
        kind = StateKind.ON_DISK if is_from_disk else StateKind.INSTANT
        return StateLine(kind, text, details=why, short=short, is_minor=is_minor)
    text = words.read(tokens=units.tokens(num_fed), time=time)
    return StateLine(StateKind.READ, text, details=why, is_minor=is_minor)


def _main_cause(plan: PromptPlan) -> str:
    """Return why most tokens of earlier messages were fed again; empty if no reason says it."""
    counts = Counter[ReasonKind]()
    for reason in plan.reasons:
        counts[reason.kind] += reason.num_tokens
    again = [kind for kind in counts if kind in _CAUSES]
    return _CAUSES[max(again, key=counts.__getitem__)] if again else ""
