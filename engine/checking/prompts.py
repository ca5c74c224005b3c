"""A check of a prompt's token ids. It does not use the code that built the prompt.

The check is slow and simple. It requires three things:
- The decoded prompt equals the text that the chat template renders.
- Control tokens come only from the template and from replies that contain control tokens.
- Outside of stored replies, the ids are "plain": encoding their text gives the same ids.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from engine.chat.pictures import PictureRules
from engine.chat.quotes import map_calls, map_schema, parsed_tools
from engine.chat.template import ChatTemplate, TemplateOptions
from engine.chat.tokenizer import ChatTokenizer
from engine.picture_ids import has_pictures, picture_spans
from engine.types import Message, Role

Ids = tuple[int, ...]

# Decoded text of a token that holds only some bytes of a character.
_HALF_CHARACTER = "\N{REPLACEMENT CHARACTER}"


def prompt_fault(
    template: ChatTemplate,
    tokenizer: ChatTokenizer,
    prompt_ids: Ids,
    messages: Sequence[Message],
    options: TemplateOptions,
    pictures: PictureRules | None = None,
) -> str:
    """Return a sentence about the fault in a prompt's token ids, or "" if there is none.

    If `messages` ends with a reply, the request continued this reply. In this case, the prompt must
    end with the ids of this reply.

    pictures: the form in which the model gets pictures; None if it cannot see.
    """
    if messages[-1].role is Role.ASSISTANT:
        begun = tokenizer.ids_of(messages[-1].reply)
        above = len(prompt_ids) - len(begun)
        if not begun or prompt_ids[above:] != begun:
            return "the prompt does not end with the ids of the continued reply"
        return prompt_fault(
            template, tokenizer, prompt_ids[:above], messages[:-1], options, pictures
        )
    if not has_pictures(prompt_ids) and not any(message.pictures for message in messages):
        pictures = None  # reading the form of pictures may fail
    found_controls = _rendered_controls(tokenizer, prompt_ids, pictures)
    prompt_ids, shown = _without_pictures(tokenizer, prompt_ids, pictures)
    if shown != [pictures.ids(one) for m in messages for one in m.pictures if pictures is not None]:
        return "the ids of the pictures are not those of the messages’ pictures"
    text = _as_rendered(template.render(messages, options, reply_follows=True), pictures)
    decoded = _as_rendered(tokenizer.decode(prompt_ids), pictures)
    if decoded not in (text, unicodedata.normalize("NFC", text)):
        at = next((i for i, (a, b) in enumerate(zip(decoded, text, strict=False)) if a != b), -1)
        return f"the prompt reads {decoded[at:][:40]!r} where the messages read {text[at:][:40]!r}"
    neutral = [_neutral(tokenizer, message) for message in messages]
    tools = options.tools and json.dumps(map_schema(parsed_tools(options.tools), _about_nothing))
    rendered = template.render(neutral, replace(options, tools=tools), reply_follows=True)
    wanted = _controls(tokenizer, tokenizer.encode_template(rendered))
    if found_controls != wanted:
        found = tokenizer.decode(found_controls)
        return f"its control tokens are {found!r}, not {tokenizer.decode(wanted)!r}"
    return _ids_fault(tokenizer, prompt_ids, messages, text)


def _without_pictures(
    tokenizer: ChatTokenizer, prompt_ids: Ids, pictures: PictureRules | None
) -> tuple[Ids, list[Ids]]:
    """Return a prompt with the placeholder of each picture in place of its ids, and these ids."""
    text: list[int] = []
    found: list[Ids] = []
    done = 0
    for span in picture_spans(prompt_ids):
        assert pictures is not None
        text += [*prompt_ids[done : span.start], *tokenizer.encode_template(pictures.placeholder)]
        found.append(prompt_ids[span.start : span.end])
        done = span.end
    return (*text, *prompt_ids[done:]), found


def _as_rendered(text: str, pictures: PictureRules | None) -> str:
    """Return a text without the text around each placeholder that the template does not write."""
    if pictures is None:
        return text
    placeholder = pictures.placeholder
    return text.replace(f"{pictures.opening}{placeholder}{pictures.closing}", placeholder)


def _rendered_controls(
    tokenizer: ChatTokenizer, prompt_ids: Ids, pictures: PictureRules | None
) -> Ids:
    """Return the control tokens that the template writes, with a placeholder for each picture."""
    if pictures is None:
        return _controls(tokenizer, prompt_ids)
    opening, placeholder, closing = (
        _controls(tokenizer, tokenizer.encode_template(text))
        for text in (pictures.opening, pictures.placeholder, pictures.closing)
    )
    found: list[int] = []
    done = 0
    for span in picture_spans(prompt_ids):
        found += _controls(tokenizer, prompt_ids[done : span.start])
        done = span.end + len(closing)
        del found[len(found) - len(opening) :]
        found += placeholder
    return (*found, *_controls(tokenizer, prompt_ids[done:]))


def cut_replies(
    template: ChatTemplate,
    tokenizer: ChatTokenizer,
    messages: Sequence[Message],
    options: TemplateOptions,
) -> str:
    """Return a sentence about the replies that the template cuts, or "" if it cuts none.

    Some templates drop a part of a reply's answer, for example the text before </think>, if the
    model wrote this marker as a part of its answer. Such a prompt cannot have all ids of the reply.
    """
    if messages[-1].role is Role.ASSISTANT:
        return cut_replies(template, tokenizer, messages[:-1], options)
    text = template.render(messages, options, reply_follows=True)
    cut = [
        repr(message.content[:40])
        for message in messages
        if any(_reply_parts(tokenizer, message)) and _is_cut(message, text)
    ]
    return f"the template shows only a part of the reply {', '.join(cut)}" if cut else ""


def _neutral(tokenizer: ChatTokenizer, message: Message) -> Message:
    """Return a copy of a message with placeholders instead of its texts.

    A placeholder contains no words, only the control tokens that the model generated in the text.
    If the chat template renders copies instead of the messages, the result has exactly the control
    tokens that the real prompt must have.
    """
    thought, answer = _reply_parts(tokenizer, message)

    def about_nothing(text: str, token_ids: Ids) -> str:
        return text and f"x{tokenizer.decode(_controls(tokenizer, token_ids))}x"

    return replace(
        map_calls(message, _about_nothing),
        content=about_nothing(message.content, answer),
        reasoning=about_nothing(message.reasoning, thought),
    )


def _about_nothing(text: str) -> str:
    """Return a text without control tokens. Texts of tools stay different from each other."""
    return text and f"x{text.encode().hex()}"


def _controls(tokenizer: ChatTokenizer, token_ids: Ids) -> Ids:
    return tuple(token_id for token_id in token_ids if tokenizer.is_control(token_id))


def _is_cut(reply: Message, text: str) -> bool:
    """Return whether a rendered text shows only a part of a reply's answer."""
    return reply.content.strip() not in text


def _ids_fault(
    tokenizer: ChatTokenizer, prompt_ids: Ids, messages: Sequence[Message], text: str
) -> str:
    """Return the fault in the ids outside of stored replies, or "" if there is none.

    The function searches the prompt for each reply's ids, one reply after the other. If the
    template trims a reply to a few ids, these ids may occur in several places. So the search tries
    all matches, depth first. It succeeds if all ids between the matches are plain. Ids are plain if
    encoding their text gives the same ids.

    text: the text that the chat template renders. If it shows only a part of a reply, a part of the
    reply's ids is enough.
    """
    replies = [message for message in messages if any(_reply_parts(tokenizer, message))]
    fault = ""
    ways = [(0, 0)]  # states of the search: (number of replies found, end of the last reply)
    seen = set(ways)
    while ways:
        index, position = ways.pop()
        if index == len(replies):
            if _is_plain(tokenizer, prompt_ids[position:]):
                return ""
            fault = fault or "the last message’s ids differ"
            continue
        is_cut = _is_cut(replies[index], text)
        further, reason = _ends_of(tokenizer, prompt_ids, position, replies[index], is_cut=is_cut)
        fault = fault or reason
        for end in reversed(further):
            if (index + 1, end) not in seen:
                seen.add((index + 1, end))
                ways.append((index + 1, end))
    return fault


def _ends_of(
    tokenizer: ChatTokenizer,
    prompt_ids: Ids,
    position: int,
    message: Message,
    *,
    is_cut: bool,
) -> tuple[list[int], str]:
    """Return the positions where a reply may end in the prompt, the most likely one first.

    Args:
        tokenizer: the model's tokenizer.
        prompt_ids: the whole prompt.
        position: the end of the previous reply, where the search starts.
        message: the message of the reply.
        is_cut: True if the template shows only a part of the reply.

    Returns:
        The positions and "". If there is no such position: an empty list and the reason.
    """
    assert message.reply is not None
    thought, answer = _reply_parts(tokenizer, message)
    ends: list[int] = []
    reason = f"the ids of the reply {message.content[:40]!r} are not in the prompt"
    candidates = [*_shown(tokenizer, message.reply.token_ids), *_shown(tokenizer, answer)]
    if is_cut:
        candidates += [*_cut(answer), ()]
    for wanted in candidates:
        for at in _places(prompt_ids, wanted, position):
            if wanted and not _is_plain_around(tokenizer, prompt_ids[position:at], thought):
                reason = (
                    f"the text before the reply {message.content[:40]!r} is tokenised differently"
                )
            else:
                ends.append(at + len(wanted))
    return ends, "" if ends else reason


def _reply_parts(tokenizer: ChatTokenizer, message: Message) -> tuple[Ids, Ids]:
    """Return the ids of a reply's reasoning, without its markers, and the ids of its answer."""
    reply, token_ids = message.reply, tokenizer.ids_of(message.reply)
    if reply is None or not token_ids:
        return (), ()
    thought, answer = token_ids[: reply.answer_start], token_ids[reply.answer_start :]
    start, end = tokenizer.markers.think_start, tokenizer.markers.think_end
    if start and thought[: len(start)] == start:
        thought = thought[len(start) :]
    if end and thought[-len(end) :] == end:
        thought = thought[: -len(end)]
    return thought, answer


def _is_plain_around(tokenizer: ChatTokenizer, token_ids: Ids, thought: Ids) -> bool:
    """Return whether ids are plain, except for the ids of a reply's reasoning.

    Ids are plain if encoding their text gives the same ids. The ids of the reasoning are exempt,
    because the model drew them.

    Args:
        tokenizer: the model's tokenizer.
        token_ids: the ids between the previous reply and this reply's answer.
        thought: the ids of the reasoning.
    """
    if _is_plain(tokenizer, token_ids):
        return True
    return any(
        _is_plain(tokenizer, token_ids[:at]) and _is_plain(tokenizer, token_ids[at + len(wanted) :])
        for wanted in _shown(tokenizer, thought)
        if wanted
        for at in _places(token_ids, wanted, 0)
    )


def _is_plain(tokenizer: ChatTokenizer, token_ids: Ids) -> bool:
    """Return whether ids are plain: encoding their decoded text gives the same ids again.

    So if a user types the text of a control token, its ids must be those of ordinary text.
    """
    return all(
        tokenizer.encode_run(tokenizer.decode(control), tokenizer.decode(rest)) == control + rest
        for control, rest in _runs(tokenizer, token_ids)
    )


def _runs(tokenizer: ChatTokenizer, token_ids: Ids) -> Iterator[tuple[Ids, Ids]]:
    """Split ids before each control token. Yield each control token with the ids that follow it.

    The first pair has an empty tuple instead of a control token.
    """
    starts = [i for i, token_id in enumerate(token_ids) if tokenizer.is_control(token_id)]
    yield (), token_ids[: starts[0] if starts else len(token_ids)]
    for start, end in pairwise([*starts, len(token_ids)]):
        yield token_ids[start : start + 1], token_ids[start + 1 : end]


def _shown(tokenizer: ChatTokenizer, token_ids: Ids) -> Iterator[Ids]:
    """Yield ranges of a reply's ids that a prompt may contain: first all ids, then shorter ranges.

    If a template trims the reply's text, only a shorter range of the ids is left.
    """

    def may_be_lost(token_id: int) -> bool:
        text = tokenizer.decode([token_id])
        # Trimming may remove tokens that begin or end with a blank. A token that holds only some
        # bytes of a character may disappear together with them. A token without text, such as an id
        # beyond the tokenizer's vocabulary, is lost with a blank beside it, or with an empty reply.
        return not text or text != text.strip() or text == _HALF_CHARACTER

    # If all tokens may be lost, each may be lost at either end.
    start, end = 0, len(token_ids)
    while start < len(token_ids) and may_be_lost(token_ids[start]):
        start += 1
    while end and may_be_lost(token_ids[end - 1]):
        end -= 1
    for first in range(start + 1):
        for last in range(len(token_ids), max(first, end) - 1, -1):
            yield token_ids[first:last]


def _cut(token_ids: Ids) -> Iterator[Ids]:
    """Yield the ends and the beginnings of ids, longer ones first."""
    for num_dropped in range(1, len(token_ids)):
        yield token_ids[num_dropped:]
        yield token_ids[:-num_dropped]


def _places(token_ids: Ids, wanted: Ids, start: int) -> Iterator[int]:
    """Yield each index from start on at which wanted occurs. If wanted is empty, yield start."""
    ends = range(start, len(token_ids) - len(wanted) + 1 if wanted else start + 1)
    return (i for i in ends if token_ids[i : i + len(wanted)] == wanted)
