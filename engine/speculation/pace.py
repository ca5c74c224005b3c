"""Choose how many drafts a pass verifies, by expected tokens per second. Pure Python, without a clock.

A pass of several tokens takes longer than a pass of one, by an amount that depends on the model and
the device. So a draft is worth verifying only if it is likely enough to be right:

- Costs has the duration of a decode step for each pass length, as measured on this machine.
- Pace has the acceptance of one conversation's drafts: the shares of first and of later drafts that
  the model confirmed, by the length of the match that they came from.
- `choose` takes the pass length with the most expected tokens per second.

Drafts whose acceptance is unknown or low must be tried from time to time. Each conversation has an
account of time for this: every step adds 2 % of its duration, confirmed drafts add the time that they
saved, and wrong drafts subtract the time that they took. A pass is made only if the account covers
the loss in the worst case, that none of its drafts is right. So speculation costs at most 2 % of the
time, plus the first trial of each match length, whatever the text is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

MAX_PASS_LEN = 8  # highest number of tokens of a pass: the newest token and the drafts
_SHARE = 0.02  # share of the time that trials may cost
_MAX_SAVED = 4.0  # highest balance of an account, in plain steps of one token
_RATE = 0.15  # weight of the newest outcome in the averages

# Upper ends of the classes of match lengths, and the acceptance of first drafts before any outcome
# is known. Measured on replies of SmolLM2-135M to 46 prompts.
_CLASSES = {2: 0.4, 3: 0.5, 4: 0.6, 6: 0.7, 9: 0.8, 12: 0.93}
_LATER = 0.75  # least acceptance of later drafts before any outcome is known

# Duration of a pass of n tokens before it is measured, in passes of one token: 1 + _SLOPE * (n - 1)
# for each conversation in the pass. Most devices are faster.
_SLOPE = 0.45


@dataclass(frozen=True, slots=True)
class Costs:
    """The duration of a decode step by the length of its pass, for one number of conversations."""

    num_rows: int  # number of conversations in the pass
    # Durations of steps with passes of 1, 2, ... MAX_PASS_LEN tokens per conversation. The unit is a
    # step with a pass of one token.
    relative: tuple[float, ...]

    @classmethod
    def of(cls, num_rows: int, seconds: dict[int, float]) -> Costs:
        """Return the costs for some measured durations, by pass length.

        Durations between two measured ones are interpolated. Durations above the longest measured
        pass grow as on a slow device.
        """
        one = seconds.get(1, 0.0)
        known = {n: s / one for n, s in seconds.items()} if one else {}
        known[1] = 1.0
        return cls(num_rows, tuple(_cost(known, n, num_rows) for n in range(1, MAX_PASS_LEN + 1)))

    def loss(self, pass_len: int) -> float:
        """Return the time that a pass takes longer than a pass of one token, at least 0."""
        return max(0.0, self.relative[pass_len - 1] - 1.0)


def _cost(known: dict[int, float], pass_len: int, num_rows: int) -> float:
    below = max(n for n in known if n <= pass_len)
    above = min((n for n in known if n >= pass_len), default=None)
    if above is None:
        return known[below] + _SLOPE * num_rows * (pass_len - below)
    if above == below:
        return known[below]
    share = (pass_len - below) / (above - below)
    return known[below] + share * (known[above] - known[below])


@dataclass(slots=True)
class Pace:
    """The acceptance of one conversation's drafts, and its account of time."""

    # Acceptance of first drafts and of later drafts, by class of match length.
    _first: dict[int, float] = field(default_factory=lambda: dict(_CLASSES))
    _later: dict[int, float] = field(
        default_factory=lambda: {end: max(_LATER, share) for end, share in _CLASSES.items()}
    )
    _saved: float = 0.0  # balance of the account, in plain steps of one token
    _tried: set[int] = field(default_factory=set[int])  # classes that were tried once

    def expected(self, match_len: int, num_drafts: int) -> float:
        """Return the expected number of confirmed drafts of a pass."""
        match_class = _class_of(match_len)
        total, chance = 0.0, 1.0
        for index in range(num_drafts):
            chance *= (self._first if index == 0 else self._later)[match_class]
            total += chance
        return total

    def may_lose(self, match_len: int, loss: float) -> bool:
        """Return True if the account covers a loss, or if this class was never tried."""
        return loss <= self._saved or _class_of(match_len) not in self._tried

    def note_step(self) -> None:
        """Record a decode step, with drafts of this conversation or without."""
        self._save(_SHARE)

    def note_drafts(
        self, match_len: int, num_drafts: int, num_accepted: int, *, gain: float
    ) -> None:
        """Record the outcome of a pass with drafts of this conversation.

        Args:
            match_len: length of the match that the drafts came from.
            num_drafts: number of drafts, at least 1.
            num_accepted: number of drafts that the model confirmed.
            gain: time that the pass saved, in plain steps of one token. Negative if it cost time.
        """
        match_class = _class_of(match_len)
        is_first = match_class not in self._tried
        self._tried.add(match_class)
        if not is_first or gain > 0:
            self._save(gain)
        # A draft after a wrong draft had no outcome.
        for index in range(min(num_accepted + 1, num_drafts)):
            shares = self._first if index == 0 else self._later
            shares[match_class] += _RATE * ((index < num_accepted) - shares[match_class])

    def _save(self, time: float) -> None:
        self._saved = min(_MAX_SAVED, self._saved + time)


@dataclass(frozen=True, slots=True)
class Offer:
    """The drafts that one conversation has for the next pass."""

    pace: Pace
    match_len: int
    num_drafts: int  # at least 1


def choose(offers: Sequence[Offer | None], costs: Costs, extra: float = 0.0) -> list[int]:
    """Return how many drafts of each conversation the next pass verifies.

    Args:
        offers: the drafts of all conversations of the pass. None: no drafts.
        costs: the durations of steps with as many conversations.
        extra: time that each step takes beside its pass, in plain steps. For example, a part of
            another prompt is fed after each step.
    """
    longest = 1 + max((offer.num_drafts for offer in offers if offer is not None), default=0)
    best, best_rate = [0] * len(offers), len(offers) / (1.0 + extra)
    for pass_len in range(2, min(longest, MAX_PASS_LEN) + 1):
        paying = _paying(offers, costs.loss(pass_len))
        counts = [min(o.num_drafts, pass_len - 1) if o else 0 for o in paying]
        expected = sum(
            o.pace.expected(o.match_len, n) for o, n in zip(paying, counts, strict=True) if o
        )
        rate = (len(offers) + expected) / (costs.relative[pass_len - 1] + extra)
        if rate > best_rate:
            best, best_rate = counts, rate
    if any(best):
        return best
    # No draft is worth its time. Try one of each conversation that has saved time for a trial.
    return [int(offer is not None) for offer in _paying(offers, costs.loss(2))]


def _paying(offers: Sequence[Offer | None], loss: float) -> list[Offer | None]:
    """Return the offers of the conversations whose accounts cover their part of a loss.

    The other conversations get None. The loss is divided among those that verify drafts.
    """
    paying = list(offers)
    while num_paying := sum(offer is not None for offer in paying):
        part = loss / num_paying
        covered = [o if o and o.pace.may_lose(o.match_len, part) else None for o in paying]
        if covered == paying:
            break
        paying = covered
    return paying


def _class_of(match_len: int) -> int:
    return next((end for end in _CLASSES if match_len <= end), max(_CLASSES))
