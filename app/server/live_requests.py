"""A server's requests as its user sees them: waiting, being answered, and the last ended ones.

Their texts are cut, kept in memory only, and dropped with their request. `LiveRequests` belongs to
the event loop of the server. The values that it returns may go to other threads.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from itertools import count

from app.conversation.text import harmless_text
from app.server.chat_request import Called, ChatRequest, Ended, Piece, Said, Thought, sum_of
from app.server.errors import ServerError
from app.server.known_chats import ChangedLine
from app.server.report import Report
from engine.clients import RequestEvent
from engine.events import PrefillProgress, RequestQueued, RequestStarted, TextDelta
from engine.types import RequestId, Role

MAX_ENDED = 20  # ended requests that are kept
# Those of them that may not use the server or have no such address. A program that repeats them
# does not displace the others.
MAX_BARRED = 5
MAX_CHARS = 4000  # characters of a text that are kept

# The page that stops a request knows only its number. Servers of one process share no number, so
# that a late stop does not end a request of the next server.
_numbers = count(1)


class RequestState(Enum):
    """The progress of a request."""

    WAITS = auto()
    READS = auto()
    WRITES = auto()
    ENDED = auto()
    GONE = auto()  # the connection of the client ended before the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRequest:
    """A request without its texts."""

    number: int  # no other request of this process has it
    client: str
    state: RequestState
    came_at: float  # time.monotonic()
    num_read: int  # tokens of the prompt that were fed
    num_to_read: int  # tokens of the prompt to feed in total
    num_written: int
    report: Report | None  # the end of the request, None before it and if the client has gone
    change: ChangedLine | None  # because of which tokens are read again
    has_texts: bool = True

    @property
    def is_open(self) -> bool:
        return self.state not in (RequestState.ENDED, RequestState.GONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTexts:
    """The texts of a request, without harmful characters. Each has at most MAX_CHARS characters."""

    number: int  # of the request
    role: Role  # of the last message
    message: str  # the start of the last message
    message_len: int  # characters of the whole message
    reply: str  # the end of what the client got, with the reasoning before it
    reply_len: int  # characters of the whole reply


@dataclass(frozen=True, slots=True)
class SeenRequests:
    """The requests of a server at one time."""

    requests: tuple[SeenRequest, ...] = ()  # the open ones, then the ended ones, the newest first
    texts: RequestTexts | None = None  # those of the request that was asked for


class LiveRequest:
    """A request, from its start until it is forgotten."""

    def __init__(self, number: int, chat: ChatRequest, cancel: Callable[[RequestId], None]) -> None:
        self.number = number
        self._client = chat.client
        self._num_answers = chat.num_answers
        last = chat.messages[-1]
        self._role, self._message_len = last.role, len(last.content)
        self._message = last.content[:MAX_CHARS]
        self._replies = [_End() for _ in range(chat.num_answers)]
        self._cancel = cancel
        self._came_at = time.monotonic()
        self._is_open = True
        self._state = RequestState.WAITS
        self._num_read = self._num_to_read = 0
        self._num_written: dict[RequestId, int] = {}  # by the request to the engine
        self._ended: list[Ended] = []
        self._error: ServerError | None = None
        self.running: set[RequestId] = set()  # requests to the engine that can be cancelled
        self.is_stopped = False  # True if the user has stopped it
        self.change: ChangedLine | None = None

    def stop(self) -> None:
        """End all answers of the request, because the user wants it."""
        self.is_stopped = True
        for request_id in self.running:
            self._cancel(request_id)

    def note_event(self, event: RequestEvent | None) -> None:
        """Take an event of one of the requests to the engine."""
        match event:
            case RequestQueued():
                if not self._num_written:
                    self._state = RequestState.WAITS
            case RequestStarted(_, plan):
                self._show_reading(0, plan.prompt_tokens - plan.restored)
            case PrefillProgress(_, done, total):
                self._show_reading(done, total)
            case TextDelta(request_id):
                self._state = RequestState.WRITES
                self._num_written[request_id] = event.num_tokens
            case _:
                pass

    def note_piece(self, piece: Piece) -> None:
        """Take a piece of the answer that the client gets."""
        reply = self._replies[piece.index]
        match piece:
            case Thought(text) | Said(text):
                reply.add(type(piece), text)
            case Called(call):
                reply.add(Called, f"{call.name} {call.arguments}\n")
            case Ended():
                self._ended.append(piece)
            case _:
                pass

    def end(self, error: ServerError | None) -> None:
        """Take the end. error: why the request failed, if it did."""
        self._is_open = False
        self._error = error

    def seen(self) -> SeenRequest:
        ended = self._error
        if ended is None and len(self._ended) == self._num_answers:
            ended = sum_of(self._ended)
        report = None
        if not self._is_open and ended is not None:
            report = Report(client=self._client, ended=ended, change=self.change)
        state = RequestState.GONE if report is None else RequestState.ENDED
        return SeenRequest(
            number=self.number,
            client=self._client,
            state=self._state if self._is_open else state,
            came_at=self._came_at,
            num_read=self._num_read,
            num_to_read=self._num_to_read,
            num_written=sum(self._num_written.values()),
            report=report,
            change=self.change,
        )

    def texts(self) -> RequestTexts:
        reply = "\n\n".join(reply.text for reply in self._replies)
        return RequestTexts(
            number=self.number,
            role=self._role,
            message=harmless_text(self._message),
            message_len=self._message_len,
            reply=harmless_text(reply[-MAX_CHARS:]),
            reply_len=sum(reply.num_chars for reply in self._replies),
        )

    def _show_reading(self, done: int, total: int) -> None:
        if not self._num_written:
            self._state = RequestState.READS
            self._num_read, self._num_to_read = done, total


class RefusedRequest:
    """A request that was refused before the model got it. Its texts are not kept."""

    def __init__(self, number: int, report: Report, *, is_barred: bool = False) -> None:
        self.number = number
        self.is_barred = is_barred
        self._report = report
        self._came_at = time.monotonic()

    def seen(self) -> SeenRequest:
        return SeenRequest(
            number=self.number,
            client=self._report.client,
            state=RequestState.ENDED,
            came_at=self._came_at,
            num_read=0,
            num_to_read=0,
            num_written=0,
            report=self._report,
            change=None,
            has_texts=False,
        )

    def texts(self) -> None:
        return None


class LiveRequests:
    """All requests of a server that are answered or wait, and the last ended ones."""

    def __init__(self, cancel: Callable[[RequestId], None]) -> None:
        """Create the object. cancel: ends a request to the engine."""
        self._cancel = cancel
        self._open: dict[int, LiveRequest] = {}
        # The newest first
        self._ended: deque[LiveRequest | RefusedRequest] = deque(maxlen=MAX_ENDED)

    @contextmanager
    def opened(self, chat: ChatRequest) -> Generator[LiveRequest]:
        """Follow a request until the end of the context."""
        request = LiveRequest(next(_numbers), chat, self._cancel)
        self._open[request.number] = request
        failed: ServerError | None = None
        try:
            yield request
        except ServerError as error:
            failed = error
            raise
        finally:
            request.end(failed)
            del self._open[request.number]
            self._ended.appendleft(request)

    def note_refused(self, report: Report) -> None:
        """Keep the end of a request that the model does not get."""
        self._ended.appendleft(RefusedRequest(next(_numbers), report))

    def note_barred(self, report: Report) -> None:
        """Keep the end of a request whose body was not read, MAX_BARRED of these at most."""
        barred = [one for one in self._ended if isinstance(one, RefusedRequest) and one.is_barred]
        if len(barred) == MAX_BARRED:
            self._ended.remove(barred[-1])
        self._ended.appendleft(RefusedRequest(next(_numbers), report, is_barred=True))

    def stop(self, number: int) -> None:
        """End the answer to a request, unless it has ended."""
        if number in self._open:
            self._open[number].stop()

    def seen(self, shown: int | None) -> SeenRequests:
        """Return all requests. shown: the number of the request whose texts are wanted."""
        kept = (*reversed(self._open.values()), *self._ended)
        texts = next((request.texts() for request in kept if request.number == shown), None)
        return SeenRequests(tuple(request.seen() for request in kept), texts)


class _End:
    """The end of a text that grows."""

    def __init__(self) -> None:
        self.num_chars = 0
        self.text = ""
        self._kind: type[Piece] | None = None

    def add(self, kind: type[Piece], text: str) -> None:
        """Add a text. Texts of different kinds are paragraphs of their own."""
        if self._kind is not None and self._kind is not kind:
            text = f"\n\n{text}"
        self._kind = kind
        self.num_chars += len(text)
        self.text = f"{self.text}{text}"[-MAX_CHARS:]
