"""The forward passes of a decode step, over the caches of all sequences. Engine thread only.

A row group (models/rows.py) has the caches of the sequences that a pass feeds. Decoder owns one
`Batch`, which makes a new group when the sequences change. If a pass over several sequences raises
an error, each sequence is fed alone, so that only the faulty one fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import mlx.core as mx

from engine.errors import Failure, attempt, failure_of
from engine.models.loader import LoadedModel
from engine.models.mtp import HeadState
from engine.models.rows import MergedRows, RowByRow, RowGroup
from engine.runner.sequence import Sequence


class Batch:
    """The row groups that hold the caches of the sequences between two decode steps."""

    def __init__(self, model: LoadedModel) -> None:
        self._model = model
        # Sequences of the newest pass, including those that were removed after the pass. If the
        # next pass has other sequences, it needs a new row group.
        self._grouped: list[Sequence] = []
        # Row group and row number of each sequence whose caches were not handed back yet.
        self._places: dict[Sequence, tuple[RowGroup, int]] = {}

    def forward(self, inputs: Mapping[Sequence, mx.array]) -> Mapping[Sequence, mx.array | Failure]:
        """Feed each sequence its tokens, of shape (L,), in one pass.

        After a pass of several tokens, call `keep` before anything else.

        Returns:
            For each sequence, lazy logits of shape (L, V), or its failure.
        """
        try:
            self.regroup(list(inputs))
            group, _ = self._places[self._grouped[0]]
            rows = group.forward(self._model.adapter, list(inputs.values()))
            return dict(zip(inputs, rows, strict=True))
        except Exception as error:  # noqa: BLE001 — becomes a failure of each row
            failure = failure_of(f"a pass over {len(inputs)} rows", error)
        # A single row would fail again. Without can_undo, the failed pass may have changed the
        # caches of all rows, so none of them can be fed again.
        if len(inputs) == 1 or not self._model.can_undo:
            return dict.fromkeys(inputs, failure)
        # One row may have made the pass fail for all rows.
        self._hand_back_all()
        return {
            sequence: attempt("a pass over one row", partial(self._forward_alone, sequence, ids))
            for sequence, ids in inputs.items()
        }

    def _forward_alone(self, sequence: Sequence, token_ids: mx.array) -> mx.array:
        # _grouped stays empty, so the next pass makes a new group of all sequences.
        group = RowByRow([sequence.lease.hot.caches])
        self._places[sequence] = (group, 0)
        return group.forward(self._model.adapter, [token_ids])[0]

    def pass_len(self, sequence: Sequence) -> int:
        """Return the number of tokens that the newest pass fed to a sequence, with padding."""
        group, row = self._places[sequence]
        return group.pass_len(row)

    def keep(self, kept: Mapping[Sequence, int]) -> None:
        """Keep the first tokens of each sequence in the newest pass, and remove the others."""
        assert self._model.ways.rewinding is not None
        rows: dict[RowGroup, dict[int, int]] = {}
        for sequence, num_tokens in kept.items():
            group, row = self._places[sequence]
            rows.setdefault(group, {})[row] = num_tokens
        for group, num_kept in rows.items():
            group.keep(self._model.ways.rewinding, num_kept)

    def head_state(self, sequence: Sequence) -> HeadState:
        """Return the state of the model's head for a sequence. Only for models with a head."""
        group, row = self._places[sequence]
        return group.head_state(row)

    def regroup(self, sequences: list[Sequence]) -> None:
        """Make a new row group, unless the newest pass had exactly these sequences."""
        if sequences == self._grouped:
            return
        self._hand_back_all()
        rows = [sequence.lease.hot.caches for sequence in sequences]
        is_merged = len(rows) > 1 and self._model.ways.can_merge
        group = MergedRows(rows) if is_merged else RowByRow(rows)
        self._grouped = sequences
        self._places = {sequence: (group, row) for row, sequence in enumerate(sequences)}

    def remove(self, sequence: Sequence, *, undoing: bool) -> None:
        """Hand the caches of a sequence that ends back, without the newest pass if `undoing`."""
        if sequence in self._places:
            # The group is not used for another pass, because the next one has other sequences. It
            # hands back the other rows and makes a new group.
            group, row = self._places.pop(sequence)
            group.hand_back(row, undoing=undoing)
        if not self._places:
            # No later pass needs the group. Free the caches of a side request now.
            self._grouped = []

    def _hand_back_all(self) -> None:
        for group, row in self._places.values():
            group.hand_back(row, undoing=False)
        self._grouped = []
        self._places = {}
