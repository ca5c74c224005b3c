"""Notes about the model. No Qt, no I/O.

model_note() is shown in an empty chat. gone_note() is shown while the model in use is gone.
too_long_note() and reading_note() are shown below the composer: the draft is too long, or the model
in use will read for long, or a chat whose last answer another model wrote.
"""

from __future__ import annotations

from collections.abc import Container

from app.conversation.tree import Conversation, Generation, shown_path
from app.viewmodels import figures
from app.viewmodels.cost import cost_line
from app.viewmodels.models import ModelPhase, ModelStatus
from app.viewmodels.reading import ToRead
from app.words import composer, models as words, units
from engine.catalog.card import ModelCard
from engine.problem import Problem, ProblemKind
from engine.questions import TokensCounted

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
    return status.phase is ModelPhase.NONE and problem.kind is ProblemKind.NO_MODEL


def gone_note(status: ModelStatus) -> str:
    """Return a note that the model in use is gone, with what helps; empty if it is there."""
    if status.phase is not ModelPhase.GONE or status.problem is None:
        return ""
    return str(status.problem)


def last_generation(conversation: Conversation) -> Generation | None:
    """Return the generation of the last answer on show that a model of this app wrote.

    It names the conversation's model. An answer from another app has no path of a model.
    """
    found = (node.generation for node in reversed(shown_path(conversation)))
    return next((one for one in found if one is not None and one.model_path), None)


def num_held_tokens(conversation: Conversation, status: ModelStatus) -> int | None:
    """Return the tokens of a conversation up to its last answer, as its model counted them.

    Return None if no model is loaded, or if the model in use did not write the last answer.
    """
    generation, facts = last_generation(conversation), status.facts
    if generation is None or generation.usage is None or facts is None:
        return None
    if generation.model_path != facts.path:
        return None
    return generation.usage.plan.prompt_tokens + generation.usage.output_tokens


def context_share(conversation: Conversation, status: ModelStatus) -> tuple[float, str] | None:
    """Return how much of the model's context the conversation fills, and a sentence about it.

    Return None if no model is loaded, or if the model in use did not write the last answer.
    """
    num_tokens, facts = num_held_tokens(conversation, status), status.facts
    if num_tokens is None or facts is None:
        return None
    share = units.share(done=figures.count(num_tokens), total=units.tokens(facts.context_len))
    return num_tokens / facts.context_len, composer.context_used(share)


def too_long_note(
    status: ModelStatus, size: TokensCounted | None, *, is_editing: bool = False
) -> str:
    """Return a note that the next prompt is too long for the model in use; empty if it fits.

    Args:
        status: the model in use.
        size: the size of the next prompt, None if it is not known.
        is_editing: True if the prompt ends with the message that is being edited.
    """
    facts = status.facts
    if facts is None or size is None or not size.num_too_long:
        return ""
    if size.is_text_too_long:
        subject = composer.THIS_TEXT
    else:
        subject = composer.CHAT_TO_HERE if is_editing else composer.THIS_CHAT
    return composer.too_long(
        subject=subject,
        model_name=status.name or facts.title,
        num_tokens=figures.count(size.num_too_long),
        limit=units.tokens(facts.context_len),
    )


def reading_note(
    conversation: Conversation,
    status: ModelStatus,
    to_read: ToRead | None,
    gone: Container[str] = (),
    *,
    has_text: bool = False,
) -> str:
    """Return a note on what the next message makes the model read.

    Args:
        conversation: the conversation on show.
        status: the model in use.
        to_read: the tokens that the next message makes it read; None if they are not known.
        gone: paths of the models that are gone. If one of them wrote the last answer, the note
            names it.
        has_text: True if there is a draft or an edit. Its cost is shown even if it is small.

    Returns:
        The note. Empty if no model is loaded or there is nothing to say.
    """
    facts = status.facts
    if facts is None:
        return ""
    generation = last_generation(conversation)
    is_other = generation is not None and generation.model_path != facts.path
    notes: list[str] = []
    if generation is not None and is_other and generation.model_path in gone:
        notes.append(words.is_gone(generation.model_title))
    is_much = to_read is not None and to_read.num_tokens >= MANY_TOKENS
    if to_read is not None and has_text and not (is_other and is_much):
        notes.append(cost_line(to_read))
    elif to_read is not None and is_much and (is_other or to_read.is_long):
        note = composer.will_read_chat if is_other else composer.will_read
        tokens = figures.about(to_read.num_tokens)
        notes.append(note(status.name or facts.title, tokens, to_read.time))
    return " ".join(notes)
