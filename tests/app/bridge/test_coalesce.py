from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from app.bridge.coalesce import merge_deltas
from engine.events import Event, ModelUnloaded, RequestQueued, TextDelta
from engine.types import Channel, RequestId

A, B = RequestId("a"), RequestId("b")


def delta(request_id: RequestId, text: str, num_tokens: int, channel: Channel) -> TextDelta:
    return TextDelta(request_id, channel, text, num_tokens)


def test_merge_deltas_joins_adjacent_text_of_one_reply() -> None:
    answer = Channel.ANSWER
    events = [delta(A, "one ", 1, answer), delta(A, "two", 2, answer), RequestQueued(B, 1)]
    assert merge_deltas(events) == [delta(A, "one two", 2, answer), RequestQueued(B, 1)]


def test_merge_deltas_joins_interleaved_replies_separately() -> None:
    answer, thought = Channel.ANSWER, Channel.REASONING
    events = [
        delta(A, "one ", 1, answer),
        delta(B, "hm", 1, thought),
        delta(A, "two", 2, answer),
        delta(B, "yes", 2, answer),
        delta(A, " three", 3, answer),
    ]
    assert merge_deltas(events) == [
        delta(B, "hm", 1, thought),
        delta(A, "one two three", 3, answer),
        delta(B, "yes", 2, answer),
    ]


EVENTS = st.lists(
    st.one_of(
        st.builds(
            delta,
            st.sampled_from([A, B]),
            st.text("xy", min_size=1, max_size=2),
            st.integers(1, 9),
            st.sampled_from(Channel),
        ),
        st.just(ModelUnloaded()),
    )
)


@given(EVENTS)
def test_merge_deltas_keeps_text_and_order_of_each_reply(events: list[Event]) -> None:
    merged = merge_deltas(events)
    for request_id in (A, B):
        assert _letters(merged, request_id) == _letters(events, request_id)
        seen = [one for one in merged if _concerns(one, request_id)]
        for earlier, later in pairwise(seen):
            if isinstance(earlier, TextDelta) and isinstance(later, TextDelta):
                assert earlier.channel is not later.channel


def _concerns(event: Event, request_id: RequestId) -> bool:
    return not isinstance(event, TextDelta) or event.request_id == request_id


def _letters(events: list[Event], request_id: RequestId) -> list[tuple[object, ...]]:
    """Return the letters of a reply with their channels, and all events that are not text."""
    letters: list[tuple[object, ...]] = []
    for event in events:
        if isinstance(event, TextDelta):
            if event.request_id == request_id:
                letters += [(event.channel, letter) for letter in event.text]
        else:
            letters.append((event,))
    return letters
