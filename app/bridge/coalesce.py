"""Joining of text deltas: the pieces of a reply that wait together become one piece. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from engine.events import Event, TextDelta
from engine.types import RequestId


def merge_deltas(events: Iterable[Event]) -> list[Event]:
    """Join text deltas of the same request and channel.

    Deltas of other requests may be in between. A delta is never moved across an event of another
    type, and the channels of a reply keep their order.
    """
    merged: list[Event] = []
    runs: dict[RequestId, list[TextDelta]] = {}  # unjoined deltas, oldest request first

    def end_run(run: list[TextDelta]) -> None:
        last = run[-1]
        text = "".join(delta.text for delta in run)
        merged.append(TextDelta(last.request_id, last.channel, text, last.num_tokens))

    def end_runs() -> None:
        for run in runs.values():
            end_run(run)
        runs.clear()

    for event in events:
        if not isinstance(event, TextDelta):
            end_runs()
            merged.append(event)
            continue
        run = runs.setdefault(event.request_id, [])
        if run and run[-1].channel is not event.channel:
            end_run(run)
            run = runs[event.request_id] = []
        run.append(event)
    end_runs()
    return merged
