"""The interface of drafters: objects that guess the next tokens of replies. Engine thread only.

Decoder asks the drafter of a loaded model before each step. It verifies the guesses, called drafts,
in one forward pass. A drafter decides only how many tokens a pass feeds, and never which tokens a
reply gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence as Items
from typing import Protocol

from typing_extensions import override

from engine.runner.sequence import Sequence

# Token ids that may follow the newest token of a reply, in order.
Drafts = tuple[int, ...]
# Function that drafts with the multi-token prediction head of the model. The argument is the number
# of drafts by sequence. Sequences whose drafting fails are missing in the result.
HeadDrafts = Callable[[Mapping[Sequence, int]], Mapping[Sequence, Drafts]]


class Drafter(Protocol):
    """The source of the drafts of all replies of a loaded model."""

    def may_propose(self, sequences: Items[Sequence]) -> bool:
        """Return True if `propose` may return drafts once the drawn tokens are read.

        If the result is False, the step looks ahead. At this point the newest token of a sequence
        may be drawn but not read, so the result is a guess.
        """
        ...

    def propose(
        self, sequences: Items[Sequence], draft_with_head: HeadDrafts
    ) -> Mapping[Sequence, Drafts]:
        """Return the drafts for some of the sequences that take drafts (Sequence.takes_drafts).

        The newest tokens of all sequences are read.

        No draft may end a reply, and a reply must be allowed to get one token more than its drafts:
        a reply ends with the last token that a pass draws, never with an earlier one.

        Args:
            sequences: all sequences that the next pass feeds.
            draft_with_head: may be called if the model has a head (ModelAdapter.has_head).
        """
        ...

    def push(self, sequence: Sequence, token_id: int) -> None:
        """Add a new token of a sequence. Decoder calls this before the token is delivered."""
        ...

    def note_beside(self, seconds: float) -> None:
        """Record the time that other work takes after each of the next steps, 0 for none."""
        ...

    def note_pass(self, sequences: Items[Sequence], pass_len: int, seconds: float) -> None:
        """Record the time from the launch of a pass until its tokens were read.

        Args:
            sequences: the sequences that the pass fed.
            pass_len: number of tokens that the pass fed to each sequence, including padding.
            seconds: the duration of the pass. With look-ahead, the duration of the whole step.
        """
        ...

    def note_drafts(self, sequence: Sequence, num_drafts: int, num_accepted: int) -> None:
        """Record how many of a sequence's drafts the model confirmed. It had at least one draft."""
        ...

    def measure_passes(self) -> bool:
        """Time a few passes of the model. Return False once nothing is left to time."""
        ...

    def forget(self, sequence: Sequence) -> None:
        """Drop what is stored for a sequence that ended. Idempotent."""
        ...


class NoDrafts(Drafter):
    """A drafter that never proposes drafts, so that each pass feeds one token per sequence."""

    @override
    def may_propose(self, sequences: Items[Sequence]) -> bool:
        return False

    @override
    def propose(
        self, sequences: Items[Sequence], draft_with_head: HeadDrafts
    ) -> Mapping[Sequence, Drafts]:
        return {}

    @override
    def push(self, sequence: Sequence, token_id: int) -> None: ...

    @override
    def note_beside(self, seconds: float) -> None: ...

    @override
    def note_pass(self, sequences: Items[Sequence], pass_len: int, seconds: float) -> None: ...

    @override
    def note_drafts(self, sequence: Sequence, num_drafts: int, num_accepted: int) -> None: ...

    @override
    def measure_passes(self) -> bool:
        return False

    @override
    def forget(self, sequence: Sequence) -> None: ...
