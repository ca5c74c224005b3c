"""An answer that is being written: what has arrived so far. Main thread.

The chat controller fills it; the transcript's items and the conversation list read it.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field

from app.conversation.tree import MessageNode
from app.viewmodels.state_line import Phase
from engine.types import Channel

RATE_AFTER_S = 0.1  # of writing before a rate means anything


@dataclass(slots=True, eq=False)
class LiveReply:
    """Streamed text lives here until the reply ends and becomes part of the tree.

    Of a reply that goes on, what it says already is here from the start; num_tokens are new ones.
    """

    phase: Phase
    begun: InitVar[MessageNode | None] = None
    num_tokens: int = 0
    _content: list[str] = field(init=False)
    _reasoning: list[str] = field(init=False)
    _first_at: float | None = None
    _first_tokens: int = 0
    _last_at: float = 0.0

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
        """Decode rate so far; None until there is one."""
        if self._first_at is None or self._last_at - self._first_at < RATE_AFTER_S:
            return None
        return (self.num_tokens - self._first_tokens) / (self._last_at - self._first_at)

    def append_delta(self, channel: Channel, text: str, *, num_tokens: int, now: float) -> None:
        (self._reasoning if channel is Channel.REASONING else self._content).append(text)
        self.num_tokens = num_tokens
        self._last_at = now
        if self._first_at is None:
            self._first_at = now
            self._first_tokens = num_tokens


def _joined(pieces: list[str]) -> str:
    # Joined once a reader asks, so that thousands of small pieces are not copied each time.
    if len(pieces) > 1:
        pieces[:] = ["".join(pieces)]
    return pieces[0] if pieces else ""
