"""Notes about the model. No Qt, no I/O.

model_note() is shown in an empty chat. reading_note() is shown in a chat if another model wrote the
last answer, because the model in use has to read the whole chat.
"""

from __future__ import annotations

from app.conversation.tree import Conversation, shown_path
from app.viewmodels import figures
from app.viewmodels.models import ModelPhase, ModelStatus
from app.words import composer, models as words
from engine.catalog.card import ModelCard
from engine.errors import ModelFolderError
from engine.types import Problem


def model_note(status: ModelStatus, cards: tuple[ModelCard, ...]) -> str:
    """Return a note about a problem or about the demo model; empty if neither applies."""
    if status.problem is not None:
        return words.NO_MODELS if _has_no_model(status.problem, status) else str(status.problem)
    in_use = next((card for card in cards if str(card.path) == status.path), None)
    if in_use is not None and in_use.is_starter:
        return f"{words.DEMO_NOTE}."
    return ""


def _has_no_model(problem: Problem, status: ModelStatus) -> bool:
    """Return True if the problem is that no model was found on this computer."""
    return status.phase is ModelPhase.NONE and problem.title == ModelFolderError.title


def reading_note(conversation: Conversation, status: ModelStatus) -> str:
    """Return a note that the model will read the whole chat when the next message is sent.

    The note is empty if the model in use wrote the last answer, or if no model is loaded.
    """
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
