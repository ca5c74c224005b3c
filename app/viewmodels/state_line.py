"""The state line above an answer: where its context came from, or the reason for a wait.

A Phase is the last thing known about an answer: the model is loading, the request is queued, the
prompt is being fed, or the engine has planned which tokens to restore and which to feed.
state_line() turns a phase into the text, its kind (for the colour) and details (for the tooltip).
The text has "nothing re-read" only if the engine restored tokens and counted no replayed token.
No Qt, no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.viewmodels import figures
from app.words import state as words, units
from engine.types import PromptPlan


class StateKind(StrEnum):
    """The origin of an answer's context. It decides the colour of the line."""

    WAITING = "waiting"  # origin not known yet: a model is loading, or other answers come first
    READ = "read"  # only new tokens were fed, those of the message itself
    INSTANT = "instant"  # restored from memory, and no token replayed
    ON_DISK = "on_disk"  # restored from disk; no phase has this kind yet
    REPLAYED = "replayed"  # tokens were fed that had been processed before


@dataclass(frozen=True, slots=True)
class StateLine:
    """One line above an answer."""

    kind: StateKind
    text: str
    fraction: float | None = None  # 0 to 1: adds a progress bar
    details: tuple[str, ...] = ()  # sentences for the tooltip: why tokens were fed
    can_stop: bool = False  # the line ends with a Stop button
    short: str = ""  # shown instead of the text if the line is too narrow

    @property
    def explained(self) -> str:
        """The text and its details, one sentence per line."""
        return "\n".join((self.text, *self.details))


@dataclass(frozen=True, slots=True)
class Preparing:
    """Phase: the app searches for models or unpacks the demo model. `text` says which."""

    text: str


@dataclass(frozen=True, slots=True)
class Importing:
    """Phase: the engine imports its libraries, once per start of the app."""


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

    ahead: int  # number of answers that come first


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Phase: the engine feeds the prompt. Numbers are tokens."""

    done: int
    total: int  # tokens to feed, without restored ones
    replayed: int  # tokens of the total that were processed before
    eta_s: float | None  # seconds left; None if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Phase: the engine has reported how many tokens it restores, replays and reads."""

    plan: PromptPlan
    restore_ms: float
    prefill_ms: float | None = None  # None until all tokens are fed


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
    kind = StateKind.REPLAYED if phase.replayed else StateKind.READ
    return StateLine(kind, text, phase.done / max(1, phase.total), can_stop=True)


def _planned(phase: Planned) -> StateLine:
    plan = phase.plan
    why = tuple(reason.text for reason in plan.reasons)
    time = "" if phase.prefill_ms is None else figures.milliseconds(phase.prefill_ms)
    if plan.replayed > 0:
        text = words.replayed(
            tokens=units.tokens(plan.replayed), read_too=figures.count(plan.read), time=time
        )
        return StateLine(StateKind.REPLAYED, text, details=why)
    if plan.restored > 0:
        speed = figures.milliseconds(phase.restore_ms)
        text = words.restored(tokens=units.tokens(plan.restored), time=speed)
        return StateLine(StateKind.INSTANT, text, details=why, short=words.NOTHING_REREAD)
    text = words.read(tokens=units.tokens(plan.read), time=time)
    return StateLine(StateKind.READ, text, details=why)
