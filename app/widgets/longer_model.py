"""The offer of a model that can read what is too long for the model in use. Main thread."""

from __future__ import annotations

from app.controllers.core import Core
from app.widgets.button_row import Label
from app.widgets.notice import Notice
from app.words import composer as words, models, units
from engine.catalog.card import ModelCard
from engine.types import Problem, ProblemKind


def is_too_long(problem: Problem) -> bool:
    """Return True if the problem is that a chat or a text exceeds the model's context."""
    return problem.kind in (ProblemKind.CONTEXT_FULL, ProblemKind.TEXT_TOO_LONG)


def offer_longer_model(core: Core, notice: Notice) -> None:
    """Look for a model that can read the chat or the text, and add it to the notice on show."""
    problem = notice.problem
    if problem is None or not problem.num_tokens:
        return
    is_chat = problem.kind is ProblemKind.CONTEXT_FULL

    def offer(card: ModelCard) -> None:
        if notice.problem is problem and notice.isVisible():
            notice.add_choice(
                words.can_read(card.name, units.tokens(card.context_len), is_chat=is_chat),
                Label(models.use_model(card.name), card.name),
                lambda: core.models.choose(card.path),
            )

    core.longer_models.find(problem.num_tokens, offer)
