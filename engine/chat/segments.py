"""Render the messages of a conversation, and find which text of the output came from which message.

A chat template is a Jinja program that turns messages into one string. If the template writes
<|im_start|>, these characters must become a control token. If a user types <|im_start|>, they must
stay ordinary text. The string does not show who wrote the characters, so the template runs twice.
The first run renders the messages. The second run renders copies in which a unique marker replaces
each message's text. All text between the markers comes from the template. The first output is then
divided at this text into a list of `Segment`. A template that changes a user's text, or leaves it
out, is refused with TemplateError.

Replies are different: a template may trim them, and leave out their reasoning. Some templates cut a
reply at a marker that it contains, or raise an error. Such a reply can be put in verbatim: the
template gets its marker in both runs, and then the reply's text replaces the marker.

A `Renderer` runs the Jinja program: models/renderer.py in this process, models/isolated.py in the
worker process. Nothing is kept between two calls.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import islice

from engine.errors import TemplateError
from engine.types import Message, Role

# Largest number of characters that a template may add, at all, for each message, and for each
# character of tools and calls. The largest known template adds 2,000 and 150, and indents the
# tools.
_MAX_LITERAL = 100_000
_MAX_LITERAL_OF_MESSAGE = 1_000
_MAX_LITERAL_OF_TOOLS = 10
# "It" is the chat template: the app shows TemplateError.title, which names it, above this cause.
_REWRITES = "It changes the text of a message, so what was typed can’t be told from control text."
# Markers of `_mark`: the same private-use character at both ends.
_MARKER = re.compile("([\U000f0000-\U0010fffd])[rc][0-9]+\\1")
_PRIVATE = re.compile("[\U000f0000-\U0010fffd]")


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a rendered prompt. It is text of the template or text of one message."""

    text: str
    # Index of the message. For text of the template: index of the message whose text comes next,
    # or the number of messages if no text of a message follows.
    message: int
    is_content: bool  # True for text of a message, False for text of the template
    is_reasoning: bool = False
    # True for text of a tool or a call, which the template wrote. This module sets it to False;
    # Quotes (quotes.py) makes the segments of quoted text.
    is_quoted: bool = False
    # Stored token ids of a reply. If not empty, `text` is "". This module sets no token ids;
    # Splicer (splice.py) makes the segments that have token ids.
    token_ids: tuple[int, ...] = ()

    @property
    def is_template(self) -> bool:
        """True for the template's own text, in which control tokens are recognised."""
        return not (self.is_content or self.is_quoted)


class Renderer(ABC):
    """A chat template that renders messages to text."""

    @abstractmethod
    def render(
        self, messages: Sequence[Message], *, options: Mapping[str, object], reply_follows: bool
    ) -> str:
        """Return the text that the template makes of messages.

        Args:
            messages: the conversation, oldest message first.
            options: variables for the template, by name; values of JSON. A template ignores
                unknown variables.
            reply_follows: True to end with the text that opens the assistant's reply.

        Raises:
            TemplateError: the template refused these messages.
        """

    def render_verbatim(
        self,
        messages: Sequence[Message],
        *,
        options: Mapping[str, object],
        reply_follows: bool,
        verbatim: Set[int],
    ) -> str:
        """Return the text that `render` makes of messages, with some texts put in verbatim.

        Args:
            messages: as for `render`.
            options: as for `render`.
            reply_follows: as for `render`.
            verbatim: indices of the messages whose texts the template does not get.

        Raises:
            TemplateError: as in `render`.
        """
        marked, slots = _mark(messages, verbatim, options)
        given = [marked[i] if i in verbatim else message for i, message in enumerate(messages)]
        text = self.render(given, options=options, reply_follows=reply_follows)
        for slot in slots:
            if slot.message in verbatim:
                text = text.replace(slot.marker, slot.text)
        return text

    def segments(
        self,
        messages: Sequence[Message],
        *,
        options: Mapping[str, object],
        reply_follows: bool,
        verbatim: Set[int] = frozenset(),
    ) -> list[Segment]:
        """Render messages. Divide the result into text of the template and texts of messages.

        Arguments are those of `render_verbatim`.

        Raises:
            TemplateError: the template refused the messages, or it leaves a message's text out, or
                changes the text, which then cannot be found in the output. Two changes are allowed:
                blanks may be removed from both ends of a text, and a reply may be shown only in
                part.
        """
        rendered = self.render_verbatim(
            messages, options=options, reply_follows=reply_follows, verbatim=verbatim
        )
        marked, slots = _mark(messages, verbatim, options)
        skeleton = self.render(marked, options=options, reply_follows=reply_follows)
        segments = _align(rendered, skeleton, slots, messages)
        _check_length(skeleton, messages, options)
        return segments


@dataclass(frozen=True, slots=True)
class _Slot:
    """A unique marker, and the text of a message that it replaces while the template runs."""

    marker: str
    message: int
    text: str
    is_reasoning: bool

    @property
    def place(self) -> tuple[int, bool]:
        """The text's place in the conversation. Reasoning comes before its message's content."""
        return self.message, not self.is_reasoning


def message_name(messages: Sequence[Message], index: int) -> str:
    """Return the name of a message in a sentence. It does not quote the message."""
    role = messages[index].role
    if role is Role.SYSTEM:
        return "the system prompt"
    same = [i for i, message in enumerate(messages) if message.role is role]
    kind = "your message" if role is Role.USER else "the result of a tool"
    return kind if len(same) == 1 else f"{kind}, number {same.index(index) + 1} of {len(same)}"


def free_characters(texts: Iterable[str], number: int) -> list[str]:
    """Return characters from Unicode's private-use area that occur in no text, not even escaped.

    Raises:
        TemplateError: the texts contain almost all of them.
    """
    text = "".join(texts)
    used = frozenset[str](() if text.isascii() else _PRIVATE.findall(text))
    letters = map(chr, range(0xF0000, 0x10FFFE))
    free = (c for c in letters if c not in used and not any(e in text for e in escapes(c)))
    found = list(islice(free, number))
    if len(found) < number:
        raise TemplateError(
            "The messages contain all characters of a kind that has no use in text."
        )
    return found


def escapes(letter: str) -> tuple[str, str]:
    """Return a character as JSON and as Python can write it, in letters of ASCII."""
    return json.dumps(letter)[1:-1], ascii(letter)[1:-1]


def texts_of(messages: Iterable[Message]) -> Iterator[str]:
    """Yield all texts of messages."""
    for message in messages:
        yield from (message.content, message.reasoning, message.tool_name)
        for call in message.calls:
            yield from (call.name, call.arguments)


def _mark(
    messages: Sequence[Message], verbatim: Set[int], options: Mapping[str, object]
) -> tuple[list[Message], list[_Slot]]:
    """Return copies of messages and a list of unique markers. In the copies, markers replace texts.

    Empty texts stay empty, because templates check whether a text is empty. Only the messages in
    `verbatim` get a marker for an empty content, because templates refuse some blank replies. The
    markers are in the order of the messages, with the reasoning of a message before its content.
    """
    (fence,) = free_characters([*texts_of(messages), json.dumps(options, ensure_ascii=False)], 1)
    marked: list[Message] = []
    slots: list[_Slot] = []
    for index, message in enumerate(messages):
        reasoning = f"{fence}r{index}{fence}" if message.reasoning else ""
        content = f"{fence}c{index}{fence}" if message.content or index in verbatim else ""
        if reasoning:
            slots.append(_Slot(reasoning, index, message.reasoning, is_reasoning=True))
        if content:
            slots.append(_Slot(content, index, message.content, is_reasoning=False))
        marked.append(replace(message, content=content, reasoning=reasoning))
    return marked, slots


def _align(
    rendered: str, skeleton: str, slots: list[_Slot], messages: Sequence[Message]
) -> list[Segment]:
    """Divide the rendered text into segments.

    The template must write the texts in the order of `slots`.

    Args:
        rendered: the template's output for the messages.
        skeleton: the template's output for the messages with markers instead of texts.
        slots: the markers. The template may leave out those of replies.
        messages: the conversation.

    Raises:
        TemplateError: the two outputs cannot be aligned.
    """
    by_marker = {slot.marker: slot for slot in slots}
    used = [m for m in _MARKER.finditer(skeleton) if m.group() in by_marker]
    shown = {by_marker[marker.group()].message for marker in used}
    for slot in slots:
        if slot.message not in shown and messages[slot.message].role is not Role.ASSISTANT:
            raise TemplateError(f"It leaves out {message_name(messages, slot.message)}.")
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
            raise TemplateError(_REWRITES)
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
        raise TemplateError("It changes its own text depending on the text of a message.")
    segments.append(Segment(skeleton[done:], len(messages), is_content=False))
    return [segment for segment in segments if segment.text]


def _check_length(
    skeleton: str, messages: Sequence[Message], options: Mapping[str, object]
) -> None:
    """Raise TemplateError if a template adds far more text than any known one."""
    most = _MAX_LITERAL + _MAX_LITERAL_OF_MESSAGE * len(messages)
    if len(skeleton) > most:
        calls = (call for message in messages for call in message.calls)
        given = len(json.dumps(options)) + sum(len(c.name) + len(c.arguments) for c in calls)
        if len(skeleton) > most + _MAX_LITERAL_OF_TOOLS * given:
            raise TemplateError(f"It adds {len(skeleton):,} characters to the messages.")


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
    raise TemplateError(_REWRITES)


def _is_cut(text: str, shown: str) -> bool:
    """Return True if `shown` is left when parts of `text` are cut out."""
    letters = iter(text)
    return all(letter in letters for letter in shown)
