"""Division of a prompt's tokens into restored, replayed and read. Pure Python, without mlx."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from engine.chat.prompt import Prompt
from engine.picture_ids import picture_spans
from engine.runner.explain import PrefixHit, explain
from engine.runner.history import Known
from engine.types import Request
from engine.usage import PromptPlan, Reason


def plan_prompt(
    request: Request,
    prompt: Prompt,
    found: PrefixHit,
    known: Known | None,
    end: int | None = None,
) -> PromptPlan:
    """Count the restored, read and replayed tokens of a prompt, and give reasons for fed tokens.

    Args:
        request: the request, with the indices of the messages that no model has read.
        prompt: the token ids, and the start of each message.
        found: the part of the prompt that the prefix cache held.
        known: the earlier path of the conversation that agrees longest with the prompt.
        end: number of tokens in the caches after a stop while the prompt was read. None: all.
    """
    end = len(prompt.token_ids) if end is None else end
    reasons = explain(request, prompt, found, known, end)
    replayed = _num_again(reasons)
    return PromptPlan(
        prompt_tokens=len(prompt.token_ids),
        restored=found.restored,
        replayed=replayed,
        read=end - found.restored - replayed,
        matched=found.matched,
        restored_disk=min(found.on_disk, found.restored),
        restored_ahead=found.fed_ahead,
        picture_tokens=sum(
            span.end - span.start
            for span in picture_spans(prompt.token_ids[:end])
            if span.start >= found.restored
        ),
        reasons=reasons,
    )


def _num_again(reasons: Iterable[Reason]) -> int:
    return sum(one.num_tokens for one in reasons if one.is_again)


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
