"""The sentence above an answer: where its context came from, or what is being waited for. Pure.

"Nothing re-read" is said exactly when the engine counted no replayed token.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.viewmodels import figures
from app.viewmodels.transcript import StateKind, StateLine
from engine.types import PromptPlan


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
    """The prompt is being fed."""

    done: int
    total: int
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
            text = "Starting the engine · a few seconds, once per start"
            return StateLine(StateKind.WAITING, text)
        case Loading():
            return _loading(phase)
        case Waiting(ahead=ahead):
            return StateLine(StateKind.WAITING, _waiting_text(ahead))
        case Reading():
            return _reading(phase)
        case Planned():
            return _planned(phase)


def _loading(phase: Loading) -> StateLine:
    share = figures.share(phase.loaded_bytes, phase.total_bytes)
    text = f"Loading {phase.name} · {figures.percent(phase.fraction)} · {share}"
    return StateLine(StateKind.WAITING, text, phase.fraction)


def _waiting_text(ahead: int) -> str:
    if ahead == 0:
        return "Waiting"
    return "Waiting · 1 answer ahead" if ahead == 1 else f"Waiting · {ahead} answers ahead"


def _reading(phase: Reading) -> StateLine:
    text = f"Reading {figures.count(phase.done)} of {figures.tokens(phase.total)}"
    if phase.eta_s is not None and phase.done < phase.total:
        text += f" · about {figures.seconds(phase.eta_s)} left"
    return StateLine(StateKind.MUST_READ, text, phase.done / max(1, phase.total))


def _planned(phase: Planned) -> StateLine:
    plan = phase.plan
    why = tuple(reason.text for reason in plan.reasons)
    took = "" if phase.prefill_ms is None else f" in {figures.milliseconds(phase.prefill_ms)}"
    if plan.replayed > 0:
        text = f"Replayed {figures.tokens(plan.replayed)} · read {figures.count(plan.read)}{took}"
        return StateLine(StateKind.REPLAYED, text, details=why)
    if plan.restored > 0:
        restored = figures.tokens(plan.restored)
        speed = figures.milliseconds(phase.restore_ms)
        text = f"Restored {restored} in {speed}, nothing re-read"
        return StateLine(StateKind.INSTANT, text, details=why)
    text = f"Read {figures.tokens(plan.read)}{took}"
    return StateLine(StateKind.MUST_READ, text, details=why)
