"""Where the tokens of a prompt come from, in the words that people are shown. Pure."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from engine.chat.prompt import Prompt
from engine.types import PromptPlan


def plan_prompt(
    prompt: Prompt, restored: int, matched: int, new_messages: AbstractSet[int]
) -> PromptPlan:
    """Split prompt tokens into restored, read (new to the chat) and replayed (the rest).

    Args:
        prompt: the tokens and where each message starts.
        restored: tokens whose state came from the cache.
        matched: tokens that were known, usable or not.
        new_messages: messages that this step adds or changes; the generation tail counts as new.
    """
    ends = [*prompt.message_starts[1:], len(prompt.token_ids)]
    new = {*new_messages, len(prompt.message_starts) - 1}
    read = sum(
        max(0, end - max(start, restored))
        for index, (start, end) in enumerate(zip(prompt.message_starts, ends, strict=True))
        if index in new
    )
    replayed = len(prompt.token_ids) - restored - read
    reasons: list[str] = []
    if matched > restored and replayed > 0:
        reasons.append(f"no state was kept between token {restored:,} and {matched:,}")
    elif replayed > 0:
        reasons.append(f"the prompt differs from what was kept at token {matched:,}")
    return PromptPlan(
        prompt_tokens=len(prompt.token_ids),
        restored=restored,
        replayed=replayed,
        read=read,
        reasons=tuple(reasons),
    )
