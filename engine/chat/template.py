"""A model's chat template, and which part of its output came from which message.

The template itself is rendered elsewhere (a `Renderer`); here its output is cut into segments, so
that text written by people can be told from text written by the template.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Protocol

from engine.errors import TemplateError
from engine.types import Message, Role


class Renderer(Protocol):
    """Runs a chat template in a sandbox."""

    def render(
        self, messages: Sequence[Message], *, options: Mapping[str, bool], reply_follows: bool
    ) -> str:
        """The prompt text; with reply_follows it ends where the assistant's reply begins.

        options are passed to the template by name; it ignores those that it doesn't know.

        Raises:
            TemplateError: the template refused these messages.
        """
        ...


@dataclass(frozen=True, slots=True)
class Thoughts:
    """What a request asks of a template about reasoning: see Request.thinking and keep_thinking."""

    wanted: bool | None = None
    keep: bool = False


# What templates call the option that leaves the thoughts of earlier replies in the prompt.
_KEEP_SWITCHES: tuple[Mapping[str, bool], ...] = (
    {"preserve_thinking": True},
    {"clear_thinking": False},
    {"truncate_history_thinking": False},
    {"drop_thinking": False},
    {"keep_past_thinking": True},
    {"keep_thinking": True},
)
_NO_SWITCH: Mapping[str, bool] = {}
_THOUGHT = "reasoning of an earlier reply"


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a rendered prompt.

    message is the index of the message that the piece belongs to: for the template's own text
    (is_content False) the message that follows it, or the number of messages for what comes last.
    """

    text: str
    message: int
    is_content: bool
    is_reasoning: bool = False
    token_ids: tuple[int, ...] = ()  # a reply's own ids, which stand for the text


@dataclass(frozen=True, slots=True)
class _Slot:
    """A marker that stood in for a text of a message."""

    marker: str
    message: int
    text: str
    is_reasoning: bool


class ChatTemplate:
    """A renderer, and the names under which it takes what we ask of it. Engine thread only."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer

    @cached_property
    def can_keep_thinking(self) -> bool:
        """Whether a switch of the template leaves thoughts in the prompt that it drops otherwise."""
        return bool(self._keep_switch)

    def render(
        self, messages: Sequence[Message], thoughts: Thoughts, *, reply_follows: bool
    ) -> str:
        """The prompt text; see Renderer."""
        options = dict(self._keep_switch) if thoughts.keep else {}
        if thoughts.wanted is not None:
            options["enable_thinking"] = thoughts.wanted
        return self._renderer.render(messages, options=options, reply_follows=reply_follows)

    @cached_property
    def _keep_switch(self) -> Mapping[str, bool]:
        """The option that makes an earlier reply's reasoning appear; empty if none does or need be."""
        user = Message(role=Role.USER, content="x")
        thought = Message(role=Role.ASSISTANT, content="x", reasoning=_THOUGHT)

        def shows(options: Mapping[str, bool]) -> bool:
            try:
                text = self._renderer.render(
                    [user, thought, user], options=options, reply_follows=True
                )
            except TemplateError:
                return False
            return _THOUGHT in text

        if shows(_NO_SWITCH):
            return _NO_SWITCH
        return next((switch for switch in _KEEP_SWITCHES if shows(switch)), _NO_SWITCH)


def render_segments(
    template: ChatTemplate,
    messages: Sequence[Message],
    thoughts: Thoughts,
    *,
    reply_follows: bool,
) -> list[Segment]:
    """Render messages and say where each message's own text went.

    The template is run twice: on the messages, and on the messages with every text replaced by a
    marker. What lies between the markers is the template's; the first run must agree with it.

    Raises:
        TemplateError: the template refused, or rewrites text so that people's text can't be told
            from its own while it holds control tokens.
    """
    rendered = template.render(messages, thoughts, reply_follows=reply_follows)
    marked, slots = _mark(messages)
    skeleton = template.render(marked, thoughts, reply_follows=reply_follows)
    return _align(rendered, skeleton, slots, messages)


def _mark(messages: Sequence[Message]) -> tuple[list[Message], list[_Slot]]:
    """Messages with markers for their texts; empty texts stay empty, for templates ask about that."""
    everything = "".join(m.content + m.reasoning for m in messages)
    # A private-use character that nobody wrote.
    fence = next(chr(c) for c in count(0xF0000) if chr(c) not in everything)
    marked: list[Message] = []
    slots: list[_Slot] = []
    for index, message in enumerate(messages):
        reasoning = f"{fence}r{index}{fence}" if message.reasoning else ""
        content = f"{fence}c{index}{fence}" if message.content else ""
        if reasoning:
            slots.append(_Slot(reasoning, index, message.reasoning, is_reasoning=True))
        if content:
            slots.append(_Slot(content, index, message.content, is_reasoning=False))
        marked.append(Message(role=message.role, content=content, reasoning=reasoning))
    return marked, slots


def _align(
    rendered: str, skeleton: str, slots: list[_Slot], messages: Sequence[Message]
) -> list[Segment]:
    """Walk both renderings in step; a slot that the template dropped is skipped."""
    used = [slot for slot in slots if slot.marker in skeleton]
    segments: list[Segment] = []
    position = 0
    for index, slot in enumerate(used):
        literal, _, skeleton = skeleton.partition(slot.marker)
        if slot.marker in skeleton or not rendered.startswith(literal, position):
            raise _rewrites(slot.message)
        segments.append(Segment(literal, slot.message, is_content=False))
        position += len(literal)
        following = skeleton.partition(used[index + 1].marker)[0] if index + 1 < len(used) else None
        text = _shown_text(
            rendered,
            position,
            slot,
            messages[slot.message].role,
            skeleton if following is None else following,
        )
        segments.append(
            Segment(text, slot.message, is_content=True, is_reasoning=slot.is_reasoning)
        )
        position += len(text)
    if rendered[position:] != skeleton:
        raise TemplateError("It changes its own text depending on what a message says.")
    segments.append(Segment(skeleton, len(messages), is_content=False))
    return [segment for segment in segments if segment.text]


def _shown_text(rendered: str, position: int, slot: _Slot, role: Role, following: str) -> str:
    """What the template made of a slot's text: itself, itself trimmed, or (replies) a part of it."""
    text = slot.text
    for shown in (text, text.strip(), text.rstrip(), text.lstrip(), text.strip("\n")):
        if rendered.startswith(shown, position) and rendered.startswith(
            following, position + len(shown)
        ):
            return shown
    end = rendered.find(following, position) if following else len(rendered)
    # A template may cut thoughts out of a reply. What people wrote must appear as they wrote it.
    if role is Role.ASSISTANT and end >= 0 and rendered[position:end] in text:
        return rendered[position:end]
    raise _rewrites(slot.message)


def _rewrites(message: int) -> TemplateError:
    return TemplateError(
        f"It rewrites message {message + 1}, so what was typed can’t be told from control text."
    )
