"""Render a model's chat template, and find which part of its output came from which message.

A chat template is a Jinja program that turns messages into one string. If the template writes
<|im_start|>, these characters must become a control token. If a user types <|im_start|>, they must
stay ordinary text. The string does not show who wrote the characters, so the template runs twice.
The first run renders the messages. The second run renders copies in which a unique marker replaces
each message's text. All text between the markers comes from the template. The first output is then
divided at this text into a list of `Segment`. If a template rewrites a user's text, it is refused
with TemplateError.

Callers: PromptBuilder (prompt.py) calls `ChatTemplate.segments` for every prompt that it builds.
checking/prompts.py calls `ChatTemplate.render`, to check a prompt without the code that built it.
models/loader.py reads `ChatTemplate.can_keep_thinking` once, when it loads a model. Nothing is kept
between two calls, except the name of the template's option that keeps reasoning.

A `Renderer` runs the Jinja program: models/renderer.py in this process, models/isolated.py in the
worker process. Use this module on the engine thread.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count

from engine.errors import TemplateError, TemplateLimitError
from engine.types import Message, Role


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a rendered prompt. It is text of the template or text of one message."""

    text: str
    # Index of the message. For text of the template: index of the message whose text comes next,
    # or the number of messages if no text of a message follows.
    message: int
    is_content: bool  # True for text of a message, False for text of the template
    is_reasoning: bool = False
    # Stored token ids of a reply. If not empty, `text` is "". This module sets no token ids;
    # Splicer (splice.py) makes the segments that have token ids.
    token_ids: tuple[int, ...] = ()


class Renderer(ABC):
    """A chat template that renders messages to text."""

    @abstractmethod
    def render(
        self, messages: Sequence[Message], *, options: Mapping[str, bool], reply_follows: bool
    ) -> str:
        """Return the text that the template makes of messages.

        Args:
            messages: the conversation, oldest message first.
            options: variables for the template, by name. A template ignores unknown variables.
            reply_follows: True to end with the text that opens the assistant's reply.

        Raises:
            TemplateError: the template refused these messages.
        """

    def segments(
        self, messages: Sequence[Message], *, options: Mapping[str, bool], reply_follows: bool
    ) -> list[Segment]:
        """Render messages. Divide the result into text of the template and texts of messages.

        Raises:
            TemplateError: the template refused the messages, or it changes a message's text, which
                then cannot be found in the output. Two changes are allowed: blanks may be removed
                from both ends of a text, and a reply may be shown only in part.
        """
        rendered = self.render(messages, options=options, reply_follows=reply_follows)
        marked, slots = _mark(messages)
        skeleton = self.render(marked, options=options, reply_follows=reply_follows)
        return _align(rendered, skeleton, slots, messages)


@dataclass(frozen=True, slots=True)
class Thoughts:
    """A request's settings for reasoning. They become options of the chat template."""

    # True or False to switch reasoning on or off; None for the template's default.
    wanted: bool | None = None
    keep: bool = False  # True to keep the reasoning of earlier replies in the prompt, if possible


# Options that keep the reasoning of earlier replies in the prompt. Each family of templates has a
# different name for this option. The options are tried in this order.
_KEEP_SWITCHES: tuple[Mapping[str, bool], ...] = (
    {"preserve_thinking": True},
    {"clear_thinking": False},
    {"truncate_history_thinking": False},
    {"drop_thinking": False},
    {"keep_past_thinking": True},
    {"keep_thinking": True},
)
_NO_SWITCH: Mapping[str, bool] = {}
# Reasoning that stands for no reasoning. Templates trim it to nothing.
_BLANK = "\n"
# Largest number of characters that a template may add, at all and for each message. The largest known
# template adds 2,000 and 150.
_MAX_LITERAL = 100_000
_MAX_LITERAL_OF_MESSAGE = 1_000
_THOUGHT = "reasoning of an earlier reply"
# Markers of `_mark`: the same private-use character at both ends.
_MARKER = re.compile("([\U000f0000-\U0010fffd])[rc][0-9]+\\1")


@dataclass(frozen=True, slots=True)
class _Slot:
    """A unique marker, and the text of a message that it replaces while the template runs."""

    marker: str
    message: int
    text: str
    is_reasoning: bool

    @property
    def place(self) -> tuple[int, bool]:
        """The place of the text in the conversation. Reasoning comes before its message's content."""
        return self.message, not self.is_reasoning


class ChatTemplate:
    """A model's chat template. Each template has its own name for the option that keeps reasoning.

    Each call translates a request's `Thoughts` to the options of this template.

    Use on the engine thread.
    """

    def __init__(self, renderer: Renderer, think_end: str = "") -> None:
        """Create the template of a model.

        Args:
            renderer: the program of the template.
            think_end: text of the marker that ends the reasoning of a reply; "" if there is none.
        """
        self._renderer = renderer
        self._think_end = think_end

    @cached_property
    def can_keep_thinking(self) -> bool:
        """True if the template drops earlier replies' reasoning, but an option can keep it.

        The loader stores the value in ModelFacts. The app shows a switch for this option only if
        the value is True.
        """
        return bool(self._keep_switch)

    def render(
        self, messages: Sequence[Message], thoughts: Thoughts, *, reply_follows: bool
    ) -> str:
        """Return the text of a prompt. Arguments and errors are those of Renderer.render."""
        options = self._options(thoughts)
        whole = self._as_drawn(messages)
        return self._renderer.render(whole, options=options, reply_follows=reply_follows)

    def segments(
        self, messages: Sequence[Message], thoughts: Thoughts, *, reply_follows: bool
    ) -> list[Segment]:
        """Return a prompt's segments. Arguments and errors are those of Renderer.segments."""
        options = self._options(thoughts)
        whole = self._as_drawn(messages)
        return self._renderer.segments(whole, options=options, reply_follows=reply_follows)

    def _options(self, thoughts: Thoughts) -> Mapping[str, bool]:
        options = dict(self._keep_switch) if thoughts.keep else {}
        if thoughts.wanted is not None:
            options["enable_thinking"] = thoughts.wanted
        return options

    def _as_drawn(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages so that the template keeps the text of replies that hold a marker.

        If a reply comes without reasoning, many templates search its text for the marker that ends
        reasoning, and drop the text before the marker. This serves replies from other programs. In
        a reply of the engine the marker is a part of the answer. So such a reply gets a blank
        reasoning, if the template then keeps the text.
        """
        end = self._think_end

        def is_split(message: Message) -> bool:
            is_ours = message.reply is not None and not message.reasoning
            return bool(end) and is_ours and end in message.content

        if not any(map(is_split, messages)) or not self._keeps_marker:
            return messages
        return [replace(m, reasoning=_BLANK) if is_split(m) else m for m in messages]

    @cached_property
    def _keeps_marker(self) -> bool:
        """True if the template keeps a marker in the text of a reply with a blank reasoning.

        It must keep the marker in an earlier turn, and before a tool result if it supports tool
        results. The first access renders two short conversations.
        """
        content = f"x{self._think_end}x"
        user = Message(role=Role.USER, content="x")
        reply = Message(role=Role.ASSISTANT, content=content, reasoning=_BLANK)

        def keeps(following: Message) -> bool | None:
            """Return None if the template refuses the conversation."""
            try:
                segments = self._renderer.segments(
                    [user, reply, following], options=_NO_SWITCH, reply_follows=True
                )
            except TemplateError:
                return None
            return any(one.is_content and one.text == content for one in segments)

        result = Message(role=Role.TOOL, content="x")
        return bool(keeps(user)) and keeps(result) is not False

    @cached_property
    def _keep_switch(self) -> Mapping[str, bool]:
        """The template option that keeps the reasoning of earlier replies in the prompt.

        Empty if the template always keeps the reasoning, or if none of the known options works. The
        first access finds the option by rendering a short conversation up to seven times.
        """
        user = Message(role=Role.USER, content="x")
        thought = Message(role=Role.ASSISTANT, content="x", reasoning=_THOUGHT)

        def shows(options: Mapping[str, bool]) -> bool:
            try:
                text = self._renderer.render(
                    [user, thought, user], options=options, reply_follows=True
                )
            except TemplateLimitError:
                raise
            except TemplateError:
                return False
            return _THOUGHT in text

        if shows(_NO_SWITCH):
            return _NO_SWITCH
        return next((switch for switch in _KEEP_SWITCHES if shows(switch)), _NO_SWITCH)


def _mark(messages: Sequence[Message]) -> tuple[list[Message], list[_Slot]]:
    """Return copies of messages and a list of unique markers. In the copies, markers replace texts.

    Empty texts stay empty, because templates check whether a text is empty. The copies have only a
    role, a content and a reasoning, because a renderer passes nothing else to the template. The
    markers are in the order of the messages, with the reasoning of a message before its content.
    """
    everything = "".join(m.content + m.reasoning for m in messages)
    # A character from Unicode's private-use area that occurs in no message.
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
    """Divide the rendered text into segments.

    The template must write the texts in the order of `slots`.

    Args:
        rendered: the template's output for the messages.
        skeleton: the template's output for the messages with markers instead of texts.
        slots: the markers. A marker that the template left out is skipped.
        messages: the conversation.

    Raises:
        TemplateError: the two outputs cannot be aligned.
    """
    by_marker = {slot.marker: slot for slot in slots}
    used = [m for m in _MARKER.finditer(skeleton) if m.group() in by_marker]
    ends = [*(marker.start() for marker in used[1:]), len(skeleton)]
    segments: list[Segment] = []
    position = done = 0
    previous = (-1, False)
    for marker, end in zip(used, ends, strict=False):
        slot = by_marker[marker.group()]
        literal, following = skeleton[done : marker.start()], skeleton[marker.end() : end]
        # Refuse the template for either of two reasons: it writes texts twice or in another order,
        # or its own text before the message differs between the two runs.
        if slot.place <= previous or not rendered.startswith(literal, position):
            raise _rewrites(slot.message)
        segments.append(Segment(literal, slot.message, is_content=False))
        position += len(literal)
        role = messages[slot.message].role
        text = _shown_text(rendered, position, slot, role, following)
        segments.append(
            Segment(text, slot.message, is_content=True, is_reasoning=slot.is_reasoning)
        )
        position += len(text)
        done, previous = marker.end(), slot.place
    if rendered[position:] != skeleton[done:]:
        raise TemplateError("It changes its own text depending on what a message says.")
    segments.append(Segment(skeleton[done:], len(messages), is_content=False))
    if len(skeleton) > _MAX_LITERAL + _MAX_LITERAL_OF_MESSAGE * len(messages):
        raise TemplateError(f"It adds {len(skeleton):,} characters to the messages.")
    return [segment for segment in segments if segment.text]


def _shown_text(rendered: str, position: int, slot: _Slot, role: Role, following: str) -> str:
    """Return the part of a message's text that the template shows at a position.

    A template may trim a text. It may also show only parts of a reply. They end where
    `following` next occurs. If `following` is empty, the part must reach to the end of the output.
    So a shortened reply directly before the text of another message is refused: its end is unknown.

    Args:
        rendered: the template's output for the messages.
        position: the index in rendered at which the text starts.
        slot: the marker and the message's full text.
        role: the role of the message.
        following: the template's text between this marker and the next one, or up to the end. It is
            empty if two markers are adjacent, or if the output ends with this marker.

    Raises:
        TemplateError: the template rewrites the text.
    """
    text = slot.text
    for shown in (text, text.strip(), text.rstrip(), text.lstrip(), text.strip("\n")):
        if rendered.startswith(shown, position) and rendered.startswith(
            following, position + len(shown)
        ):
            return shown
    end = rendered.find(following, position) if following else len(rendered)
    # A template may cut the reasoning out of a reply. It must not change the text of users.
    if role is Role.ASSISTANT and end >= 0 and _is_cut(text, rendered[position:end]):
        return rendered[position:end]
    raise _rewrites(slot.message)


def _is_cut(text: str, shown: str) -> bool:
    """Return True if `shown` is left when parts of `text` are cut out."""
    letters = iter(text)
    return all(letter in letters for letter in shown)


def _rewrites(message: int) -> TemplateError:
    # "It" is the chat template: the app shows TemplateError.title, which names it, above this cause.
    return TemplateError(
        f"It rewrites message {message + 1}, so what was typed can’t be told from control text."
    )
