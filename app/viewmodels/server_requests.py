"""The texts of the list of requests to the local server."""

from __future__ import annotations

from app.conversation.text import harmless_text
from app.server.known_chats import ChangedLine
from app.server.live_requests import RequestState, RequestTexts, SeenRequest
from app.viewmodels.figures import seconds
from app.words import server_page as words


def request_line(request: SeenRequest, now: float) -> str:
    """Return the client of a request, its progress or its end, and whether a message had changed.

    now: time.monotonic().
    """
    line, change = _line(request, now), request.change
    return line if change is None else words.with_change(line, change.index + 1, change.role)


def _line(request: SeenRequest, now: float) -> str:
    if request.report is not None:
        return harmless_text(request.report.line)
    if not request.is_open:
        return words.gone(request.client)
    return words.open_request(request.client, _progress(request), seconds(now - request.came_at))


def _progress(request: SeenRequest) -> str:
    match request.state:
        case RequestState.READS:
            return words.reads(request.num_read, request.num_to_read)
        case RequestState.WRITES:
            return words.writes(request.num_written)
        case _:
            return words.WAITS


def message_title(texts: RequestTexts) -> str:
    """Return the heading of the last message of a request."""
    shown = len(texts.message)
    part = words.first_of(shown, texts.message_len) if shown < texts.message_len else ""
    return words.message_title(texts.role, part)


def reply_title(texts: RequestTexts, *, is_open: bool) -> str:
    """Return the heading of the answer to a request."""
    shown = len(texts.reply)
    part = words.last_of(shown, texts.reply_len) if shown < texts.reply_len else ""
    return words.reply_title(words.ANSWER_SO_FAR if is_open else words.ANSWER, part)


def changed_title(change: ChangedLine) -> str:
    return words.changed_title(change.index + 1, change.role)


def changed_lines(change: ChangedLine) -> str:
    """Return the old line and the new one, below each other."""
    old, new = (harmless_text(line) for line in (change.old_line, change.new_line))
    return words.changed_lines(old, new)
