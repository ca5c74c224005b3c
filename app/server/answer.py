"""The request that the engine gets for a client's, and its answer as far as it was delivered."""

from __future__ import annotations

import secrets
import time
import uuid
from dataclasses import replace

from app.server.answer_text import CallSplitter, CallText, StopTexts
from app.server.async_engine import SILENCE_S
from app.server.chat_request import ChatRequest, Ended
from app.server.errors import ErrorKind, ServerError
from app.server.known_chats import SERVER_PREFIX, PlacedChat
from app.server.live_requests import LiveRequest
from app.server.logprobs import scores_within
from app.words import server as words
from engine.events import ModelFacts, RequestFinished
from engine.types import FinishReason, Request, RequestId, ToolCall


class DeliveredAnswer:
    """The answer to a request, as far as it was delivered."""

    def __init__(
        self, chat: ChatRequest, model: ModelFacts, placed: PlacedChat, live: LiveRequest
    ) -> None:
        self.chat = chat
        self.placed = placed
        self.live = live
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


def request_of(chat: ChatRequest, model: ModelFacts, placed: PlacedChat) -> Request:
    """Return the request that the engine gets."""
    return Request(
        request_id=RequestId(f"{SERVER_PREFIX}{uuid.uuid4().hex}"),
        conversation_id=placed.conversation_id,
        follows=chat.follows,
        shares_prompt=chat.num_answers > 1,
        messages=placed.messages,
        new_messages=placed.new_messages,
        sampling=replace(model.default_sampling, **{**chat.sampling, "seed": seed_of(chat)}),
        max_tokens=model.context_len if chat.max_tokens is None else chat.max_tokens,
        thinking=chat.thinking,
        max_drafts=None,
        tools=chat.tools,
        answer_format=chat.answer_format,
        num_likeliest=chat.num_likeliest,
    )


def seed_of(chat: ChatRequest) -> int:
    """Return the seed of a request. One without a seed gets another each time."""
    return int(chat.sampling.get("seed", secrets.randbits(32)))


def stopped(live: LiveRequest, *, is_stopping: bool) -> ServerError:
    """Return the error of an answer that was cut off.

    A client tries again after many kinds of errors, but not if the request is the cause. So it does
    not ask again for an answer that the user has stopped.

    is_stopping: True if the server is being stopped.
    """
    if live.is_stopped:
        return ServerError(ErrorKind.INVALID, words.STOPPED_BY_USER)
    sentence = words.SERVER_STOPPED if is_stopping else words.STOPPED
    return ServerError(ErrorKind.UNAVAILABLE, sentence)


def end_of(finished: RequestFinished, answer: DeliveredAnswer, *, is_stopping: bool) -> Ended:
    """Return the end of an answer.

    is_stopping: True if the server is being stopped.

    Raises:
        ServerError: the answer was cut off, for example because another model is loaded.
    """
    stop = answer.stop
    if finished.reason is FinishReason.CANCELLED and stop is None:
        raise stopped(answer.live, is_stopping=is_stopping)
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
        scores=scores_within(finished.scores, len(answer.raw)),
    )
