"""A drafter that learns the replies of a first run, and drafts them in a second run."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence as Items

import pytest
from typing_extensions import override

from engine import served_model
from engine.models.loader import LoadedModel
from engine.runner.drafting import Drafts, HeadDrafts, NoDrafts
from engine.runner.history import History
from engine.runner.sequence import Sequence
from engine.speculation.pace import MAX_PASS_LEN
from engine.types import RequestId


class PlantedDrafts(NoDrafts):
    """A drafter that learns replies while `is_learning`, and otherwise drafts them.

    It drafts for most steps, with random numbers of drafts. Some of its drafts are wrong.
    """

    def __init__(self, right: float) -> None:
        """Create a drafter.

        right: probability that a draft is left as it was learned.
        """
        self.is_learning = True
        self.end_ids = frozenset[int]()  # set for each loaded model
        self.replies: defaultdict[RequestId, list[int]] = defaultdict(list)
        self._right = right
        self._random = random.Random(7)

    @override
    def push(self, sequence: Sequence, token_id: int) -> None:
        if self.is_learning and token_id not in self.end_ids:
            self.replies[sequence.request.request_id].append(token_id)

    @override
    def may_propose(self, sequences: Items[Sequence]) -> bool:
        return bool(sequences) and not self.is_learning and self._random.random() < 0.8

    @override
    def propose(
        self, sequences: Items[Sequence], draft_with_head: HeadDrafts
    ) -> Mapping[Sequence, Drafts]:
        found = {sequence: self._drafts(sequence) for sequence in sequences}
        return {sequence: drafts for sequence, drafts in found.items() if drafts}

    def _drafts(self, sequence: Sequence) -> Drafts:
        if sequence.request.forced is not None or not sequence.takes_drafts:
            return ()
        most = min(self._random.randint(0, MAX_PASS_LEN - 1), sequence.num_left - 1)
        at = sequence.num_output
        known = self.replies[sequence.request.request_id][at : at + max(0, most)]
        return tuple(
            token_id if self._random.random() < self._right else (token_id + 1) % 200
            for token_id in known
        )


def plant(monkeypatch: pytest.MonkeyPatch, drafter: PlantedDrafts) -> None:
    """Let all models that can be rewound use a drafter."""

    def planted(model: LoadedModel, _history: History) -> NoDrafts:
        drafter.end_ids = model.prompts.tokenizer.markers.eos_ids
        return drafter if model.ways.rewinding is not None else NoDrafts()

    monkeypatch.setattr(served_model, "make_drafter", planted)
