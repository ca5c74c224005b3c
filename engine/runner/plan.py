"""Division of a prompt's tokens into restored, replayed and read. Pure Python, without mlx."""

from __future__ import annotations

from collections import Counter

from engine.chat.prompt import Prompt
from engine.runner.explain import PrefixHit, explain
from engine.runner.history import Known
from engine.types import PromptPlan, Request


def plan_prompt(
    request: Request, prompt: Prompt, found: PrefixHit, known: Known | None
) -> PromptPlan:
    """Count the restored, read and replayed tokens of a prompt, and give reasons for fed tokens.

    A fed token counts as read if it belongs to a message that the request adds or changes, or to
    the generation tail after the last message. All other fed tokens count as replayed.

    Args:
        request: the request, with the indices of the messages that it adds or changes.
        prompt: the token ids, and the start of each message.
        found: the part of the prompt that the prefix cache held.
        known: the earlier path of the conversation that agrees longest with the prompt.
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
    """Format a plan as a log line: counts and kinds of reasons, but no message text."""
    counts = Counter[str]()
    for reason in plan.reasons:
        counts[reason.kind] += reason.num_tokens
    why = ", ".join(f"{kind} {num_tokens}" for kind, num_tokens in counts.items())
    return (
        f"prompt of {plan.prompt_tokens} tokens: matched {plan.matched}, restored {plan.restored}, "
        f"replayed {plan.replayed}, read {plan.read} ({why or 'nothing fed'})"
    )
