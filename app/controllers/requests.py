"""What the engine is asked for, and what is remembered of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.conversation.actions import Turn, messages_ahead
from app.conversation.tree import Conversation, Generation, Setup
from app.viewmodels.models import ModelStatus
from app.words import problems as words
from engine.errors import UserFixableError
from engine.types import ConversationId, Message, ModelFacts, Problem, Request, RequestId, Role

MAX_TOKENS = 4096
LONG_DRAFT = 400  # characters; a shorter one is read before anyone could see that it is


class OtherModelError(UserFixableError):
    """Another model would take what is there for something else."""

    title = words.OTHER_MODEL
    advice = words.OTHER_MODEL_ADVICE


@dataclass(frozen=True, slots=True, kw_only=True)
class NextTurn:
    """The part of a conversation's next prompt that is known; without messages, none of it is."""

    conversation_id: ConversationId
    messages: tuple[Message, ...] = ()
    is_draft: bool = False
    thinking: bool | None = None
    keep_thinking: bool = False


def make_request(
    request_id: RequestId,
    turn: Turn,
    setup: Setup,
    facts: ModelFacts,
    *,
    begun: Generation | None,
    new_seed: int,
) -> Request:
    """What a turn asks for.

    A reply that goes on draws with the seed that it was begun with, and is inside its thoughts or not as
    it was then. new_seed is for any other, unless the conversation has its own.
    """
    sampling = setup.sampling(replace(facts.default_sampling, seed=new_seed))
    if begun:
        sampling = replace(sampling, seed=begun.sampling.seed)
    return Request(
        request_id=request_id,
        conversation_id=turn.conversation.conversation_id,
        messages=turn.messages,
        new_messages=turn.new_messages,
        sampling=sampling,
        max_tokens=setup.max_tokens or MAX_TOKENS,
        thinking=_thinking(begun.thinking if begun else setup.thinking, facts),
        keep_thinking=_keep_thinking(setup, facts),
    )


def has_long_draft(conversation: Conversation) -> bool:
    return len(conversation.draft) >= LONG_DRAFT


def next_turn(conversation: Conversation, facts: ModelFacts) -> NextTurn:
    """Return the beginning of the next prompt, a long draft included."""
    draft = conversation.draft if has_long_draft(conversation) else ""
    messages = messages_ahead(conversation, draft)
    if not messages or messages[-1].role is Role.SYSTEM:
        return NextTurn(conversation_id=conversation.conversation_id)
    return NextTurn(
        conversation_id=conversation.conversation_id,
        messages=messages,
        is_draft=messages[-1].role is Role.USER,
        thinking=_thinking(conversation.setup.thinking, facts),
        keep_thinking=_keep_thinking(conversation.setup, facts),
    )


def _thinking(thinking: bool | None, facts: ModelFacts) -> bool | None:  # noqa: FBT001 (the value)
    return thinking if facts.has_thinking else None


def _keep_thinking(setup: Setup, facts: ModelFacts) -> bool:
    return setup.keep_thinking and facts.can_keep_thinking


def problem_of_begun(turn: Turn, facts: ModelFacts) -> Problem | None:
    """Why a reply can't go on with this model; None for what is written anew."""
    begun = turn.conversation.nodes[turn.reply_id].generation
    if not turn.continues_reply or begun is None or begun.template_hash == facts.template_hash:
        return None
    return OtherModelError(words.written_by(begun.model_name)).problem


def generation_of(request: Request, facts: ModelFacts) -> Generation:
    return Generation(
        model_path=facts.path,
        model_name=facts.name,
        template_hash=facts.template_hash,
        thinking=request.thinking,
        sampling=request.sampling,
        max_tokens=request.max_tokens,
    )


def problem_with(status: ModelStatus) -> Problem:
    """Return why nothing answers: a model that is neither ready nor on its way has failed."""
    assert status.problem is not None
    return status.problem
