"""A model's chat template, and which part of its output came from which message.

The template itself is rendered elsewhere (a `Renderer`); here its output is cut into segments, so
that text written by people can be told from text written by the template.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Protocol

from engine.errors import TemplateError
from engine.types import Message, Role


class Renderer(Protocol):
    """Runs a chat template in a sandbox."""

    def render(
        self, messages: Sequence[Message], *, thinking: bool | None, reply_follows: bool
    ) -> str:
        """The prompt text; with reply_follows it ends where the assistant's reply begins.

        Raises:
            TemplateError: the template refused these messages.
        """
        ...


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


@dataclass(frozen=True, slots=True)
class _Slot:
    """A marker that stood in for a text of a message."""

    marker: str
    message: int
    text: str
    is_reasoning: bool


def render_segments(
    renderer: Renderer,
    messages: Sequence[Message],
    *,
    thinking: bool | None,
    reply_follows: bool,
) -> list[Segment]:
    """Render messages and say where each message's own text went.

    The template is run twice: on the messages, and on the messages with every text replaced by a
    marker. What lies between the markers is the template's; the first run must agree with it.

    Raises:
        TemplateError: the template refused, or rewrites text so that people's text can't be told
            from its own while it holds control tokens.
    """
    rendered = renderer.render(messages, thinking=thinking, reply_follows=reply_follows)
    marked, slots = _mark(messages)
    skeleton = renderer.render(marked, thinking=thinking, reply_follows=reply_follows)
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
        f"It rewrites message {message + 1}, so what was typed can't be told from control text."
    )


def dummy_turn() -> tuple[Message, Message]:
    """A reply and a further message, to see how the next turn will be rendered."""
    return Message(role=Role.ASSISTANT, content="x"), Message(role=Role.USER, content="x")
