"""Choose how many drafts a pass verifies, by expected tokens per second. Pure Python, no clock.

A pass of several tokens takes longer than a pass of one, by an amount that depends on the model and
the device. So a draft is worth verifying only if it is likely enough to be right:

- Costs has the duration of a decode step for each pass length, as measured on this machine.
- Pace has the acceptance of one conversation's drafts: the shares of first and of later drafts that
  the model confirmed, by the length of the match that they came from. Drafts of a multi-token
  prediction head (HEAD) have shares of their own.
- `choose` takes the pass length and the drafts with the most expected tokens per second. A head
  that drafts too slowly or too badly for its model is not chosen.

Drafts whose acceptance is unknown or low must be tried from time to time. Each conversation has an
account of time for this: every step adds 2 % of its duration, confirmed drafts add the time that
they saved, and wrong drafts subtract the time that they took. A pass is made only if the account
covers the loss in the worst case, that none of its drafts is right. A step that waited for its
token, because drafts were expected, and then had none, is charged what look-ahead saves on a usual
machine. So speculation costs at most 2 % of the time, plus the first trial of each match length and
of a head, whatever the text is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.types import MAX_DRAFTS

MAX_PASS_LEN = 1 + MAX_DRAFTS  # highest number of tokens of a pass: the newest token and the drafts
_SHARE = 0.02  # share of the time that trials may cost
# Time that look-ahead saves in a step, in plain steps: from 0.04 for a 27B model to 0.2 for one of
# 0.8B.
_AHEAD_TIME = 0.1
_MAX_SAVED = 4.0  # highest balance of an account, in plain steps of one token
_RATE = 0.15  # weight of the newest outcome in the averages

HEAD = 0  # match length of the drafts of a multi-token prediction head
# Upper ends of the classes of match lengths, and the acceptance of first drafts before any outcome
# is known. Measured on replies of SmolLM2-135M to 46 prompts. For HEAD: between prose and code of
# Qwen3.5-27B (tenstorrent/vllm#442).
_CLASSES = {HEAD: 0.6, 2: 0.4, 3: 0.5, 4: 0.6, 6: 0.7, 9: 0.8, 12: 0.93}
_LATER = 0.75  # least acceptance of later drafts before any outcome is known
# Time of a head for one draft before it is measured, in plain steps. A head of a 4B model takes
# 0.14, most of it for the LM head.
_DRAFT_TIME = 0.15

# Duration of a pass of n tokens before it is measured, in passes of one token: 1 + _SLOPE * (n - 1)
# for each conversation in the pass. Most devices are faster.
_SLOPE = 0.45


@dataclass(frozen=True, slots=True)
class Costs:
    """The duration of a decode step by the length of its pass, for one number of conversations."""

    num_rows: int  # number of conversations in the pass
    # Durations of steps with passes of 1, 2, ... MAX_PASS_LEN tokens per conversation. The unit is
    # a step with a pass of one token.
    relative: tuple[float, ...]
    draft_time: float = _DRAFT_TIME  # time in which a head makes one draft, in the same unit
    one_s: float = 0.0  # seconds of a step with a pass of one token; 0 if it was not measured

    @classmethod
    def of(
        cls,
        num_rows: int,
        seconds: Mapping[int, float],
        draft_s: float | None = None,
        idle: Mapping[int, float] | None = None,
    ) -> Costs:
        """Return the costs for some measured durations.

        Durations between two measured ones are interpolated. Durations above the longest measured
        pass grow as on a slow device.

        Args:
            num_rows: number of conversations in the pass.
            seconds: the durations of steps, by pass length.
            draft_s: seconds in which a head makes one draft. None: not measured.
            idle: durations of passes of one conversation, by pass length. Used for pass lengths
                without a measured step. A pass of several conversations then takes as long as a
                pass of one conversation with as many tokens.
        """
        one, alone = seconds.get(1, 0.0), idle or {}
        known = {
            n // num_rows: s / alone[num_rows]
            for n, s in alone.items()
            if n % num_rows == 0 and num_rows in alone
        }
        if one:
            known |= {n: s / one for n, s in seconds.items()}
        known[1] = 1.0
        relative = tuple(_cost(known, n, num_rows) for n in range(1, MAX_PASS_LEN + 1))
        draft_time = _DRAFT_TIME if draft_s is None or not one else draft_s / one
        return cls(num_rows, relative, draft_time, one)

    def loss(self, pass_len: int) -> float:
        """Return the time that a pass takes longer than a pass of one token, at least 0."""
        return max(0.0, self.relative[pass_len - 1] - 1.0)


def _cost(known: Mapping[int, float], pass_len: int, num_rows: int) -> float:
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

    def expected(self, match_len: int, num_drafts: int) -> list[float]:
        """Return expected numbers of confirmed drafts of passes with 1 ... num_drafts drafts."""
        match_class = _class_of(match_len)
        totals, total, chance = list[float](), 0.0, 1.0
        for index in range(num_drafts):
            chance *= (self._first if index == 0 else self._later)[match_class]
            total += chance
            totals.append(total)
        return totals

    def may_lose(self, match_len: int, loss: float, *, is_first_free: bool) -> bool:
        """Return True if the account covers a loss.

        is_first_free: True if a class that was never tried needs no cover.
        """
        is_free = is_first_free and _class_of(match_len) not in self._tried
        return is_free or loss <= self._saved

    def note_step(self) -> None:
        """Record a decode step, with drafts of this conversation or without."""
        self._save(_SHARE)

    def note_waiting(self, match_len: int) -> None:
        """Record a step that did not look ahead because of a match, and then had no drafts."""
        self._tried.add(_class_of(match_len))
        self._save(-_AHEAD_TIME)

    def note_drafting(self, time: float) -> None:
        """Record the time that a head took for drafts, in plain steps of one token.

        Call this before note_drafts.
        """
        if HEAD in self._tried:
            self._save(-time)

    def note_drafts(
        self, match_len: int, num_drafts: int, num_accepted: int, *, gain: float
    ) -> None:
        """Record the outcome of a pass with drafts of this conversation.

        Args:
            match_len: length of the match that the drafts came from.
            num_drafts: number of drafts, at least 1.
            num_accepted: number of drafts that the model confirmed.
            gain: time that the pass saved, in plain steps of one token. Negative if it cost time.
                Without the time to make the drafts.
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
class DraftOffer:
    """Drafts that one conversation has or may have for the next pass."""

    pace: Pace
    match_len: int  # HEAD if the head still has to make the drafts
    num_drafts: int  # at least 1

    def drafting_time(self, costs: Costs) -> float:
        """Return the time to make the drafts, in plain steps of one token."""
        return self.num_drafts * costs.draft_time if self.match_len == HEAD else 0.0


@dataclass(frozen=True, slots=True)
class _Choice:
    """An offer with fewer drafts, and what is expected of it."""

    offer: DraftOffer
    expected: float  # expected number of confirmed drafts
    drafting_time: float  # time to make the drafts, in plain steps of one token


def choose(
    offers: Sequence[Sequence[DraftOffer]], costs: Costs, extra: float = 0.0
) -> list[DraftOffer | None]:
    """Return the drafts of each conversation that the next pass verifies. None: no drafts.

    Args:
        offers: for each conversation of the pass, its drafts from several sources. At most one of
            them is used, or a part of it.
        costs: the durations of steps with as many conversations.
        extra: time that each step takes beside its pass, in plain steps. For example, a part of
            another prompt is fed after each step.
    """
    num_rows = len(offers)
    longest = 1 + max((offer.num_drafts for row in offers for offer in row), default=0)
    best: list[_Choice | None] = [None] * num_rows
    best_rate = num_rows / (1.0 + extra)
    for pass_len in range(2, min(longest, MAX_PASS_LEN) + 1):
        choices = _choices(offers, costs, pass_len)
        used = [choice for choice in choices if choice is not None]
        tokens = num_rows + sum(choice.expected for choice in used)
        drafting = sum(choice.drafting_time for choice in used)
        rate = tokens / (costs.relative[pass_len - 1] + drafting + extra)
        if rate > best_rate:
            best, best_rate = choices, rate
    if not any(best):
        # No draft is worth its time. Try one of each conversation that has saved time for a trial.
        # Beside other conversations, which also wait for the longer pass, no trial is free.
        tried = [[replace(offer, num_drafts=1) for offer in row] for row in offers]
        best = _choices(tried, costs, 2, is_first_free=num_rows == 1)
    return [choice.offer if choice is not None else None for choice in best]


def _choices(
    offers: Sequence[Sequence[DraftOffer]],
    costs: Costs,
    pass_len: int,
    *,
    is_first_free: bool = True,
) -> list[_Choice | None]:
    """Return the best drafts of each conversation for a pass of pass_len tokens.

    A conversation gets drafts only if its account covers its part of the loss (Pace.may_lose). The
    loss is divided among those that verify drafts.
    """
    loss, num_rows = costs.loss(pass_len), len(offers)
    ways = [[_best_part(offer, costs, pass_len - 1, num_rows) for offer in row] for row in offers]
    while num_paying := sum(bool(row) for row in ways):
        part = loss / num_paying
        paying = [
            [
                way
                for way in row
                if way.offer.pace.may_lose(
                    way.offer.match_len, part + way.drafting_time, is_first_free=is_first_free
                )
            ]
            for row in ways
        ]
        if paying == ways:
            break
        ways = paying
    return [
        max(row, key=lambda way: way.expected - num_rows * way.drafting_time, default=None)
        for row in ways
    ]


def _best_part(offer: DraftOffer, costs: Costs, most: int, num_rows: int) -> _Choice:
    """Return the best number of drafts of an offer, at most `most`, for a pass of this length.

    All drafts that exist are verified, because that takes no more time. A draft of a head is made
    only if it is likely enough to save more time than it takes.
    """
    expected = offer.pace.expected(offer.match_len, min(offer.num_drafts, most))
    count = len(expected)
    if offer.match_len == HEAD:
        gains = [n - num_rows * costs.draft_time * (i + 1) for i, n in enumerate(expected)]
        count = 1 + gains.index(max(gains))
    part = replace(offer, num_drafts=count)
    return _Choice(part, expected[count - 1], part.drafting_time(costs))


def _class_of(match_len: int) -> int:
    return next((end for end in _CLASSES if match_len <= end), max(_CLASSES))
