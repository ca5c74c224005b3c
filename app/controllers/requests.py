"""Pure functions that make engine requests, and prompts to read ahead, from a conversation."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace
from typing import NamedTuple

from app.conversation.actions import (
    Turn,
    TurnIds,
    plan_edit,
    plan_regenerate,
    plan_send,
)
from app.conversation.attachments import Attachment
from app.conversation.prompts import messages_ahead, messages_edited
from app.conversation.readers import UNKNOWN_MODEL
from app.conversation.replies import is_empty_reply
from app.conversation.tree import Conversation, Generation, NodeId, Setup, shown_path
from app.viewmodels.model_question import Cards, is_same_model
from app.viewmodels.models import ModelStatus
from app.words import attachments, models, problems as words
from engine.errors import UserFixableError
from engine.events import ModelFacts
from engine.problem import Problem
from engine.questions import NextPrompt
from engine.types import Message, Request, RequestId, Role, answer_id

MAX_TOKENS = 4096  # limit of a reply if the conversation sets none
LONG_DRAFT = 400  # characters; feeding a shorter draft is so fast that reading ahead saves no time
# Characters of attached files for each token of the context, above which the files are far too
# long. They are not tokenized then, because that would take seconds. A token has 3 to 6 characters.
_FAR_TOO_LONG = 12


class OtherModelError(UserFixableError):
    """Another model began the reply, so the model in use cannot continue it.

    The token ids of the reply have other meanings in the model in use.
    """

    title = words.OTHER_MODEL
    advice = words.OTHER_MODEL_ADVICE


class UnseenPicturesError(UserFixableError):
    """The messages have pictures, which the model in use can't see."""

    title = words.UNSEEN_PICTURES
    advice = words.UNSEEN_PICTURES_ADVICE


def make_request(  # noqa: PLR0913 (values with defaults)
    request_id: RequestId,
    turn: Turn,
    setup: Setup,
    facts: ModelFacts,
    *,
    new_seed: int,
    cards: Cards,
    follows: RequestId | None = None,
    shares_prompt: bool = False,
) -> Request:
    """Return the engine request for a turn.

    A reply that is continued or begins with a preview keeps its seed and thinking option. Any other
    reply gets the seed of `setup`, or `new_seed` if `setup` has none. Several answers to one
    message have seeds in a row. `cards` are the models on this machine. `follows` is the request of
    the first of several answers, whose requests share their prompt.
    """
    begun = _begun(turn)
    sampling = setup.sampling(replace(facts.default_sampling, seed=new_seed))
    if begun:
        sampling = replace(sampling, seed=begun.sampling.seed)
    elif turn.answer > 1:
        sampling = replace(sampling, seed=(sampling.seed + turn.answer - 1) % (1 << 32))
    return Request(
        request_id=request_id,
        conversation_id=answer_id(turn.conversation.conversation_id, turn.answer),
        follows=follows,
        shares_prompt=shares_prompt,
        messages=turn.messages,
        new_messages=turn.new_messages,
        is_unsaved=turn.is_unsaved,
        sampling=sampling,
        max_tokens=(setup.max_tokens or MAX_TOKENS) - turn.num_begun,
        thinking=_thinking(begun.thinking if begun else setup.thinking, facts),
        keep_thinking=_keep_thinking(setup, facts),
        foreign_messages=foreign_messages(turn, facts.path, cards),
        forced=turn.forced,
        max_drafts=None if setup.faster_answers else 0,
    )


def foreign_messages(turn: Turn, model_path: str, cards: Cards) -> frozenset[int]:
    """Return Request.foreign_messages of a turn.

    `cards` are the models on this machine. They tell if a model was at another path before.
    """
    readers = frozenset[str]().union(*turn.readers) - {UNKNOWN_MODEL}
    return turn.only_read_by({one for one in readers if not is_same_model(one, model_path, cards)})


def has_long_draft(conversation: Conversation) -> bool:
    """Return True if reading the draft ahead saves time: it has files, or LONG_DRAFT characters."""
    return bool(conversation.draft_attachments) or len(conversation.draft) >= LONG_DRAFT


def is_far_too_long(files: Iterable[Attachment], facts: ModelFacts) -> bool:
    """Return True if files are certainly too long for the model."""
    return sum(len(one.text) for one in files) > _FAR_TOO_LONG * facts.context_len


def has_draft(conversation: Conversation) -> bool:
    return bool(conversation.draft.strip() or conversation.draft_attachments)


def next_turn(
    conversation: Conversation, facts: ModelFacts, *, min_draft: int = LONG_DRAFT
) -> NextPrompt:
    """Return the known beginning of the next prompt: the messages on show, files, a long draft.

    The result has no messages if there is no message, no document of the folder and no long draft:
    the system prompt alone is not read ahead. The same holds for documents far too long. A text of
    fewer than min_draft characters is left out, because it still changes.
    """
    draft = conversation.draft if len(conversation.draft) >= min_draft else ""
    if is_far_too_long(conversation.documents, facts):
        return NextPrompt(conversation_id=conversation.conversation_id)
    if is_far_too_long((*conversation.documents, *conversation.draft_attachments), facts):
        conversation = replace(conversation, draft_attachments=())
    messages = messages_ahead(conversation, draft)
    if not messages or messages[-1].role is Role.SYSTEM:
        return NextPrompt(conversation_id=conversation.conversation_id)
    return _turn_of(conversation, messages, facts)


def turn_without_draft(conversation: Conversation, facts: ModelFacts) -> NextPrompt:
    """Return next_turn() as if nothing was in the composer."""
    return next_turn(replace(conversation, draft="", draft_attachments=()), facts)


def is_same_prompt(one: NextPrompt, other: NextPrompt) -> bool:
    """Return True if two prompts differ only in their conversations."""
    return replace(one, conversation_id=other.conversation_id) == other


def is_stopped_early(conversation: Conversation) -> bool:
    """Return True if the newest message on show was stopped before the first word of its answer."""
    path = shown_path(conversation)
    return bool(path) and is_empty_reply(path[-1])


def turn_ahead(conversation: Conversation, facts: ModelFacts) -> NextPrompt:
    """Return next_turn(), or nothing if the user stopped its last message before an answer.

    A long draft below that message is read ahead, and the message with it.
    """
    if is_stopped_early(conversation) and not has_long_draft(conversation):
        return NextPrompt(conversation_id=conversation.conversation_id)
    return next_turn(conversation, facts)


class OpenEdit(NamedTuple):
    """The content of the editor of a message."""

    node_id: str
    text: str
    files: tuple[Attachment, ...] | None = None  # None: those of the message


# A request that is only counted has no seed, and its messages have no ids in the conversation.
_COUNTED = TurnIds(user=NodeId("counted-user"), reply=NodeId("counted-reply"))


def counted_send(conversation: Conversation, facts: ModelFacts, cards: Cards) -> Request:
    """Return the request that sending the draft would make, to ask what it costs."""
    turn = plan_send(conversation, conversation.draft, _COUNTED, now=0.0)
    return _counted(turn, facts, cards)


def counted_edit(
    conversation: Conversation, edit: OpenEdit, facts: ModelFacts, cards: Cards
) -> Request:
    """Return the request that an edited message would make, to ask what it costs."""
    turn = plan_open_edit(conversation, edit, _COUNTED)
    return _counted(turn, facts, cards)


def counted_regenerate(
    conversation: Conversation, reply_id: NodeId, facts: ModelFacts, cards: Cards
) -> Request:
    """Return the request that another version of an answer would make, to ask what it costs."""
    turn = plan_regenerate(conversation, reply_id, _COUNTED.reply, now=0.0)
    return _counted(turn, facts, cards)


def _counted(turn: Turn, facts: ModelFacts, cards: Cards) -> Request:
    setup = turn.conversation.setup
    return make_request(RequestId("counted"), turn, setup, facts, new_seed=0, cards=cards)


def plan_open_edit(conversation: Conversation, edit: OpenEdit, ids: TurnIds) -> Turn:
    """Return the turn that sending an edited message would begin."""
    node_id, files = NodeId(edit.node_id), edit.files
    return plan_edit(conversation, node_id, edit.text, ids, now=0.0, attachments=files)


def edited_turn(
    conversation: Conversation, node_id: NodeId, text: str, facts: ModelFacts
) -> NextPrompt:
    """Return the prompt of a message or an answer with another text, which need not be complete.

    The result has no messages if the message is gone, or if the text is blank.
    """
    if node_id not in conversation.nodes or not text.strip():
        return NextPrompt(conversation_id=conversation.conversation_id)
    return _turn_of(conversation, messages_edited(conversation, node_id, text), facts)


def _turn_of(
    conversation: Conversation, messages: tuple[Message, ...], facts: ModelFacts
) -> NextPrompt:
    return NextPrompt(
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


def problem_of_pictures(turn: Turn, facts: ModelFacts) -> Problem | None:
    """Return the problem of a turn with pictures that the loaded model can't see, or None."""
    if facts.sees or not any(message.pictures for message in turn.messages):
        return None
    return UnseenPicturesError(attachments.sees_none(facts.title)).problem


def problem_of_turn(turn: Turn, facts: ModelFacts, gone: Container[str]) -> Problem | None:
    """Return the reason why the loaded model can't answer a turn, or None.

    `gone` are the paths of models that cannot be chosen any more.
    """
    return _problem_of_begun(turn, facts, gone) or problem_of_pictures(turn, facts)


def _problem_of_begun(turn: Turn, facts: ModelFacts, gone: Container[str]) -> Problem | None:
    """Return the reason why the loaded model cannot continue the turn's reply, or None.

    If the turn generates a new reply, the result is always None.
    """
    begun = _begun(turn)
    if begun is None or begun.template_hash == facts.template_hash:
        return None
    if begun.model_path in gone:
        cause = models.is_gone(begun.model_title)
        return OtherModelError(cause, advice=words.OTHER_MODEL_GONE_ADVICE).problem
    return OtherModelError(words.written_by(begun.model_title)).problem


def _begun(turn: Turn) -> Generation | None:
    """Return the Generation of the reply that a turn continues, or None for a new reply."""
    return turn.conversation.nodes[turn.reply_id].generation if turn.continues_reply else None


def generation_of(request: Request, turn: Turn, facts: ModelFacts) -> Generation:
    """Return the Generation of a turn's reply. A continued reply keeps its time of reasoning."""
    begun = _begun(turn)
    return Generation(
        model_path=facts.path,
        model_name=facts.name,
        template_hash=facts.template_hash,
        thinking=request.thinking,
        sampling=request.sampling,
        max_tokens=request.max_tokens + turn.num_begun,
        reasoning_s=begun.reasoning_s if begun else None,
    )


def problem_with(status: ModelStatus) -> Problem:
    """Return the problem to show when a message is sent and no model is ready or loading."""
    assert status.problem is not None
    return status.problem
