"""Counts of the server for monitoring: GET /metrics. They name no client and have no text.

Source: Prometheus documentation, "Exposition formats", text format 0.0.4.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum

from app.server.errors import ServerError
from app.words import server as words
from engine.usage import Usage

MEDIA_TYPE = "text/plain; version=0.0.4"


class _Outcome(StrEnum):
    """Ends of a request for an answer."""

    ANSWERED = "answered"
    REFUSED = "refused"  # because of the request
    FAILED = "failed"  # because of the server
    ABANDONED = "abandoned"  # the client has gone


class Metrics:
    """The counts since the server was started. For the event loop of the server."""

    def __init__(self, on_open: Callable[[int], None]) -> None:
        """Create counts of 0. on_open: called with the number of open answers when it changes."""
        self._on_open = on_open
        self.num_open = 0  # answers that are written or wait
        self._outcomes = dict.fromkeys(_Outcome, 0)
        self._restored = self._replayed = self._read = self._written = 0

    @contextmanager
    def open_request(self, num_answers: int) -> Generator[None]:
        """Count a request and its outcome."""
        self._add_open(num_answers)
        outcome = _Outcome.ABANDONED
        try:
            yield
            outcome = _Outcome.ANSWERED
        except ServerError as error:
            outcome = _outcome_of(error)
            raise
        finally:
            self._add_open(-num_answers)
            self._outcomes[outcome] += 1

    def _add_open(self, number: int) -> None:
        self.num_open += number
        self._on_open(self.num_open)

    @contextmanager
    def unopened_request(self) -> Generator[None]:
        """Count a request only if it is refused before it is opened."""
        try:
            yield
        except ServerError as error:
            self._outcomes[_outcome_of(error)] += 1
            raise

    def add_usage(self, usage: Usage) -> None:
        """Add the tokens of an answer."""
        self._restored += usage.plan.restored
        self._replayed += usage.plan.replayed
        self._read += usage.plan.read
        self._written += usage.output_tokens

    @property
    def text(self) -> str:
        """The counts in Prometheus's text format."""
        outcomes = {f'{{outcome="{outcome}"}}': count for outcome, count in self._outcomes.items()}
        origins = {"restored": self._restored, "replayed": self._replayed, "read": self._read}
        tokens = {f'{{origin="{origin}"}}': count for origin, count in origins.items()}
        lines = [
            *_metric("requests_total", "counter", words.REQUESTS_METRIC, outcomes),
            *_metric("open_requests", "gauge", words.OPEN_METRIC, {"": self.num_open}),
            *_metric("prompt_tokens_total", "counter", words.PROMPT_METRIC, tokens),
            *_metric("written_tokens_total", "counter", words.WRITTEN_METRIC, {"": self._written}),
        ]
        return "".join(f"{line}\n" for line in lines)


def _metric(name: str, kind: str, meaning: str, values: Mapping[str, int]) -> Iterator[str]:
    """Yield the lines of a metric. The keys of its values are their labels."""
    yield f"# HELP rejoinder_{name} {meaning}"
    yield f"# TYPE rejoinder_{name} {kind}"
    for labels, value in values.items():
        yield f"rejoinder_{name}{labels} {value}"


def _outcome_of(error: ServerError) -> _Outcome:
    return _Outcome.REFUSED if error.status < 500 else _Outcome.FAILED
