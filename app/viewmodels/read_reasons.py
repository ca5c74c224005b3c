"""The content of the window that explains why a prompt was read. No Qt, no I/O.

read_report() divides the tokens of a prompt by their origin, with the counters of its PromptPlan.
Each reason of the plan becomes a row: its tokens, a sentence, the messages that it is about, and
what avoids it. Reasons with the same sentence share a row. _REASONS has the sentence and the advice
of each kind. Advice is given only if it is true for the kind and for the present settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from app.viewmodels import figures
from app.viewmodels.phases import Planned
from app.viewmodels.state_line import saved_time
from app.words import reasons as words, state, units
from engine.usage import PromptPlan, Reason, ReasonKind


class TokenOrigin(StrEnum):
    """The parts of a prompt, in the order of the bar."""

    MEMORY = "memory"  # restored from memory
    DISK = "disk"  # restored from disk
    AGAIN = "again"  # read again
    FIRST = "first"  # read for the first time
    LEFT = "left"  # not read, because the answer was stopped


_LABELS = {
    TokenOrigin.MEMORY: words.from_memory,
    TokenOrigin.DISK: words.from_disk,
    TokenOrigin.AGAIN: words.read_again,
    TokenOrigin.FIRST: words.read_first,
    TokenOrigin.LEFT: words.not_read,
}


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of the bar."""

    origin: TokenOrigin
    num_tokens: int

    @property
    def label(self) -> str:
        return _LABELS[self.origin](units.tokens(self.num_tokens))


class Remedy(StrEnum):
    """A button that avoids a reason in the future."""

    KEEP_READY = "keep_ready"  # keep the chat in memory
    KEEP_THINKING = "keep_thinking"  # keep earlier thinking in the prompts of the chat
    STORAGE = "storage"  # open the settings of room for chats


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceFacts:
    """The settings that decide which advice is true."""

    is_kept_ready: bool = False  # the chat is kept in memory
    keeps_thinking: bool = False  # the chat keeps earlier thinking
    can_keep_thinking: bool = (
        False  # the model in use wrote the answer, and its template can keep it
    )
    is_disk_off: bool = False  # no chat is kept on disk, and the settings can change this


@dataclass(frozen=True, slots=True)
class ReadAdvice:
    """Advice that avoids a reason; empty if nothing avoids it."""

    text: str = ""
    remedies: tuple[Remedy, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonRow:
    """The reasons of a prompt that have the same sentence."""

    num_tokens: int
    is_again: bool
    sentence: str
    messages: tuple[int, ...]  # numbers of the messages, each once; 0 is the system prompt
    advice: ReadAdvice

    @property
    def title(self) -> str:
        return words.tokens_read(self.num_tokens, is_again=self.is_again)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReport:
    """The whole content."""

    heading: str
    parts: tuple[PromptPart, ...]  # without empty ones
    notes: tuple[str, ...]  # sentences about durations, tokens read ahead, and the time saved
    rows: tuple[ReasonRow, ...]


def read_report(phase: Planned, facts: AdviceFacts) -> ReadReport:
    plan = phase.plan
    notes: list[str] = []
    if plan.num_fed == 0 and plan.is_whole:
        notes.append(words.NOTHING_READ)
    if plan.restored and phase.wait_ms is not None:
        notes.append(state.durations(restore=figures.milliseconds(phase.restore_ms), read=""))
    if plan.restored_ahead:
        notes.append(state.read_ahead(units.tokens(plan.restored_ahead)))
    if saved := saved_time(phase):
        notes.append(saved)
    return ReadReport(
        heading=words.heading(units.tokens(plan.prompt_tokens)),
        parts=_parts(plan),
        notes=tuple(notes),
        rows=_rows(plan.reasons, facts),
    )


def _parts(plan: PromptPlan) -> tuple[PromptPart, ...]:
    counts = {
        TokenOrigin.MEMORY: plan.restored - plan.restored_disk,
        TokenOrigin.DISK: plan.restored_disk,
        TokenOrigin.AGAIN: plan.replayed,
        TokenOrigin.FIRST: plan.read,
        TokenOrigin.LEFT: plan.prompt_tokens - plan.restored - plan.num_fed,
    }
    return tuple(PromptPart(origin, count) for origin, count in counts.items() if count)


def _rows(reasons: tuple[Reason, ...], facts: AdviceFacts) -> tuple[ReasonRow, ...]:
    merged: dict[tuple[str, bool], list[Reason]] = {}
    for reason in reasons:
        sentence = _REASONS[reason.kind].sentence
        merged.setdefault((sentence, reason.is_again), []).append(reason)
    return tuple(
        ReasonRow(
            num_tokens=sum(one.num_tokens for one in same),
            is_again=is_again,
            sentence=sentence,
            messages=tuple(dict.fromkeys(one.message for one in same if one.message is not None)),
            advice=_REASONS[same[0].kind].advice(facts),
        )
        for (sentence, is_again), same in merged.items()
    )


@dataclass(frozen=True, slots=True)
class _Explanation:
    sentence: str
    advice: Callable[[AdviceFacts], ReadAdvice]


def _nothing(_facts: AdviceFacts) -> ReadAdvice:
    return ReadAdvice()


def _text(text: str) -> Callable[[AdviceFacts], ReadAdvice]:
    return lambda _facts: ReadAdvice(text)


def _disk(facts: AdviceFacts) -> ReadAdvice:
    return ReadAdvice(words.DISK_IS_OFF, (Remedy.STORAGE,)) if facts.is_disk_off else ReadAdvice()


def _loaded(facts: AdviceFacts) -> ReadAdvice:
    disk = _disk(facts)
    return ReadAdvice(f"{words.STAY_LOADED} {disk.text}".strip(), disk.remedies)


def _thinking(facts: AdviceFacts) -> ReadAdvice:
    if not facts.can_keep_thinking:
        return ReadAdvice()
    if facts.keeps_thinking:
        return ReadAdvice(words.THINKING_IS_KEPT)
    return ReadAdvice(words.KEEP_THINKING, (Remedy.KEEP_THINKING,))


def _room(facts: AdviceFacts) -> ReadAdvice:
    if facts.is_kept_ready:
        return ReadAdvice(words.IS_KEPT_READY, (Remedy.STORAGE,))
    return ReadAdvice(words.KEEP_READY, (Remedy.KEEP_READY, Remedy.STORAGE))


_MADE_ROOM = _Explanation(words.MADE_ROOM, _room)
_NEW = _Explanation(words.NEW, _nothing)
_REASONS = {
    ReasonKind.NEW_CONVERSATION: _NEW,
    ReasonKind.NEW_MESSAGE: _NEW,
    ReasonKind.NOT_KEPT: _Explanation(words.NOT_KEPT, _disk),
    ReasonKind.INTERRUPTED: _Explanation(words.INTERRUPTED, _nothing),
    ReasonKind.MODEL_CHANGED: _Explanation(words.MODEL_CHANGED, _text(words.SAME_MODEL)),
    ReasonKind.EDITED_MESSAGE: _Explanation(words.EDITED, _nothing),
    ReasonKind.ADDED_TEXT: _Explanation(words.ADDED, _nothing),
    ReasonKind.SYSTEM_CHANGED: _Explanation(words.SYSTEM_CHANGED, _text(words.PROMPT_FIRST)),
    ReasonKind.OPTIONS_CHANGED: _Explanation(words.OPTIONS_CHANGED, _text(words.OPTIONS_FIRST)),
    ReasonKind.TOOLS_CHANGED: _Explanation(words.TOOLS_CHANGED, _nothing),
    ReasonKind.REASONING_DROPPED: _Explanation(words.THINKING_DROPPED, _thinking),
    ReasonKind.REPLY_RENDERED: _Explanation(words.TEXT_RENDERED, _nothing),
    ReasonKind.SNAPSHOT_EVICTED: _MADE_ROOM,
    ReasonKind.STATE_EVICTED: _MADE_ROOM,
    ReasonKind.CHAT_TOO_LARGE: _Explanation(words.CHAT_TOO_LARGE, _text(words.LARGER_ROOM)),
    ReasonKind.MODEL_RELOADED: _Explanation(words.MODEL_RELOADED, _loaded),
    ReasonKind.PROMPT_END: _Explanation(words.PROMPT_END, _nothing),
    ReasonKind.FAULT: _Explanation(words.FAULTY, _nothing),
}
