"""The text and decode rate of a reply that is being written. Main thread.

controllers/turns.py appends the engine's text deltas. The transcript shows the text, and the
conversation list shows the rate.
"""

from __future__ import annotations

from collections import deque
from dataclasses import InitVar, dataclass, field

from app.conversation.tree import MessageNode
from app.viewmodels.models import work_word
from app.viewmodels.phases import Phase
from app.words import models, state as state_words, units as words
from engine.types import Channel

RATE_AFTER_S = 0.1  # seconds after the first delta before a rate is shown
RATE_OVER_S = 3.0  # seconds of deltas that the rate is measured over


@dataclass(slots=True, eq=False)
class LiveReply:
    """A reply while it is being written. When it ends, its text is stored in the message tree."""

    phase: Phase
    # True if no text came for so long that even a minor line is shown (wait_lines.py)
    is_late: bool = field(default=False, init=False)
    # the stored reply that is continued; None for a new reply
    begun: InitVar[MessageNode | None] = None
    # number of generated tokens, without those of the stored reply that is continued
    num_tokens: int = 0
    _content: list[str] = field(init=False)  # pieces of the answer
    _reasoning: list[str] = field(init=False)  # pieces of the reasoning
    # times in seconds and num_tokens of the deltas of the last RATE_OVER_S, and of the one before
    _recent: deque[tuple[float, int]] = field(default_factory=deque[tuple[float, int]])
    _reasoning_at: float | None = None  # time of the first delta of reasoning, in seconds
    _reasoned_at: float | None = None  # time of the last one, or of the first one of the answer
    _reasons: bool = False  # True if the last delta was reasoning

    def __post_init__(self, begun: MessageNode | None) -> None:
        self._content = [begun.content] if begun else []
        self._reasoning = [begun.reasoning] if begun else []

    @property
    def content(self) -> str:
        return _joined(self._content)

    @property
    def reasoning(self) -> str:
        return _joined(self._reasoning)

    @property
    def tok_s(self) -> float | None:
        """Tokens per second of the last RATE_OVER_S; None for the first RATE_AFTER_S seconds."""
        if not self._recent:
            return None
        (first_at, first_tokens), (last_at, num_tokens) = self._recent[0], self._recent[-1]
        if last_at - first_at < RATE_AFTER_S:
            return None
        return (num_tokens - first_tokens) / (last_at - first_at)

    @property
    def activity(self) -> str:
        """The text for the list of chats: the decode rate, or the work before a rate is known."""
        if self.tok_s is not None:
            return words.tokens_per_second(f"{self.tok_s:.0f}")
        if self.num_tokens:
            return models.answering(1)
        return work_word([self.phase]) or state_words.waiting(0)

    @property
    def reasoning_s(self) -> float | None:
        """Seconds of reasoning so far, without those of the stored reply; None without any."""
        if self._reasoning_at is None or self._reasoned_at is None:
            return None
        return self._reasoned_at - self._reasoning_at

    def append_delta(self, channel: Channel, text: str, *, num_tokens: int, now: float) -> None:
        self.is_late = False
        (self._reasoning if channel is Channel.REASONING else self._content).append(text)
        if channel is Channel.REASONING:
            self._reasoning_at = now if self._reasoning_at is None else self._reasoning_at
            self._reasoned_at, self._reasons = now, True
        elif self._reasons:
            self._reasoned_at, self._reasons = now, False
        self.num_tokens = num_tokens
        self._recent.append((now, num_tokens))
        while len(self._recent) > 2 and self._recent[1][0] <= now - RATE_OVER_S:
            self._recent.popleft()


def _joined(pieces: list[str]) -> str:
    # Join the pieces only when the text is read: a join per delta would copy the text each time.
    if len(pieces) > 1:
        pieces[:] = ["".join(pieces)]
    return pieces[0] if pieces else ""
