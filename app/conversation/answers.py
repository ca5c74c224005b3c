"""Plans of several answers to one message, and of answers with other options. Pure.

The answers are versions of one reply, in the order of their numbers. The first one is on show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from app.conversation.actions import Turn, plan_regenerate
from app.conversation.tree import (
    Conversation,
    MessageStatus,
    NodeId,
    Setup,
    add_nodes,
    set_system_prompt,
    show_version,
)
from app.words import problems as words
from engine.errors import UserFixableError
from engine.types import SamplingParams

MAX_ANSWERS: Final = 4  # highest number of answers to one message that are written at once


class EqualAnswersError(UserFixableError):
    """Several answers at temperature 0 would have the same words."""

    title = words.EQUAL_ANSWERS
    advice = words.EQUAL_ANSWERS_ADVICE


def with_answers(turn: Turn, more: Sequence[NodeId]) -> tuple[Turn, ...]:
    """Return the turns of several answers: the given one, and one for each further reply.

    All turns have the same conversation, with all replies.

    Args:
        turn: the turn of the first answer. It does not continue a reply.
        more: ids of the further replies.
    """
    if not more:
        return (turn,)
    first = turn.conversation.nodes[turn.reply_id]
    assert first.status is MessageStatus.STREAMING
    assert not turn.continues_reply
    others = [replace(first, node_id=node_id) for node_id in more]
    grown = show_version(add_nodes(turn.conversation, *others), turn.reply_id)
    return tuple(
        replace(turn, conversation=grown, reply_id=reply_id, answer=number)
        for number, reply_id in enumerate((turn.reply_id, *more), 1)
    )


def plan_ask_again(
    conv: Conversation,
    reply_id: NodeId,
    new_id: NodeId,
    setup: Setup,
    system_prompt: str | None,
    *,
    now: float,
) -> Turn:
    """Plan a turn with a new version of a reply, generated with other options.

    The conversation keeps its own options and system prompt.

    system_prompt: the system prompt for this version; None for that of the conversation.
    """
    asked = conv if system_prompt is None else set_system_prompt(conv, system_prompt)
    turn = plan_regenerate(asked, reply_id, new_id, now=now)
    conversation = replace(
        turn.conversation,
        system_prompt=conv.system_prompt,
        read_system_prompt=conv.read_system_prompt,
    )
    return replace(turn, conversation=conversation, setup=setup)


def check_answers_differ(setup: Setup, defaults: SamplingParams | None) -> None:
    """Refuse several answers of which all would have the same words.

    defaults: the parameters of the loaded model. None while no model is loaded.

    Raises:
        EqualAnswersError: the token with the largest logit is always drawn.
    """
    temperature = setup.temperature
    if defaults is not None:
        temperature = setup.sampling(defaults).temperature
    if temperature is not None and temperature <= 0:
        raise EqualAnswersError("")
