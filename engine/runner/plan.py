"""Where the tokens of a prompt come from. Pure."""

from __future__ import annotations

from collections import Counter

from engine.chat.prompt import Prompt
from engine.runner.explain import PrefixHit, explain
from engine.runner.history import Known
from engine.types import PromptPlan, Request


def plan_prompt(
    request: Request, prompt: Prompt, found: PrefixHit, known: Known | None
) -> PromptPlan:
    """Split a prompt's tokens into restored, read (new to the chat) and replayed (the rest).

    Messages that the request adds or changes are read, and so is the generation tail.

    Args:
        request: says which messages are new.
        prompt: the tokens and where each message starts.
        found: what the prefix cache had of it.
        known: what the conversation fed of it before.
    """
    ends = [*prompt.message_starts[1:], len(prompt.token_ids)]
    new = {*request.new_messages, len(prompt.message_starts) - 1}
    read = sum(
        max(0, end - max(start, found.restored))
        for index, (start, end) in enumerate(zip(prompt.message_starts, ends, strict=True))
        if index in new
    )
    return PromptPlan(
        prompt_tokens=len(prompt.token_ids),
        restored=found.restored,
        replayed=len(prompt.token_ids) - found.restored - read,
        read=read,
        matched=found.matched,
        reasons=explain(request, prompt, found, known),
    )


def log_line(plan: PromptPlan) -> str:
    """A plan in counts and kinds: nothing of what anybody wrote."""
    counts = Counter[str]()
    for reason in plan.reasons:
        counts[reason.kind] += reason.num_tokens
    why = ", ".join(f"{kind} {num_tokens}" for kind, num_tokens in counts.items())
    return (
        f"prompt of {plan.prompt_tokens} tokens: matched {plan.matched}, restored {plan.restored}, "
        f"replayed {plan.replayed}, read {plan.read} ({why or 'nothing fed'})"
    )
