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
    """The end of a request: what it cost, or why it was refused or failed."""

    client: str
    ended: Ended | ServerError
    change: ChangedLine | None = None  # because of which tokens were read again

    @property
    def line(self) -> str:
        """The cost or the failure. It has no text of the request."""
        if isinstance(self.ended, ServerError):
            return words.failed(self.client, self.ended.reported)
        ended = self.ended
        return words.answered(
            self.client,
            restored=ended.restored,
            read=ended.read + ended.replayed,
            seconds=ended.first_word_ms / 1e3,
            num_output=ended.output_tokens,
        )

    @property
    def changed_line(self) -> str:
        """The line of a message that differed from the request before, or ""."""
        change = self.change
        if change is None:
            return ""
        return words.changed(change.index + 1, change.role, change.old_line, change.new_line)


class Watcher(Protocol):
    """The receiver of reports. It is called on the thread of the server."""

    def report(self, report: Report) -> None:
        """Take the report of a request that has ended."""

    def note_open(self, num_open: int) -> None:
        """Take the number of answers that are written or wait."""
