"""What the engine is asked for, and what is remembered of it. Pure."""

from __future__ import annotations

from dataclasses import replace

from app.conversation.actions import Turn
from app.conversation.tree import Generation, Setup
from app.viewmodels.models import ModelStatus
from engine.errors import NoModelError
from engine.types import ModelFacts, Problem, Request, RequestId

MAX_TOKENS = 4096


def make_request(
    request_id: RequestId, turn: Turn, setup: Setup, facts: ModelFacts, *, seed: int
) -> Request:
    """Seed is used unless the conversation has its own."""
    return Request(
        request_id=request_id,
        conversation_id=turn.conversation.conversation_id,
        messages=turn.messages,
        new_messages=turn.new_messages,
        sampling=setup.sampling(replace(facts.default_sampling, seed=seed)),
        max_tokens=setup.max_tokens or MAX_TOKENS,
        thinking=setup.thinking if facts.has_thinking else None,
    )


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
    """Why nothing answers."""
    return status.problem or NoModelError("There is nothing to answer with.").problem
