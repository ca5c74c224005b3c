"""Reports to the person who runs the server: a line about each request, and how many are open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from app.server.chat_request import Ended
from app.server.errors import ServerError
from app.server.known_chats import ChangedLine
from app.words import server as words


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The end of a request: what it cost, or why it failed."""

    client: str
    ended: Ended | ServerError
    change: ChangedLine | None = None  # because of which tokens were read again

    @property
    def line(self) -> str:
        """The cost or the failure. It has no text of a message."""
        if isinstance(self.ended, ServerError):
            return words.failed(self.client, self.ended.message)
        one = self.ended
        return words.answered(
            self.client,
            restored=one.restored,
            read=one.read + one.replayed,
            seconds=one.first_word_ms / 1e3,
            num_output=one.output_tokens,
        )

    @property
    def changed_line(self) -> str:
        """The line of a message that differed from the request before, or ""."""
        one = self.change
        return (one and words.changed(one.index + 1, one.role, one.old_line, one.new_line)) or ""


class Watcher(Protocol):
    """The receiver of reports. It is called on the thread of the server."""

    def report(self, report: Report) -> None:
        """Take the report of a request that has ended."""

    def note_open(self, num_open: int) -> None:
        """Take the number of answers that are written or wait."""
