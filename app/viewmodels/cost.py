"""The cost of an action in one line: what the model will read before it answers. No Qt, no I/O."""

from __future__ import annotations

from dataclasses import replace

from app.viewmodels import figures
from app.viewmodels.chat_state import ChatState
from app.viewmodels.reading import ToRead
from app.viewmodels.state_line import cause_of
from app.words import costs as words, units

# A chat of which less is known needs no word "all".
_MANY_TOKENS = 1_000


def other_model_cost(num_tokens: int | None, num_models: int) -> str:
    """Return what a model that has read nothing of the chat on show would read.

    The sentence is empty if this is little or unknown. Any model may have read the chat, also one
    that is not loaded, so the sentence names none.

    Args:
        num_tokens: size of the next prompt as the model in use counts it; None if it is not known.
        num_models: number of models that can be chosen.
    """
    if num_tokens is None or num_tokens < _MANY_TOKENS or num_models < 2:
        return ""
    return words.of_other_model(figures.about(num_tokens))


def cost_line(to_read: ToRead) -> str:
    """Return the cost of an action: Instant, or the tokens to read and the time that this takes."""
    return words.INSTANT if to_read.is_instant else _reads(to_read)


def short_cost(to_read: ToRead) -> str:
    """Return the cost of an action without the time and without the tokens on disk."""
    if to_read.is_instant:
        return words.INSTANT
    if to_read.num_tokens == 0:
        return words.NOTHING
    return words.reads(units.tokens(to_read.num_tokens), time="", is_all=False)


def chat_line(state: ChatState, to_read: ToRead) -> str:
    """Return the state of a chat, and the cost of its next message.

    The cost of a chat that must be read is its tokens, even if reading them is instant.
    """
    is_short_reading = state is ChatState.UNREAD and to_read.is_instant
    cost = _reads(replace(to_read, expected=None)) if is_short_reading else cost_line(to_read)
    return words.of_action(state.text, cost)


def _reads(to_read: ToRead) -> str:
    line = words.NOTHING if to_read.num_tokens == 0 else _reads_tokens(to_read)
    if not to_read.restores_from_disk:
        return line
    return words.restores_from_disk(units.tokens(to_read.num_on_disk), reads=line)


def _reads_tokens(to_read: ToRead) -> str:
    return words.reads(
        units.tokens(to_read.num_tokens),
        time=to_read.about_time,
        is_all=to_read.num_tokens == to_read.num_prompt >= _MANY_TOKENS,
        cause="" if to_read.plan is None else cause_of(to_read.plan),
    )
