"""A function that merges the text deltas of a reply, so that Qt emits fewer signals. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from engine.events import Event, TextDelta
from engine.types import RequestId


def merge_deltas(events: Iterable[Event]) -> list[Event]:
    """Join consecutive text deltas of the same request and channel into one.

    Deltas of other requests between two deltas do not prevent the join. An event of another kind
    does, so that the order of text and other events stays the same.
    """
    merged: list[Event] = []
    # Key: request. Value: its latest deltas, which have one channel and will be joined.
    runs: dict[RequestId, list[TextDelta]] = {}

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
