"""The note after the first return to a chat that spared much time. No Qt, no I/O."""

from __future__ import annotations

from app.conversation.tree import Conversation
from app.viewmodels import figures
from app.viewmodels.reading import prefill_rate
from app.words import promise as words
from engine.types import Usage

MIN_SPARED_S = 2.0


def measured_rate(conversation: Conversation, model_path: str) -> float | None:
    """Return the rate of the longest reading among a conversation's answers, or None.

    Only answers of the model count. The rate is in tokens per second.
    """
    usages = [
        node.generation.usage
        for node in conversation.nodes.values()
        if node.generation is not None
        and node.generation.usage is not None
        and node.generation.model_path == model_path
    ]
    longest = max(usages, key=lambda usage: usage.plan.replayed + usage.plan.read, default=None)
    return None if longest is None else prefill_rate(longest)


def return_note(usage: Usage, tokens_per_s: float, num_ahead: int) -> str:
    """Return the note, or an empty string if at most MIN_SPARED_S were spared.

    Args:
        usage: that of the answer after the return.
        tokens_per_s: measured rate of reading.
        num_ahead: tokens that were read ahead since the chat was opened. They were not spared.
    """
    num_tokens = usage.plan.restored - num_ahead
    needed_s = num_tokens / tokens_per_s
    if needed_s - usage.restore_ms / 1000 <= MIN_SPARED_S:
        return ""
    return words.remembered(
        num_tokens=num_tokens,
        time=figures.milliseconds(usage.restore_ms),
        spared=figures.seconds(needed_s),
    )
