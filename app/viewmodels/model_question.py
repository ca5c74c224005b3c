"""The question which model continues a chat: the one that answered, or the one in use. No I/O."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from app.conversation.tree import Conversation, Generation
from app.viewmodels import figures
from app.viewmodels.models import ModelPhase, ModelStatus, shown_name
from app.viewmodels.notes import MANY_TOKENS, last_generation
from app.words import models as words
from engine.catalog.card import ModelCard

Cards = tuple[ModelCard, ...]
# Phases in which the model in use can continue a chat, now or soon.
_ASKED_IN = frozenset(
    {
        ModelPhase.IMPORTING,
        ModelPhase.CLOSING,
        ModelPhase.CONNECTING,
        ModelPhase.LOADING,
        ModelPhase.CHECKING,
        ModelPhase.READY,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelQuestion:
    """The texts of the question."""

    sentence: str
    cost: str  # sentence with the tokens that the model in use would read; empty: few or unknown
    name: str  # the chat's model
    name_in_use: str  # the model in use
    use: str  # text of the button that loads the chat's model; empty if it cannot be loaded
    stay: str  # text of the button that keeps the model in use; empty if that model is gone


def uses_other_model(conversation: Conversation, status: ModelStatus, cards: Cards) -> bool:
    """Return True if another model than the one in use wrote the last answer on show.

    If the model in use is gone, the other model must be one that can be loaded.
    """
    generation = last_generation(conversation)
    if generation is not None and status.phase is ModelPhase.GONE:
        return any(card.usable and card.is_at(generation.model_path) for card in cards)
    if generation is None or status.phase not in _ASKED_IN:
        return False
    return not is_same_model(generation.model_path, status.path, cards)


def is_same_model(path: str, other: str, cards: Cards) -> bool:
    """Return True if two paths belong to one model. It may have moved or have a newer revision."""
    return where_now(path, cards) == where_now(other, cards)


def where_now(path: str, cards: Cards) -> str:
    """Return the present path of a model. It differs if another revision replaced the model."""
    return next((str(card.path) for card in cards if card.is_at(path)), path)


def model_question(
    conversation: Conversation,
    status: ModelStatus,
    cards: Cards,
    gone: Container[str],
    unread: int | None,
) -> ModelQuestion:
    """Return the question about a conversation for which uses_other_model() is True.

    Args:
        conversation: the conversation on show.
        status: the model in use.
        cards: the models on this machine.
        gone: paths of the models that are gone.
        unread: number of tokens that the model in use would read; None if it is not known.
    """
    generation = last_generation(conversation)
    assert generation is not None
    card = next((card for card in cards if card.is_at(generation.model_path)), None)
    name = generation.model_title if card is None else card.title
    in_use = shown_name(status, cards)
    cost = ""
    if unread is not None and unread >= MANY_TOKENS:
        cost = words.would_read(in_use, figures.about(unread))
    why_not = _why_not(generation, card, gone)
    return ModelQuestion(
        sentence=words.chat_used_but(name, why_not) if why_not else words.chat_used(name),
        cost=cost,
        name=name,
        name_in_use=in_use,
        use="" if why_not else words.use_model(name),
        stay="" if status.phase is ModelPhase.GONE else words.stay_with(in_use),
    )


def _why_not(generation: Generation, card: ModelCard | None, gone: Container[str]) -> str:
    """Return the reason why the model of a chat cannot be loaded, or an empty string."""
    if card is None and generation.model_path in gone:
        return words.WHICH_IS_GONE
    return words.WHICH_CANT_BE_LOADED if card is not None and not card.usable else ""
