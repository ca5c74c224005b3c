"""The phases of an answer, from the search for a model to the plan of its prompt. No Qt, no I/O.

state_line.py turns them into text.
"""

from __future__ import annotations

from dataclasses import dataclass

from engine.usage import PromptPlan


@dataclass(frozen=True, slots=True)
class Preparing:
    """Phase: the app searches for models or unpacks the demo model. `text` describes the work."""

    text: str


@dataclass(frozen=True, slots=True)
class Importing:
    """Phase: the engine imports its libraries. This happens once after the start of the app."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loading:
    """Phase: the engine loads the weights of the model."""

    name: str
    fraction: float
    loaded_bytes: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Waiting:
    """Phase: the request is queued, or another prompt is read before its own."""

    ahead: int  # number of answers before this one in the queue
    text: str = ""  # the reason for the wait; empty if only the queue is known
    shorter: str = ""  # the same without a name, if `text` has one


@dataclass(frozen=True, slots=True)
class Stopping:
    """Phase: the user has stopped an answer without text, and the engine ends its forward pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Phase: the engine feeds the prompt. `done` and `total` are numbers of tokens."""

    done: int
    total: int  # number of tokens to feed; restored tokens do not count
    eta_s: float | None  # estimated seconds until all tokens are fed; None if unknown
    is_shared: bool = False  # True while answers in other chats run: eta_s is then an upper bound


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """Phase: the engine has reported how many tokens it restores, replays and reads."""

    plan: PromptPlan
    restore_ms: float
    queue_ms: float = 0.0  # milliseconds from Send to the start of the request
    load_ms: float = 0.0  # part of queue_ms in which no model was ready
    saved_ms: float = 0.0  # Usage.saved_ms. 0 before the end of the answer
    # Milliseconds from Send to the first token. None before it, and if the answer has no token.
    wait_ms: float | None = None

    @property
    def is_read(self) -> bool:
        """True if the whole prompt is read, as far as it is known."""
        return self.wait_ms is not None or not self.plan.num_fed

    @property
    def worked_ms(self) -> float | None:
        """Milliseconds from the start of the request to the first token."""
        return None if self.wait_ms is None else max(0.0, self.wait_ms - self.queue_ms)


Phase = Preparing | Importing | Loading | Waiting | Stopping | Reading | Planned
