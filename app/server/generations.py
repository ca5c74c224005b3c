"""Answers the requests of all protocols on the engine. One object for each server.

protocol --ChatRequest--> Generations.generate --Request--> engine
protocol <----Piece------ Generations.generate <---events-- engine
"""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial

from app.server.answer_text import CallSplitter, CallText, StopTexts
from app.server.async_engine import SILENCE_S, AsyncEngine
from app.server.chat_request import (
    Begun,
    Called,
    ChatRequest,
    Ended,
    Piece,
    Said,
    SignOfLife,
    Thought,
    merged_users,
)
from app.server.errors import ErrorKind, ServerError, error_of, invalid
from app.server.kept_replies import KeptReplies
from app.server.known_chats import SERVER_PREFIX, KnownChats, PlacedChat
from app.server.merging import merged
from app.server.metrics import Metrics
from app.server.report import Report
from app.words import server as words
from engine.clients import RequestEvent
from engine.errors import EngineError, TemplateError
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
from engine.questions import CountTokens, NextPrompt, ParseCalls
from engine.types import (
    Channel,
    ConversationId,
    FinishReason,
    Message,
    Request,
    RequestId,
    Role,
    ToolCall,
)

_MAX_OPEN = 64  # requests that run or wait
# More characters than any text has for each token. Longer texts are refused without being encoded, which
# would take seconds.
_TOKEN_CHARS = 64
_COUNTED = ConversationId(
    f"{SERVER_PREFIX}counted"
)  # no chat: nothing is kept of what is only counted


class Generations:
    """Answers requests. For the event loop of the server."""

    def __init__(
        self, engine: AsyncEngine, replies: KeptReplies, on_report: Callable[[Report], None]
    ) -> None:
        """Create the object.

        Args:
            engine: the engine.
            replies: the replies of earlier requests.
            on_report: called at the end of each request.
        """
        self._engine = engine
        self._on_report = on_report
        self._chats = KnownChats(replies)
        self.metrics = Metrics()
        # Paths of models whose template refuses user messages in a row
        self._merging: set[str] = set()

    async def model(self) -> ModelFacts:
        """Return the loaded model. Wait while one is being loaded.

        Raises:
            ServerError: there is none.
        """
        await self._engine.settled()
        if self._engine.model is None:
            problem = self._engine.model_problem
            raise ServerError(ErrorKind.UNAVAILABLE, str(problem or words.NO_MODEL))
        return self._engine.model

    async def generate(self, chat: ChatRequest) -> AsyncGenerator[Piece]:
        """Answer a request. Closing the iterator stops the answer; what was read stays cached.

        Raises:
            ServerError: the request is refused or failed, before the first piece or later.
        """
        with self.metrics.unopened_request():
            model = await self._model_for(chat)
            if self.metrics.num_open + chat.num_answers > _MAX_OPEN:
                raise ServerError(ErrorKind.BUSY, words.BUSY)
        answers = self._attempts if chat.num_answers == 1 else self._several
        try:
            with self.metrics.open_request(chat.num_answers):
                async with aclosing(answers(chat, model)) as pieces:
                    async for piece in pieces:
                        yield piece
        except ServerError as error:
            self._on_report(Report(client=chat.client, ended=error))
            raise

    async def count(self, chat: ChatRequest) -> int:
        """Return the number of tokens of a request's prompt, up to where the answer begins.

        Raises:
            ServerError: the request is refused.
        """
        refused: EngineError | None = None
        for one in self._tries(chat, await self._model_for(chat)):
            try:
                return (await self._engine.answer(self._counting(one))).num_tokens
            except EngineError as error:
                if error.problem.kind is not ProblemKind.TEMPLATE:
                    raise error_of(error.problem) from error
                refused = error
        assert refused is not None
        raise invalid(str(refused.problem), "messages") from refused

    def _counting(self, chat: ChatRequest) -> CountTokens:
        """Return the question for the length of a prompt.

        The engine counts up to the end of the parts of a draft. An empty reply as the draft ends where
        the answer begins.
        """
        *above, last = chat.messages
        if last.role is not Role.ASSISTANT:
            above, last = chat.messages, Message(role=Role.ASSISTANT, content="")
        draft = replace(last, part_ends=(len(last.content),))
        return CountTokens(
            NextPrompt(
                conversation_id=_COUNTED,
                messages=(*self._chats.with_own_replies(above), draft),
                is_draft=True,
                thinking=chat.thinking,
                tools=chat.tools,
            )
        )

    async def _model_for(self, chat: ChatRequest) -> ModelFacts:
        """Return the loaded model.

        Raises:
            ServerError: there is none, or it can't do what is asked for.
        """
        model = await self.model()
        if chat.tools and not model.can_use_tools:
            raise invalid(words.CANNOT_USE_TOOLS, "tools")
        num_chars = sum(len(message.content) for message in chat.messages) + len(chat.tools)
        if num_chars > _TOKEN_CHARS * model.context_len:
            too_long = words.context_exceeded(num_chars, model.context_len)
            raise ServerError(ErrorKind.CONTEXT, too_long, "messages")
        return model

    async def _several(self, chat: ChatRequest, model: ModelFacts) -> AsyncGenerator[Piece]:
        """Write several answers at the same time. The first failure ends them all.

        The prompt is read before, by a request for one token that is thrown away: requests that begin
        together would each read it.
        """
        reading: Ended | None = None
        async with aclosing(self._attempts(replace(chat, max_tokens=1, stops=()), model)) as start:
            async for piece in start:
                if isinstance(piece, Ended):
                    reading = piece
                elif isinstance(piece, (SignOfLife, Begun)):
                    yield piece
        assert reading is not None
        answers = [self._attempts(one, model) for one in _with_seeds(chat)]
        async with aclosing(merged(answers)) as pieces:
            async for index, piece in pieces:
                if isinstance(piece, Ended):
                    piece = _after_reading(piece, reading)
                yield replace(piece, index=index)

    async def _attempts(self, chat: ChatRequest, model: ModelFacts) -> AsyncGenerator[Piece]:
        """Answer a request. If the template refuses it, merge user messages in a row."""
        refused: TemplateError | None = None
        for one in self._tries(chat, model):
            try:
                async with aclosing(self._answer(one, model)) as pieces:
                    async for piece in pieces:
                        if refused is not None and isinstance(piece, Begun):
                            self._merging.add(model.path)
                        yield piece
                return
            except TemplateError as error:
                refused = error
        assert refused is not None
        raise invalid(str(refused.problem), "messages") from refused

    def _tries(self, chat: ChatRequest, model: ModelFacts) -> tuple[ChatRequest, ...]:
        """Return a request as it is and with merged user messages, as far as it makes sense."""
        merged = replace(chat, messages=merged_users(chat.messages))
        if model.path in self._merging or merged.messages == chat.messages:
            return (merged,)
        return chat, merged

    async def _answer(self, chat: ChatRequest, model: ModelFacts) -> AsyncGenerator[Piece]:
        """Answer a request.

        Raises:
            ServerError: the request failed.
            TemplateError: the template refused the messages.
        """
        placed = self._chats.place(chat.messages)
        answer = _Answer(chat, model, placed)
        request = _request(chat, model, placed)
        events = self._engine.events(request, partial(self._end, answer))
        try:
            async with aclosing(events):
                async for event in events:
                    pieces = await self._pieces(event, answer)
                    if answer.needs_sign_of_life(is_silent=not pieces):
                        pieces = [SignOfLife()]
                    for piece in pieces:
                        yield piece
                    if answer.must_stop:
                        self._engine.cancel(request.request_id)
        finally:
            answer.is_abandoned = True

    def _end(self, answer: _Answer, last: RequestFinished | RequestFailed) -> None:
        """Let others continue the chat. Keep the reply of a client that has gone, as far as it came."""
        self._chats.release(answer.placed)
        if isinstance(last, RequestFinished):
            self.metrics.add_usage(last.usage)
        if answer.is_abandoned and isinstance(last, RequestFinished):
            self._note_reply(answer, last)

    async def _pieces(self, event: RequestEvent | None, answer: _Answer) -> list[Piece]:
        """Return what a client gets for an event of its request.

        Raises:
            ServerError: the request failed.
            TemplateError: the template refused the messages.
        """
        match event:
            case None | PrefillProgress():
                return [_sign_of_life(event)]
            case RequestStarted(_, plan):
                return [Begun(plan.prompt_tokens, plan.restored)]
            case TextDelta(_, Channel.REASONING, text):
                return [Thought(text)]
            case TextDelta(_, _, text):
                return await self._shown(answer.add(text), answer)
            case RequestFailed(_, problem):
                is_template = problem.kind is ProblemKind.TEMPLATE
                raise TemplateError.of(problem) if is_template else error_of(problem)
            case RequestFinished():
                return await self._finish(event, answer)
            case RequestQueued():
                return []

    async def _shown(self, parts: Iterable[str | CallText], answer: _Answer) -> list[Piece]:
        """Return the pieces of parts of an answer. A call that can't be parsed is text."""
        pieces: list[Piece] = []
        for part in parts:
            if isinstance(part, CallText):
                with suppress(EngineError):
                    calls = await self._engine.answer(ParseCalls(part.text, answer.chat.tools))
                    answer.calls += calls
                    pieces += map(Called, calls)
                    continue
            text = part.whole if isinstance(part, CallText) else part
            answer.shown += text
            pieces.append(Said(text))
        return pieces

    async def _finish(self, finished: RequestFinished, answer: _Answer) -> list[Piece]:
        """Return the last pieces of an answer. Keep the reply, and report what it cost.

        Raises:
            ServerError: the answer was cut off.
        """
        pieces = await self._shown(answer.flush(), answer)
        self._note_reply(answer, finished)
        ended = _ended(finished, answer.stop)
        client, change = answer.chat.client, answer.placed.change
        self._on_report(Report(client=client, ended=ended, change=change))
        return [*pieces, ended]

    def _note_reply(self, answer: _Answer, finished: RequestFinished) -> None:
        reply = Message(
            role=Role.ASSISTANT,
            content=answer.raw,
            reasoning=finished.reasoning,
            reply=finished.reply,
        )
        self._chats.note_reply(answer.placed, reply, answer.shown, tuple(answer.calls))


class _Answer:
    """The answer to a request, as far as it was delivered."""

    def __init__(self, chat: ChatRequest, model: ModelFacts, placed: PlacedChat) -> None:
        self.chat = chat
        self.placed = placed
        calls = chat.tools and chat.may_call
        self._splitter = CallSplitter(model.call_start, model.call_end) if calls else CallSplitter()
        self._stops = StopTexts(chat.stops)
        self.raw = ""  # text with that of calls
        self.shown = ""  # text that the client got
        self.calls: list[ToolCall] = []
        self.must_stop = False  # True once, after a stop text
        self.is_abandoned = False  # True if the client takes no more of it
        self._heard_at = time.monotonic()  # when the client last got something

    @property
    def stop(self) -> str | None:
        """The text that ended the answer."""
        return self._stops.found

    def needs_sign_of_life(self, *, is_silent: bool) -> bool:
        """Return True if the client got nothing for too long: a tool call is delivered at its end.

        is_silent: True if there is nothing for the client now.
        """
        now = time.monotonic()
        is_late = now - self._heard_at > SILENCE_S
        if is_late or not is_silent:
            self._heard_at = now
        return is_silent and is_late

    def add(self, text: str) -> list[str | CallText]:
        """Add text of the model. Return what the client gets now."""
        self.must_stop = self.stop is None
        text = self._stops.add(text)
        self.must_stop &= self.stop is not None
        self.raw += text
        return self._splitter.add(text)

    def flush(self) -> list[str | CallText]:
        """Return what the client gets at the end."""
        text = self._stops.flush()
        self.raw += text
        return [*self._splitter.add(text), *self._splitter.flush()]


def _sign_of_life(progress: PrefillProgress | None) -> SignOfLife:
    return SignOfLife() if progress is None else SignOfLife(progress.done, progress.total)


def _request(chat: ChatRequest, model: ModelFacts, placed: PlacedChat) -> Request:
    return Request(
        request_id=RequestId(f"{SERVER_PREFIX}{uuid.uuid4().hex}"),
        conversation_id=placed.conversation_id,
        messages=placed.messages,
        new_messages=placed.new_messages,
        sampling=replace(model.default_sampling, **{**chat.sampling, "seed": _seed(chat)}),
        max_tokens=model.context_len if chat.max_tokens is None else chat.max_tokens,
        thinking=chat.thinking,
        max_drafts=None,
        tools=chat.tools,
    )


def _after_reading(ended: Ended, reading: Ended) -> Ended:
    """Return the cost of an answer whose prompt another request has read."""
    return replace(
        ended,
        restored=reading.restored,
        replayed=reading.replayed,
        read=reading.read,
        first_word_ms=reading.total_ms + ended.first_word_ms,
    )


def _with_seeds(chat: ChatRequest) -> list[ChatRequest]:
    """Return a request for each of several answers. Their seeds differ."""
    first = _seed(chat)
    return [
        replace(chat, sampling={**chat.sampling, "seed": (first + index) % (1 << 32)})
        for index in range(chat.num_answers)
    ]


def _seed(chat: ChatRequest) -> int:
    return int(chat.sampling.get("seed", secrets.randbits(32)))


def _ended(finished: RequestFinished, stop: str | None) -> Ended:
    """Return the end of an answer.

    Raises:
        ServerError: the answer was cut off, for example because another model is loaded.
    """
    if finished.reason is FinishReason.CANCELLED and stop is None:
        raise ServerError(ErrorKind.UNAVAILABLE, words.STOPPED)
    usage, plan = finished.usage, finished.usage.plan
    return Ended(
        at_limit=finished.reason is FinishReason.LENGTH,
        stop=stop,
        prompt_tokens=plan.prompt_tokens,
        restored=plan.restored,
        replayed=plan.replayed,
        read=plan.read,
        output_tokens=usage.output_tokens,
        reasoning_tokens=finished.reply.answer_start,
        first_word_ms=usage.ttft_ms,
        queue_ms=usage.queue_ms,
        total_ms=usage.total_ms,
    )
