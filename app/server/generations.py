"""Answers the requests of all protocols on the engine. One object for each server.

protocol --ChatRequest--> Generations.generate --Request--> engine
protocol <----Piece------ Generations.generate <---events-- engine
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from functools import partial

from app.server.answer import DeliveredAnswer, end_of, request_of, seed_of, stopped
from app.server.answer_text import CallText
from app.server.async_engine import AsyncEngine
from app.server.chat_request import (
    Begun,
    Called,
    ChatRequest,
    Piece,
    Said,
    SignOfLife,
    Thought,
    merged_users,
)
from app.server.errors import ErrorKind, ServerError, error_of, invalid
from app.server.kept_replies import KeptReplies
from app.server.known_chats import SERVER_PREFIX, KnownChats
from app.server.live_requests import LiveRequest, LiveRequests
from app.server.merging import merged
from app.server.metrics import Metrics
from app.server.model_choice import OfferedModels
from app.server.report import Report, Watcher
from app.server.served_models import ServedModels
from app.words import server as words
from engine.clients import RequestEvent
from engine.errors import EngineError
from engine.events import (
    ModelFacts,
    PrefillProgress,
    RequestFailed,
    RequestFinished,
    RequestQueued,
    RequestStarted,
    TextDelta,
)
from engine.problem import ProblemKind
from engine.questions import NextPrompt
from engine.types import (
    Channel,
    ConversationId,
    Message,
    RequestId,
    Role,
)

log = logging.getLogger(__name__)

_MAX_OPEN = 64  # requests that run or wait
# More characters than any text has for each token. Longer texts are refused without being encoded,
# which would take seconds.
_TOKEN_CHARS = 64
# No chat: nothing is kept of what is only counted.
_COUNTED = ConversationId(f"{SERVER_PREFIX}counted")


class Generations:
    """Answers requests. For the event loop of the server."""

    def __init__(
        self,
        engine: AsyncEngine,
        replies: KeptReplies,
        watcher: Watcher,
        offered: OfferedModels | None = None,
    ) -> None:
        """Create the object.

        Args:
            engine: the engine.
            replies: the replies of earlier requests.
            watcher: told of each request.
            offered: the models that requests can name. None: only the loaded one is listed.
        """
        self._engine = engine
        self._watcher = watcher
        self._chats = KnownChats(replies)
        self.metrics = Metrics(watcher.note_open)
        self.models = ServedModels(
            engine, offered or OfferedModels(None), lambda: self.metrics.num_open
        )
        self.live = LiveRequests(engine.client.cancel)
        # Paths of models whose template refuses user messages in a row
        self._merging: set[str] = set()

    async def generate(self, chat: ChatRequest) -> AsyncGenerator[Piece]:
        """Answer a request. Closing the iterator stops the answer; what was read stays cached.

        Raises:
            ServerError: the request is refused or failed, before the first piece or later.
        """
        with self.unopened_request(chat.client):
            model = await self._model_for(chat)
            if self.metrics.num_open + chat.num_answers > _MAX_OPEN:
                raise ServerError(ErrorKind.BUSY, words.BUSY)
        answers = self._attempts if chat.num_answers == 1 else self._several
        try:
            with (
                self.metrics.open_request(chat.num_answers),
                self.live.opened(chat) as live,
                _logged_bugs(),
            ):
                async with aclosing(answers(chat, model, live)) as pieces:
                    async for piece in pieces:
                        live.note_piece(piece)
                        yield piece
        except ServerError as error:
            self._watcher.report(Report(client=chat.client, ended=error))
            raise

    @contextmanager
    def unopened_request(self, client: str) -> Generator[None]:
        """Count and report a request for an answer only if it is refused before it is opened."""
        with self.reported_refusals(client), self.metrics.unopened_request():
            yield

    @contextmanager
    def reported_refusals(self, client: str) -> Generator[None]:
        """Report the error that a client gets in place of an answer, if it gets one."""
        try:
            yield
        except ServerError as error:
            report = Report(client=client, ended=error)
            self.live.note_refused(report)
            self._watcher.report(report)
            raise

    async def count(self, chat: ChatRequest) -> int:
        """Return the number of tokens of a request's prompt, up to where the answer begins.

        Raises:
            ServerError: the request is refused.
        """
        refused: EngineError | None = None
        for tried in self._tries(chat, await self._model_for(chat)):
            try:
                asked = self._engine.client.count_tokens(self._counted(tried))
                return (await self._engine.answer(asked)).num_tokens
            except EngineError as error:
                refused = _refusal(error)
        assert refused is not None
        raise error_of(refused.problem) from refused

    def _counted(self, chat: ChatRequest) -> NextPrompt:
        """Return the prompt whose length the engine is asked for.

        The engine counts up to the end of the parts of a draft. An empty reply as the draft ends
        where the answer begins.
        """
        *above, last = chat.messages
        if last.role is not Role.ASSISTANT:
            above, last = chat.messages, Message(role=Role.ASSISTANT, content="")
        draft = replace(last, part_ends=(len(last.content),))
        return NextPrompt(
            conversation_id=_COUNTED,
            messages=(*self._chats.with_own_replies(above), draft),
            is_draft=True,
            thinking=chat.thinking,
            tools=chat.tools,
        )

    async def _model_for(self, chat: ChatRequest) -> ModelFacts:
        """Return the loaded model.

        Raises:
            ServerError: there is none, or it can't do what is asked for.
        """
        model = await self.models.required()
        if chat.tools and not model.can_use_tools:
            raise invalid(words.CANNOT_USE_TOOLS, "tools")
        num_chars = sum(len(message.content) for message in chat.messages) + len(chat.tools)
        if num_chars > _TOKEN_CHARS * model.context_len:
            too_long = words.context_exceeded(num_chars, model.context_len)
            raise ServerError(ErrorKind.CONTEXT, too_long, "messages")
        return model

    async def _several(
        self, chat: ChatRequest, model: ModelFacts, live: LiveRequest
    ) -> AsyncGenerator[Piece]:
        """Write several answers at the same time. The first failure ends them all.

        The engine reads the prompt for the first one. The others are requested when it has begun:
        the template has accepted its messages then, and they follow its request.
        """
        begun: asyncio.Future[RequestId | None] = asyncio.get_running_loop().create_future()

        async def write(seeded: ChatRequest, *, is_first: bool) -> AsyncGenerator[Piece]:
            if not is_first:
                seeded = replace(seeded, follows=await begun)
            async with aclosing(self._attempts(seeded, model, live)) as pieces:
                async for piece in pieces:
                    if is_first and isinstance(piece, Begun) and not begun.done():
                        begun.set_result(piece.request_id)
                    yield piece

        answers = [write(one, is_first=index == 0) for index, one in enumerate(_with_seeds(chat))]
        async with aclosing(merged(answers)) as pieces:
            async for index, piece in pieces:
                yield replace(piece, index=index)

    async def _attempts(
        self, chat: ChatRequest, model: ModelFacts, live: LiveRequest
    ) -> AsyncGenerator[Piece]:
        """Answer a request. If the template refuses it, merge user messages in a row."""
        refused: EngineError | None = None
        for tried in self._tries(chat, model):
            try:
                async with aclosing(self._answer(tried, model, live)) as pieces:
                    async for piece in pieces:
                        if refused is not None and isinstance(piece, Begun):
                            self._merging.add(model.path)
                        yield piece
                return
            except EngineError as error:
                refused = _refusal(error)
        assert refused is not None
        raise error_of(refused.problem) from refused

    def _tries(self, chat: ChatRequest, model: ModelFacts) -> tuple[ChatRequest, ...]:
        """Return a request as it is and with merged user messages, as far as it makes sense."""
        shorter = replace(chat, messages=merged_users(chat.messages))
        if model.path in self._merging or shorter.messages == chat.messages:
            return (shorter,)
        return chat, shorter

    async def _answer(
        self, chat: ChatRequest, model: ModelFacts, live: LiveRequest
    ) -> AsyncGenerator[Piece]:
        """Answer a request.

        Raises:
            ServerError: the request was stopped or its answer cut off.
            EngineError: the request failed.
        """
        if live.is_stopped:
            raise self._stopped(live)
        placed = self._chats.place(chat.messages)
        live.change = live.change or placed.change
        answer = DeliveredAnswer(chat, model, placed, live)
        request = request_of(chat, model, placed)
        live.running.add(request.request_id)
        events = self._engine.events(request, partial(self._end, answer))
        try:
            async with aclosing(events):
                async for event in events:
                    live.note_event(event)
                    pieces = await self._pieces(event, answer)
                    if answer.needs_sign_of_life(is_silent=not pieces):
                        pieces = [SignOfLife()]
                    for piece in pieces:
                        yield piece
                    if answer.must_stop:
                        self._engine.client.cancel(request.request_id)
        finally:
            answer.is_abandoned = True
            live.running.discard(request.request_id)

    def _end(self, answer: DeliveredAnswer, last: RequestFinished | RequestFailed) -> None:
        """Let others continue the chat. If the client has gone, keep the reply so far."""
        self._chats.release(answer.placed)
        if isinstance(last, RequestFinished):
            self.metrics.add_usage(last.usage)
        if answer.is_abandoned and isinstance(last, RequestFinished):
            self._note_reply(answer, last)

    async def _pieces(self, event: RequestEvent | None, answer: DeliveredAnswer) -> list[Piece]:
        """Return what a client gets for an event of its request.

        Raises:
            ServerError: the request was stopped or its answer cut off.
            EngineError: the request failed.
        """
        match event:
            case None | PrefillProgress():
                return [_sign_of_life(event)]
            case RequestStarted(_, plan):
                return [Begun(plan.prompt_tokens, plan.restored, event.request_id)]
            case TextDelta(_, Channel.REASONING, text):
                return [Thought(text)]
            case TextDelta(_, _, text):
                return await self._shown(answer.add(text), answer)
            case RequestFailed(_, problem):
                if answer.live.is_stopped or self._engine.is_stopping:  # it was still waiting
                    raise self._stopped(answer.live)
                raise EngineError.of(problem)
            case RequestFinished():
                return await self._finish(event, answer)
            case RequestQueued():
                return []

    async def _shown(self, parts: Iterable[str | CallText], answer: DeliveredAnswer) -> list[Piece]:
        """Return the pieces of parts of an answer. A call that can't be parsed is text."""
        pieces: list[Piece] = []
        for part in parts:
            if isinstance(part, CallText):
                with suppress(EngineError):
                    asked = self._engine.client.parse_calls(part.text, answer.chat.tools)
                    calls = await self._engine.answer(asked)
                    answer.calls += calls
                    pieces += map(Called, calls)
                    continue
            text = part.whole if isinstance(part, CallText) else part
            answer.shown += text
            pieces.append(Said(text))
        return pieces

    async def _finish(self, finished: RequestFinished, answer: DeliveredAnswer) -> list[Piece]:
        """Return the last pieces of an answer. Keep the reply, and report what it cost.

        Raises:
            ServerError: the answer was cut off.
        """
        pieces = await self._shown(answer.flush(), answer)
        self._note_reply(answer, finished)
        ended = end_of(finished, answer, is_stopping=self._engine.is_stopping)
        client, change = answer.chat.client, answer.placed.change
        self._watcher.report(Report(client=client, ended=ended, change=change))
        return [*pieces, ended]

    def _stopped(self, live: LiveRequest) -> ServerError:
        return stopped(live, is_stopping=self._engine.is_stopping)

    def _note_reply(self, answer: DeliveredAnswer, finished: RequestFinished) -> None:
        reply = Message(
            role=Role.ASSISTANT,
            content=answer.raw,
            reasoning=finished.reasoning,
            reply=finished.reply,
        )
        self._chats.note_reply(answer.placed, reply, answer.shown, tuple(answer.calls))


@contextmanager
def _logged_bugs() -> Generator[None]:
    """Log an unexpected exception, and raise a ServerError in its place.

    Otherwise it would end a stream without an error, and count as a client that has gone.
    """
    try:
        yield
    except ServerError:
        raise
    except Exception as error:
        log.exception("an answer failed")
        raise ServerError(ErrorKind.BROKEN, words.BROKEN) from error


def _refusal(error: EngineError) -> EngineError:
    """Return the error of a template that refused the messages.

    Raises:
        ServerError: it is another error.
    """
    if error.problem.kind is not ProblemKind.TEMPLATE:
        raise error_of(error.problem) from error
    return error


def _sign_of_life(progress: PrefillProgress | None) -> SignOfLife:
    return SignOfLife() if progress is None else SignOfLife(progress.done, progress.total)


def _with_seeds(chat: ChatRequest) -> list[ChatRequest]:
    """Return a request for each of several answers. Their seeds differ."""
    first = seed_of(chat)
    return [
        replace(chat, sampling={**chat.sampling, "seed": (first + index) % (1 << 32)})
        for index in range(chat.num_answers)
    ]
