"""Drafts from the conversation's own tokens, verified when that is expected to save time.

Engine thread only. `Speculation` is the drafter (drafting.py) of a loaded model. It has two sources
of drafts: an index of n-grams for each reply (engine/speculation/lookup.py), and the multi-token
prediction head of the model if it has one (engine/models/mtp.py). The acceptance of earlier drafts
and the measured durations of passes decide which drafts a pass verifies, and how many
(engine/speculation/pace.py). Durations do not change while replies are written. So the passes of a
reply depend only on its tokens, on what was measured before it, on the replies that are written at
the same time, and on the time for which prompts are read after each step.
"""

from __future__ import annotations

import logging
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence as Items
from dataclasses import dataclass
from statistics import median
from time import perf_counter

from typing_extensions import override

from engine.models.loader import LoadedModel
from engine.runner.drafting import Drafter, Drafts, HeadDrafts, NoDrafts
from engine.runner.history import History
from engine.runner.pass_times import PassTimes
from engine.runner.sequence import Sequence
from engine.speculation.lookup import MAX_MATCH, SEPARATOR, Lookup, Proposal
from engine.speculation.pace import HEAD, MAX_PASS_LEN, Costs, DraftOffer, Pace, choose
from engine.types import ConversationId

log = logging.getLogger(__name__)

# Number of tokens that a step adds to the index of a prompt. It takes about a millisecond.
_INDEXED_PER_STEP = 2048
# Highest number of conversations whose acceptance is kept; the least recently used are dropped.
_MAX_CONVERSATIONS = 256
# Number of the newest durations that the cost of a pass is the median of.
_NUM_DURATIONS = 9


def make_drafter(model: LoadedModel, history: History) -> Drafter:
    """Return the drafter of a model."""
    return NoDrafts() if model.ways.rewinding is None else Speculation(model, history)


@dataclass(slots=True)
class _ReplyDrafts:
    """The index of one reply, and the drafts that the present pass verifies."""

    lookup: Lookup
    pace: Pace
    backlog: list[int]  # tokens that are still to be indexed, in reverse order
    # The proposal and the offer that the drafts of the present pass were taken from.
    proposal: Proposal | None = None
    offer: DraftOffer | None = None
    gain_per_draft: float = 0.0  # time that a confirmed draft of the present pass saves
    loss: float = 0.0  # this reply's part of the time that the present pass costs

    def push(self, token_id: int) -> None:
        if self.backlog:
            self.backlog.insert(0, token_id)
        else:
            self.lookup.push(token_id)

    def index_more(self) -> None:
        for _ in range(min(len(self.backlog), _INDEXED_PER_STEP)):
            self.lookup.push(self.backlog.pop())

    def propose(self, most: int) -> Proposal | None:
        return None if self.backlog or most < 1 else self.lookup.propose(most)


@dataclass(frozen=True, slots=True)
class _Medians:
    """The duration of steps in seconds, as it was measured up to some time."""

    steps: Mapping[tuple[int, int], float]  # by number of conversations and pass length
    draft_s: float | None  # seconds in which the head makes one draft. None: not measured
    idle: Mapping[int, float]  # of passes of one conversation in idle time, by pass length

    def costs(self, num_rows: int) -> Costs:
        known = {pass_len: s for (rows, pass_len), s in self.steps.items() if rows == num_rows}
        return Costs.of(num_rows, known, self.draft_s, self.idle)


class _Durations:
    """The newest durations of steps in seconds."""

    def __init__(self) -> None:
        # By number of conversations and pass length.
        self._steps: dict[tuple[int, int], deque[float]] = {}
        # Durations of one draft of the head. None before the first drafts, which compile kernels.
        self._drafts: deque[float] | None = None

    def note(self, num_rows: int, pass_len: int, seconds: float) -> None:
        key = (num_rows, pass_len)
        if key not in self._steps:
            # The first pass of a length compiles GPU kernels. Its duration does not count.
            self._steps[key] = deque(maxlen=_NUM_DURATIONS)
        else:
            self._steps[key].append(seconds)

    def note_drafting(self, num_drafts: int, seconds: float) -> None:
        if self._drafts is None:
            self._drafts = deque(maxlen=_NUM_DURATIONS)
        else:
            self._drafts.append(seconds / num_drafts)

    def medians(self, idle: Mapping[int, float]) -> _Medians:
        """Return the medians, with durations that were measured in idle time (_Medians.idle)."""
        steps = {key: median(seconds) for key, seconds in self._steps.items() if seconds}
        return _Medians(steps, median(self._drafts) if self._drafts else None, dict(idle))


class Speculation(Drafter):
    """The drafts of all replies of one loaded model."""

    def __init__(self, model: LoadedModel, history: History) -> None:
        self._history = history
        self._stop_ids = model.prompts.tokenizer.markers.eos_ids
        self._max_rows = None if model.ways.can_merge_drafts else 1
        self._has_head = model.adapter.has_head
        self._replies: dict[Sequence, _ReplyDrafts] = {}
        self._paces: OrderedDict[ConversationId, Pace] = OrderedDict()
        self._durations = _Durations()
        self._pass_times = PassTimes(model.adapter)
        # Durations when the first of the present replies started, and costs by number of
        # conversations that follow from them.
        self._medians = self._durations.medians({})
        self._costs: dict[int, Costs] = {}
        self._beside_s = 0.0  # seconds that other work takes after each step
        # The expected drafts that the present step waits for: the token before them is not read
        # yet.
        self._awaited: list[DraftOffer] = []

    @override
    def may_propose(self, sequences: Items[Sequence]) -> bool:
        for sequence in sequences:
            if sequence not in self._replies and _is_drafted(sequence):
                self._start(sequence)
        for reply in self._replies.values():
            reply.index_more()
        # If a token is drawn but not read, the first proposed token stands for it.
        guess = self._choose(sequences, is_guess=True)
        self._awaited = [offer for sequence, offer in guess.items() if sequence.drawn is not None]
        return bool(guess)

    @override
    def propose(
        self, sequences: Items[Sequence], draft_with_head: HeadDrafts
    ) -> Mapping[Sequence, Drafts]:
        chosen = self._choose(sequences, is_guess=False)
        drafts: dict[Sequence, Drafts] = {}
        by_head: dict[Sequence, int] = {}
        for sequence, offer in chosen.items():
            if offer.match_len == HEAD:
                by_head[sequence] = offer.num_drafts
            else:
                proposal = self._replies[sequence].proposal
                assert proposal is not None
                drafts[sequence] = proposal.token_ids[: offer.num_drafts]
        if by_head:
            drafts.update(self._draft_with_head(by_head, draft_with_head, len(sequences)))
        if drafts:
            self._expect(drafts, chosen, len(sequences))
        else:
            for offer in self._awaited:
                offer.pace.note_waiting(offer.match_len)
        return drafts

    @override
    def note_beside(self, seconds: float) -> None:
        self._beside_s = seconds

    @override
    def push(self, sequence: Sequence, token_id: int) -> None:
        if sequence in self._replies:
            self._replies[sequence].push(token_id)

    @override
    def note_pass(self, sequences: Items[Sequence], pass_len: int, seconds: float) -> None:
        self._durations.note(len(sequences), pass_len, seconds)
        for sequence in sequences:
            if sequence in self._replies:
                self._replies[sequence].pace.note_step()

    @override
    def note_drafts(self, sequence: Sequence, num_drafts: int, num_accepted: int) -> None:
        reply = self._replies[sequence]
        assert reply.offer is not None
        gain = num_accepted * reply.gain_per_draft - reply.loss
        reply.pace.note_drafts(reply.offer.match_len, num_drafts, num_accepted, gain=gain)

    @override
    def measure_passes(self) -> bool:
        return self._pass_times.measure()

    @override
    def forget(self, sequence: Sequence) -> None:
        self._replies.pop(sequence, None)

    def _start(self, sequence: Sequence) -> None:
        if not self._replies:
            self._medians = self._durations.medians(self._pass_times.seconds)
            self._costs = {}
        conversation_id, prompt_ids = sequence.request.conversation_id, sequence.prompt.token_ids
        token_ids: list[int] = []
        for sibling in self._history.siblings(conversation_id, prompt_ids, context=MAX_MATCH):
            token_ids += [*sibling, SEPARATOR]
        token_ids += [*prompt_ids, *sequence.output_ids]
        pace = self._paces.setdefault(conversation_id, Pace())
        self._paces.move_to_end(conversation_id)
        if len(self._paces) > _MAX_CONVERSATIONS:
            self._paces.popitem(last=False)
        token_ids.reverse()
        self._replies[sequence] = _ReplyDrafts(Lookup(self._stop_ids), pace, token_ids)

    def _choose(self, sequences: Items[Sequence], *, is_guess: bool) -> dict[Sequence, DraftOffer]:
        """Return what drafts the next pass verifies. Empty if none are worth their time.

        is_guess: True if drawn tokens may not be read yet.
        """
        num_rows = len(sequences)
        if self._max_rows is not None and num_rows > self._max_rows:
            return {}
        chosen: dict[Sequence, DraftOffer] = {}
        offers = [self._offers(sequence, is_guess=is_guess) for sequence in sequences]
        for number, sequence in enumerate(sequences):
            if offers[number] and sequence.request.max_drafts is not None:
                chosen[sequence] = offers[number][0]
                offers[number] = []
        if any(offers):
            costs = self._costs_of(num_rows)
            extra = self._beside_s / costs.one_s if costs.one_s else 0.0
            pairs = zip(sequences, choose(offers, costs, extra), strict=True)
            chosen |= {sequence: offer for sequence, offer in pairs if offer is not None}
        return chosen

    def _offers(self, sequence: Sequence, *, is_guess: bool) -> list[DraftOffer]:
        """Return the drafts that a sequence can have: of its index first, then of the head."""
        reply = self._replies.get(sequence)
        if reply is None or not sequence.takes_drafts:
            return []
        unread = int(is_guess and sequence.drawn is not None)
        most = min(MAX_PASS_LEN - 1, sequence.num_left - 1 - unread)
        if sequence.request.max_drafts is not None:
            most = min(most, sequence.request.max_drafts)
        offers: list[DraftOffer] = []
        reply.proposal = reply.propose(most + unread)
        if reply.proposal is not None:
            num_drafts = len(reply.proposal.token_ids) - unread
            if num_drafts > 0:
                offers.append(DraftOffer(reply.pace, reply.proposal.match_len, num_drafts))
        if self._has_head and most > 0:
            offers.append(DraftOffer(reply.pace, HEAD, most))
        return offers

    def _draft_with_head(
        self, counts: Mapping[Sequence, int], draft: HeadDrafts, num_rows: int
    ) -> dict[Sequence, Drafts]:
        """Return drafts of the head, each up to the first end token."""
        start = perf_counter()
        drafts = draft(counts)
        if len(drafts) < len(counts):
            # Drafting raised an error, or memory is full. It would raise one in every step.
            log.warning("the head is switched off until the model is loaded again")
            self._has_head = False
        self._durations.note_drafting(sum(counts.values()), perf_counter() - start)
        kept: dict[Sequence, Drafts] = {}
        for sequence, token_ids in drafts.items():
            drafting_time = self._costs_of(num_rows).draft_time * counts[sequence]
            self._replies[sequence].pace.note_drafting(drafting_time)
            at = next((i for i, t in enumerate(token_ids) if t in self._stop_ids), len(token_ids))
            if at:
                kept[sequence] = token_ids[:at]
        return kept

    def _expect(
        self,
        drafts: Mapping[Sequence, Drafts],
        chosen: Mapping[Sequence, DraftOffer],
        num_rows: int,
    ) -> None:
        """Set what the drafts of the next pass may gain and lose. note_drafts uses it."""
        pass_len = 1 + max(map(len, drafts.values()))
        for sequence in drafts:
            reply = self._replies[sequence]
            reply.offer = chosen[sequence]
            reply.gain_per_draft = 1 / num_rows
            reply.loss = self._costs_of(num_rows).loss(pass_len) / len(drafts)

    def _costs_of(self, num_rows: int) -> Costs:
        if num_rows not in self._costs:
            self._costs[num_rows] = self._medians.costs(num_rows)
        return self._costs[num_rows]


def _is_drafted(sequence: Sequence) -> bool:
    request = sequence.request
    return request.max_drafts != 0 and request.forced is None
