"""Drafts are the tokens after the longest and newest match, and end before stop tokens."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, strategies as st

from engine.speculation.lookup import MAX_MATCH, SEPARATOR, Lookup


def lookup_of(token_ids: Sequence[int], stop_ids: Sequence[int] = ()) -> Lookup:
    lookup = Lookup(stop_ids)
    for token_id in token_ids:
        lookup.push(token_id)
    return lookup


def match_len(token_ids: Sequence[int], place: int) -> int:
    """Return the number of tokens that are equal before a place and at the end of the sequence."""
    count = 0
    while count < min(MAX_MATCH, place + 1) and token_ids[place - count] == token_ids[-1 - count]:
        count += 1
    return count


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(1, 7))
def test_proposal_follows_the_longest_match_and_of_equal_ones_the_newest(
    token_ids: list[int], most: int
) -> None:
    proposal = lookup_of(token_ids).propose(most)
    places = range(len(token_ids) - 1)
    longest = max((match_len(token_ids, place) for place in places), default=0)

    if longest < 2:
        assert proposal is None
        return
    assert proposal is not None
    assert proposal.match_len == longest
    newest = max(place for place in places if match_len(token_ids, place) == longest)
    following = token_ids[newest + 1 :]
    assert proposal.token_ids == tuple((following * most)[:most])


def test_proposal_ends_before_a_stop_token() -> None:
    token_ids = [5, 6, 7, 9, 8, 5, 6]

    assert lookup_of(token_ids, stop_ids=[9]).propose(4) is not None
    assert lookup_of(token_ids, stop_ids=[9]).propose(4).token_ids == (7,)  # type: ignore[union-attr]
    assert lookup_of(token_ids, stop_ids=[7]).propose(4) is None


def test_match_and_proposal_stay_within_one_sequence() -> None:
    assert lookup_of([1, SEPARATOR, 2, 3, 1, 2]).propose(3) is None
    assert lookup_of([1, 2, SEPARATOR, 1, 2]).propose(3) is None
    proposal = lookup_of([1, 2, 3, SEPARATOR, 1, 2]).propose(3)

    assert proposal is not None
    assert proposal.token_ids == (3,)
    assert proposal.match_len == 2
