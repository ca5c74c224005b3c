"""Find drafts in the token ids of a conversation (prompt lookup decoding, Saxena 2023).

A reply often repeats parts of its prompt, of itself, or of an earlier version of itself. A Lookup
holds these token sequences. It finds the place where the newest tokens occurred before, and
proposes the tokens that followed there.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection
from dataclasses import dataclass

from engine.picture_ids import PICTURE_ID

_MIN_MATCH = 2
MAX_MATCH = 12
# Highest number of earlier places that are compared for one proposal, the newest first.
_MAX_PLACES = 32
SEPARATOR = (1 << 32) - 1  # stands between two sequences; no token and no picture has this id


@dataclass(frozen=True, slots=True)
class Proposal:
    """Tokens that may follow the newest token of a reply."""

    token_ids: tuple[int, ...]
    match_len: int  # number of newest tokens that occurred before the proposed ones


class Lookup:
    """An index of pairs of tokens in one or more sequences, the newest sequence last.

    A new token and a proposal take constant time.
    """

    def __init__(self, stop_ids: Collection[int] = ()) -> None:
        """Create an empty index.

        stop_ids: ids of control tokens. A proposal ends before the first of them, and before a
            picture.
        """
        self._stop_ids = stop_ids
        self._token_ids = array("I")
        # For each position: the previous position at which the same pair of tokens ends, or -1.
        self._previous = array("i")
        # Newest position at which a pair of tokens ends, by the pair.
        self._newest: dict[int, int] = {}

    def push(self, token_id: int) -> None:
        """Append a token, or SEPARATOR after the last token of a sequence."""
        position = len(self._token_ids)
        previous = -1
        if position:
            pair = self._token_ids[-1] << 32 | token_id
            previous = self._newest.get(pair, -1)
            self._newest[pair] = position
        self._token_ids.append(token_id)
        self._previous.append(previous)

    def propose(self, most: int) -> Proposal | None:
        """Return at most `most` tokens that followed the longest match of the newest tokens.

        Of several longest matches, the newest counts. Return None if the newest two tokens did not
        occur before, or if a stop token follows.
        """
        best, best_len = -1, 0
        place = self._previous[-1] if self._previous else -1
        for _ in range(_MAX_PLACES):
            if place < 0 or best_len == MAX_MATCH:
                break
            match_len = self._match_len(place)
            if match_len > best_len:
                best, best_len = place, match_len
            place = self._previous[place]
        token_ids = self._following(best, most) if best_len >= _MIN_MATCH else ()
        return Proposal(token_ids, best_len) if token_ids else None

    def _match_len(self, place: int) -> int:
        """Return the number of equal tokens before the end of the sequence and before a place."""
        token_ids, last = self._token_ids, len(self._token_ids) - 1
        match_len = 0
        while match_len < MAX_MATCH and match_len <= place:
            token_id = token_ids[place - match_len]
            if token_id != token_ids[last - match_len] or token_id == SEPARATOR:
                break
            match_len += 1
        return match_len

    def _following(self, place: int, most: int) -> tuple[int, ...]:
        """Return the tokens after a place. If the sequence ends, repeat these tokens."""
        found: list[int] = []
        period = len(self._token_ids) - 1 - place
        for index in range(most):
            at = place + 1 + index
            token_id = self._token_ids[at] if at < len(self._token_ids) else found[index - period]
            if token_id >= PICTURE_ID or token_id in self._stop_ids:
                break
            found.append(token_id)
        return tuple(found)
