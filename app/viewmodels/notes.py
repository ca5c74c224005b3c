"""Notes about the model. No Qt, no I/O.

model_note() is shown in an empty chat. gone_note() is shown while the model in use is gone.
reading_note() is shown below the composer: the draft is too long, or the model in use has to read
a chat whose last answer another model wrote.
"""

from __future__ import annotations

from collections.abc import Container

from app.conversation.tree import Conversation, Generation, shown_path
from app.viewmodels import figures
from app.viewmodels.models import ModelPhase, ModelStatus
from app.words import composer, models as words, units
from engine.catalog.card import ModelCard
from engine.errors import ModelFolderError
from engine.events import TokensCounted
from engine.types import Problem

# The note that a model must read a chat is shown from this number of tokens on.
MANY_TOKENS = 100


def model_note(status: ModelStatus, cards: tuple[ModelCard, ...]) -> str:
    """Return a note about a problem or about the demo model; empty if neither applies."""
    if status.num_machines and status.phase is ModelPhase.FAILED:
        return ""  # the card of the lost model has the problem, and Start Again
    if status.problem is not None and status.phase is not ModelPhase.GONE:
        return words.NO_MODELS if _has_no_model(status.problem, status) else str(status.problem)
    in_use = next((card for card in cards if str(card.path) == status.path), None)
    if in_use is not None and in_use.is_starter:
        return f"{words.DEMO_NOTE}."
    return ""


def _has_no_model(problem: Problem, status: ModelStatus) -> bool:
    """Return True if the problem is that no model was found on this computer."""
    return status.phase is ModelPhase.NONE and problem.title == ModelFolderError.title


def gone_note(status: ModelStatus) -> str:
    """Return a note that the model in use is gone, with what helps; empty if it is there."""
    if status.phase is not ModelPhase.GONE or status.problem is None:
        return ""
    return str(status.problem)


def last_generation(conversation: Conversation) -> Generation | None:
    """Return the generation of the last answer on show. It names the conversation's model."""
    nodes = reversed(shown_path(conversation))
    return next((node.generation for node in nodes if node.generation), None)


def is_from_other_model(conversation: Conversation, path: str) -> bool:
    """Return True if another model than the one at `path` wrote the last answer on show."""
    generation = last_generation(conversation)
    return generation is not None and generation.model_path != path


def context_share(conversation: Conversation, status: ModelStatus) -> tuple[float, str] | None:
    """Return how much of the model's context the conversation fills, and a sentence about it.

    Return None if no model is loaded, or if the model in use did not write the last answer.
    """
    generation, facts = last_generation(conversation), status.facts
    if generation is None or generation.usage is None or facts is None:
        return None
    if generation.model_path != facts.path:
        return None
    num_tokens = generation.usage.plan.prompt_tokens + generation.usage.output_tokens
    share = units.share(done=figures.count(num_tokens), total=units.tokens(facts.context_len))
    return num_tokens / facts.context_len, composer.context_used(share)


def reading_note(
    conversation: Conversation,
    status: ModelStatus,
    size: TokensCounted | None,
    gone: Container[str] = (),
) -> str:
    """Return a note about the next prompt: it is too long, or much of it must be read.

    Args:
        conversation: the conversation on show.
        status: the model in use.
        size: the size of the next prompt, None if it is not known.
        gone: paths of the models that are gone. If one of them wrote the last answer, the note
            names it.

    Returns:
        The note. Empty if no model is loaded or there is nothing to say.
    """
    facts = status.facts
    if facts is None:
        return ""
    name = status.name or facts.name
    if size is not None and size.num_tokens >= facts.context_len:
        return composer.too_long(
            model_name=name,
            num_tokens=figures.count(size.num_tokens),
            limit=units.tokens(facts.context_len),
        )
    generation = last_generation(conversation)
    if generation is None or generation.model_path == facts.path:
        return ""
    notes = [words.is_gone(generation.model_name)] if generation.model_path in gone else []
    unread = 0 if size is None else size.num_tokens - size.num_cached
    if unread >= MANY_TOKENS:
        notes.append(composer.will_read(model_name=name, num_tokens=figures.about(unread)))
    return " ".join(notes)
