"""Sentences about the model: in an empty chat, and before a message that will be read anew. Pure."""

from __future__ import annotations

from app.conversation.tree import Conversation, shown_path
from app.viewmodels import figures
from app.viewmodels.models import ModelPhase, ModelStatus
from app.words import composer, models as words
from engine.catalog.card import ModelCard
from engine.errors import ModelFolderError
from engine.types import Problem


def model_note(status: ModelStatus, cards: tuple[ModelCard, ...]) -> str:
    """What a person should know of the model before the first message; empty when all is well."""
    if status.problem is not None:
        return words.NO_MODELS if _has_no_model(status.problem, status) else str(status.problem)
    in_use = next((card for card in cards if str(card.path) == status.path), None)
    if in_use is not None and in_use.is_starter:
        return f"{words.DEMO_NOTE}."
    return ""


def _has_no_model(problem: Problem, status: ModelStatus) -> bool:
    """Nothing went wrong: there is not even the starter model."""
    return status.phase is ModelPhase.NONE and problem.title == ModelFolderError.title


def reading_note(conversation: Conversation, status: ModelStatus) -> str:
    """Says what another model than the last answer's will have to read; empty when it is the same."""
    generation = next(
        (node.generation for node in reversed(shown_path(conversation)) if node.generation), None
    )
    if generation is None or generation.usage is None or status.path == generation.model_path:
        return ""
    if status.facts is None:
        return ""
    length = generation.usage.plan.prompt_tokens + generation.usage.output_tokens
    name = status.name or status.facts.name
    return composer.will_read(model_name=name, num_tokens=figures.about(length))
