"""The sentence above an answer: where its context came from, or what is being waited for. Pure.

"Nothing re-read" is said exactly when the engine counted no replayed token.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from app.viewmodels import figures
from app.words import state as words, units
from engine.types import PromptPlan


class StateKind(StrEnum):
    """What was done with the conversation's state before the answer; decides the colour.

    WAITING says nothing about the state: a model loads, other answers come first. READ is what any
    message needs, its own tokens; only what was known before is REPLAYED.
    """

    WAITING = "waiting"
    READ = "read"
    INSTANT = "instant"
    ON_DISK = "on_disk"
    REPLAYED = "replayed"


@dataclass(frozen=True, slots=True)
class StateLine:
    """One line above an answer. fraction, 0 to 1, adds a progress bar; details are sentences."""

    kind: StateKind
    text: str
    fraction: float | None = None
    details: tuple[str, ...] = ()
    can_stop: bool = False  # Stop stands at its end
    short: str = ""  # what is said where there is no room for the text

    @property
    def explained(self) -> str:
        """All that can be said, a sentence a line."""
        return "\n".join((self.text, *self.details))


@dataclass(frozen=True, slots=True)
class Preparing:
    """The model is being looked for or imported; text says which."""

    text: str


@dataclass(frozen=True, slots=True)
class Importing:
    """The libraries are being imported, once a start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """The weights are being read."""

    name: str
    fraction: float
    loaded_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Other answers come first."""

    ahead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The prompt is being fed: total tokens, of which so many were known before."""

    done: int
    total: int
    replayed: int
    eta_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """The engine has said where the prompt's tokens come from; prefill_ms is known at the end."""

    plan: PromptPlan
    restore_ms: float
    prefill_ms: float | None = None


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
