"""Log-probabilities of a reply's tokens, for requests that ask for them. Engine thread only."""

from __future__ import annotations

import mlx.core as mx
from typing_extensions import override

from engine.chat.tokenizer import ChatTokenizer
from engine.runner.drawing import TokensBefore, TokenSource
from engine.types import TokenScore

# By token id: log-probability
_Scores = dict[int, float]


class ScoredTokens(TokenSource):
    """A token source that computes log-probabilities. Another token source does the drawing.

    They are those of the model: without temperature, filters, penalties and format.
    """

    def __init__(self, source: TokenSource, num_likeliest: int) -> None:
        """Create a source.

        Args:
            source: the source that draws.
            num_likeliest: number of the likeliest tokens to keep beside each drawn one.
        """
        self._source = source
        self._num_likeliest = num_likeliest
        # By index of the token in the reply: log-probabilities (V,) of the newest draw
        self._rows: dict[int, mx.array] = {}
        self._kept: dict[int, tuple[int, float, _Scores]] = {}

    @override
    def draw(self, logits: mx.array, before: TokensBefore, *, index: int) -> mx.array:
        row = logits.astype(mx.float32)
        self._rows[index] = row - mx.logsumexp(row)
        return self._source.draw(logits, before, index=index)

    def keep(self, index: int, token_id: int) -> None:
        """Keep the log-probabilities of a token that is delivered."""
        row = self._rows.pop(index)
        # argpartition fails for as many places as there are tokens
        first = min(self._num_likeliest, row.size - 1)
        likeliest = mx.argpartition(-row, first)[: self._num_likeliest] if first else mx.array([])
        ids = [token_id, *(int(i) for i in likeliest.tolist())]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType, reportUnknownArgumentType]
        values: list[float] = row[mx.array(ids)].tolist()  # pyright: ignore[reportAssignmentType]
        self._kept[index] = token_id, values[0], dict(zip(ids[1:], values[1:], strict=True))

    def scores(self, tokenizer: ChatTokenizer, start: int) -> tuple[TokenScore, ...]:
        """Return the kept log-probabilities of the tokens from index `start` on, in order."""
        kept = [entry for index, entry in sorted(self._kept.items()) if index >= start]
        ends = tokenizer.text_ends([token_id for token_id, _, _ in kept])
        return tuple(
            TokenScore(
                text=tokenizer.decode([token_id]),
                end=end,
                logprob=logprob,
                likeliest=tuple(
                    (tokenizer.decode([other]), likeliest[other])
                    for other in sorted(likeliest, key=likeliest.__getitem__, reverse=True)
                ),
            )
            for (token_id, logprob, likeliest), end in zip(kept, ends, strict=True)
        )
