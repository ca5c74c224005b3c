"""Notes about the model. No Qt, no I/O.

model_note() is shown in an empty chat. gone_note() is shown while the model in use is gone.
reading_note() is shown in a chat if another model wrote the last answer, because the model in use
has to read the whole chat.
"""

from __future__ import annotations

from collections.abc import Container

from app.conversation.tree import Conversation, Generation, shown_path
from app.viewmodels import figures
from app.viewmodels.models import ModelPhase, ModelStatus
from app.words import composer, models as words
from engine.catalog.card import ModelCard
from engine.errors import ModelFolderError
from engine.types import Problem


def model_note(status: ModelStatus, cards: tuple[ModelCard, ...]) -> str:
    """Return a note about a problem or about the demo model; empty if neither applies."""
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


def reading_note(conversation: Conversation, status: ModelStatus, gone: Container[str] = ()) -> str:
    """Return a note that the model will read the whole chat when the next message is sent.

    The note is empty if the model in use wrote the last answer, or if no model is loaded. It names
    the model that wrote the last answer if its path is among those that are gone.
    """
    generation = last_generation(conversation)
    if generation is None or generation.usage is None or status.path == generation.model_path:
        return ""
    if status.facts is None:
        return ""
    length = generation.usage.plan.prompt_tokens + generation.usage.output_tokens
    name = status.name or status.facts.name
    note = composer.will_read(model_name=name, num_tokens=figures.about(length))
    is_gone = generation.model_path in gone
    return f"{words.is_gone(generation.model_name)} {note}" if is_gone else note
