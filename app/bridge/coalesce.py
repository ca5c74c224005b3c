"""Many small events to few: adjacent pieces of one reply become one piece. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from engine.events import Event, TextDelta


def merge_deltas(events: Iterable[Event]) -> list[Event]:
    """Join neighbouring deltas of the same request and channel; everything else keeps its place."""
    merged: list[Event] = []
    run: list[TextDelta] = []
    for event in events:
        if run and not (isinstance(event, TextDelta) and _continues(run[-1], event)):
            merged.append(_join(run))
            run = []
        if isinstance(event, TextDelta):
            run.append(event)
        else:
            merged.append(event)
    if run:
        merged.append(_join(run))
    return merged


def _continues(earlier: TextDelta, later: TextDelta) -> bool:
    return (earlier.request_id, earlier.channel) == (later.request_id, later.channel)


def _join(run: list[TextDelta]) -> TextDelta:
    last = run[-1]
    text = "".join(delta.text for delta in run)
    return TextDelta(last.request_id, last.channel, text, last.num_tokens)
