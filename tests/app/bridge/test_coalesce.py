from __future__ import annotations

from itertools import pairwise

from hypothesis import given, strategies as st

from app.bridge.coalesce import merge_deltas
from engine.events import Event, ModelUnloaded, RequestQueued, TextDelta
from engine.types import Channel, RequestId

A, B = RequestId("a"), RequestId("b")


def delta(request_id: RequestId, text: str, num_tokens: int, channel: Channel) -> TextDelta:
    return TextDelta(request_id, channel, text, num_tokens)


def test_neighbours_of_one_reply_are_joined() -> None:
    answer = Channel.ANSWER
    events = [delta(A, "one ", 1, answer), delta(A, "two", 2, answer), RequestQueued(B, 1)]
    assert merge_deltas(events) == [delta(A, "one two", 2, answer), RequestQueued(B, 1)]


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
def test_no_text_is_lost_and_nothing_changes_places(events: list[Event]) -> None:
    merged = merge_deltas(events)
    assert _letters(merged) == _letters(events)
    for earlier, later in pairwise(merged):
        if isinstance(earlier, TextDelta) and isinstance(later, TextDelta):
            assert (earlier.request_id, earlier.channel) != (later.request_id, later.channel)


def _letters(events: list[Event]) -> list[tuple[object, ...]]:
    """Each letter with whom it belongs to; everything else as itself."""
    letters: list[tuple[object, ...]] = []
    for event in events:
        if isinstance(event, TextDelta):
            letters += [(event.request_id, event.channel, letter) for letter in event.text]
        else:
            letters.append((event,))
    return letters
