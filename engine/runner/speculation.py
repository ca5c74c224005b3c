"""Drafts from the conversation's own tokens, verified when that is expected to save time.

Engine thread only. `Speculation` is the drafter (drafting.py) of a loaded model. It keeps an index
of n-grams for each reply (engine/speculation/lookup.py), and lets the acceptance of earlier drafts
and the measured durations of passes decide how many drafts a pass verifies
(engine/speculation/pace.py). Durations do not change while replies are written. So the passes of a
reply depend only on its tokens and on what was measured before it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence as Items
from dataclasses import dataclass, field
from statistics import median

from typing_extensions import override

from engine.models.loader import LoadedModel
from engine.runner.drafting import Drafter, Drafts, NoDrafts
from engine.runner.history import History
from engine.runner.sequence import Sequence
from engine.speculation.lookup import MAX_MATCH, SEPARATOR, Lookup, Proposal
from engine.speculation.pace import MAX_PASS_LEN, Costs, Offer, Pace, choose
from engine.types import ConversationId

# Number of tokens that a step adds to the index of a prompt. It takes about a millisecond.
_INDEXED_PER_STEP = 2048
# Highest number of conversations whose acceptance is kept; the least recently used are dropped.
_MAX_CONVERSATIONS = 256
# Number of the newest durations that the cost of a pass is the median of.
_NUM_DURATIONS = 9


def make_drafter(model: LoadedModel, history: History) -> Drafter:
    """Return the drafter of a model."""
    return NoDrafts() if model.rewinding is None else Speculation(model, history)


@dataclass(slots=True)
class _Drafting:
    """The index of one reply, and the drafts that the present pass verifies."""

    lookup: Lookup
    pace: Pace
    backlog: list[int]  # tokens that are still to be indexed, in reverse order
    proposal: Proposal | None = None  # what the drafts of the present pass were taken from
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


@dataclass(slots=True)
class _Durations:
    """Measured durations of steps in seconds, by number of conversations and pass length."""

    _seconds: dict[tuple[int, int], deque[float]] = field(
        default_factory=dict[tuple[int, int], deque[float]]
    )

    def note(self, num_rows: int, pass_len: int, seconds: float) -> None:
        key = (num_rows, pass_len)
        if key not in self._seconds:
            # The first pass of a length compiles GPU kernels. Its duration does not count.
            self._seconds[key] = deque(maxlen=_NUM_DURATIONS)
        else:
            self._seconds[key].append(seconds)

    def costs(self, num_rows: int) -> Costs:
        known = {
            pass_len: median(seconds)
            for (rows, pass_len), seconds in self._seconds.items()
            if rows == num_rows and seconds
        }
        return Costs.of(num_rows, known)


class Speculation(Drafter):
    """The drafts of all replies of one loaded model."""

    def __init__(self, model: LoadedModel, history: History) -> None:
        self._history = history
        self._stop_ids = model.prompts.tokenizer.markers.eos_ids
        self._max_rows = None if model.can_merge_drafts else 1
        self._drafting: dict[Sequence, _Drafting] = {}
        self._paces: OrderedDict[ConversationId, Pace] = OrderedDict()
        self._durations = _Durations()
        # Costs by number of conversations. Cleared when a reply starts while no other is written.
        self._costs: dict[int, Costs] = {}

    @override
    def may_propose(self, sequences: Items[Sequence]) -> bool:
        for sequence in sequences:
            if sequence not in self._drafting and _is_drafted(sequence):
                self._start(sequence)
        for drafting in self._drafting.values():
            drafting.index_more()
        # If a token is drawn but not read, the first proposed token stands for it.
        return bool(self._choose(sequences, is_guess=True))

    @override
    def propose(self, sequences: Items[Sequence]) -> Mapping[Sequence, Drafts]:
        return self._choose(sequences, is_guess=False)

    @override
    def push(self, sequence: Sequence, token_id: int) -> None:
        if sequence in self._drafting:
            self._drafting[sequence].push(token_id)

    @override
    def note_pass(self, sequences: Items[Sequence], pass_len: int, seconds: float) -> None:
        self._durations.note(len(sequences), pass_len, seconds)
        for sequence in sequences:
            if sequence in self._drafting:
                self._drafting[sequence].pace.note_step()

    @override
    def note_drafts(self, sequence: Sequence, num_drafts: int, num_accepted: int) -> None:
        drafting = self._drafting[sequence]
        assert drafting.proposal is not None
        gain = num_accepted * drafting.gain_per_draft - drafting.loss
        drafting.pace.note_drafts(drafting.proposal.match_len, num_drafts, num_accepted, gain=gain)

    @override
    def forget(self, sequence: Sequence) -> None:
        self._drafting.pop(sequence, None)

    def _start(self, sequence: Sequence) -> None:
        if not self._drafting:
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
        self._drafting[sequence] = _Drafting(Lookup(self._stop_ids), pace, token_ids)

    def _choose(self, sequences: Items[Sequence], *, is_guess: bool) -> dict[Sequence, Drafts]:
        """Return the drafts of the next pass. Empty if none is worth its time.

        is_guess: True if drawn tokens may not be read yet.
        """
        num_rows = len(sequences)
        if self._max_rows is not None and num_rows > self._max_rows:
            return {}
        offers: list[Offer | None] = []
        fixed: dict[Sequence, Drafts] = {}
        for sequence in sequences:
            offers.append(None)
            drafting = self._drafting.get(sequence)
            if drafting is None:
                continue
            unread = int(is_guess and sequence.drawn is not None)
            limits = [MAX_PASS_LEN - 1, sequence.num_left - 1 - unread]
            if sequence.request.max_drafts is not None:
                limits.append(sequence.request.max_drafts)
            proposal = drafting.propose(min(limits) + unread)
            drafting.proposal = proposal
            num_drafts = len(proposal.token_ids) - unread if proposal else 0
            if proposal is None or num_drafts < 1:
                continue
            if sequence.request.max_drafts is None:
                offers[-1] = Offer(drafting.pace, proposal.match_len, num_drafts)
            else:
                fixed[sequence] = proposal.token_ids[unread:]
        if not fixed and not any(offers):
            return {}
        costs = self._costs_of(num_rows)
        chosen = dict(fixed)
        for sequence, count in zip(sequences, choose(offers, costs), strict=True):
            if count:
                proposal = self._drafting[sequence].proposal
                assert proposal is not None
                chosen[sequence] = proposal.token_ids[:count]
        self._account(chosen, costs)
        return chosen

    def _account(self, chosen: Mapping[Sequence, Drafts], costs: Costs) -> None:
        if not chosen:
            return
        pass_len = 1 + max(map(len, chosen.values()))
        for sequence in chosen:
            drafting = self._drafting[sequence]
            drafting.gain_per_draft = 1 / costs.num_rows
            drafting.loss = costs.loss(pass_len) / len(chosen)

    def _costs_of(self, num_rows: int) -> Costs:
        if num_rows not in self._costs:
            self._costs[num_rows] = self._durations.costs(num_rows)
        return self._costs[num_rows]


def _is_drafted(sequence: Sequence) -> bool:
    request = sequence.request
    return request.max_drafts != 0 and request.forced is None
