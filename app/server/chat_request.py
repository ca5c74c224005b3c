"""A request for an answer in one form, which all protocols of the server are translated to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from engine.types import AnswerFormat, Message, RequestId, Role, TokenScore, ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """A request of a client. None and "" stand for the default of the loaded model."""

    messages: tuple[Message, ...]
    tools: str = ""  # as in engine.types.Request
    may_call: bool = True  # False: a tool call in the answer is delivered as text
    answer_format: AnswerFormat | None = None  # as in engine.types.Request
    # Namespaces and names that the client has for functions, by the names that the model gets, if
    # they may differ
    client_names: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    num_answers: int = 1  # answers that are written at the same time
    # Request of the first of several answers, which reads the prompt for this one. None for that
    # one
    follows: RequestId | None = None
    num_likeliest: int | None = None  # as in engine.types.Request
    max_tokens: int | None = None
    stops: tuple[str, ...] = ()  # texts before which the answer ends
    thinking: bool | None = None
    # Values for fields of engine.types.SamplingParams, by name
    sampling: Mapping[str, float] = field(default_factory=dict[str, float])
    client: str = ""  # name of the program, from its User-Agent
    # Fields of the body that are accepted and have no effect
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfAnswer:
    """A part of an answer."""

    index: int = 0  # of the answer, among ChatRequest.num_answers


@dataclass(frozen=True, slots=True)
class SignOfLife(_OfAnswer):
    """The request waits, or its prompt is read."""

    done: int = 0  # number of tokens that were read
    total: int = 0  # number of tokens to read; 0 while the request waits


@dataclass(frozen=True, slots=True)
class Begun(_OfAnswer):
    """The cached part of the prompt was restored."""

    prompt_tokens: int
    restored: int
    request_id: RequestId | None = None  # request that the engine got


@dataclass(frozen=True, slots=True)
class Thought(_OfAnswer):
    """New text of the reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Said(_OfAnswer):
    """New text of the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Called(_OfAnswer):
    """A complete tool call."""

    call: ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(_OfAnswer):
    """The end of an answer, and its cost."""

    at_limit: bool  # True if the answer was cut off at the limit of tokens
    stop: str | None  # the text of ChatRequest.stops that ended the answer
    prompt_tokens: int
    restored: int
    replayed: int
    read: int
    output_tokens: int
    reasoning_tokens: int
    first_word_ms: float
    queue_ms: float = 0.0  # a part of first_word_ms, in which a model may have been loaded
    total_ms: float = 0.0
    scores: tuple[TokenScore, ...] = ()  # of the tokens that the client got, if it asked for them


Piece = SignOfLife | Begun | Thought | Said | Called | Ended


def sum_of(ended: Sequence[Ended]) -> Ended:
    """Return the cost of several answers to one prompt, which counts once.

    The first answer says where the tokens of the prompt came from.
    """
    return replace(
        min(ended, key=lambda answer: answer.index),
        output_tokens=sum(answer.output_tokens for answer in ended),
        reasoning_tokens=sum(answer.reasoning_tokens for answer in ended),
    )


def normal_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return messages in the form that chat templates accept.

    System messages at the start become one. A later one becomes a user message, because most
    templates allow a system message only at the start. After the result of a tool it becomes a part
    of this result: after a user message, templates drop the thoughts that led to the calls. Replies
    in a row become one: some protocols send the text of a reply and each of its calls by
    themselves. Messages of the system and of users without any text are left out. A reply alone
    gives no messages, because there is none that it answers.
    """
    normal: list[Message] = []
    for message in messages:
        last = normal[-1] if normal else None
        if message.role is Role.SYSTEM and any(other.role is not Role.SYSTEM for other in normal):
            message = replace(message, role=Role.USER)
            if message.content and last is not None and last.role is Role.TOOL:
                normal[-1] = _joined(last, message)
                continue
        if not message.content and message.role in (Role.SYSTEM, Role.USER):
            continue
        joins = message.role in (Role.SYSTEM, Role.ASSISTANT)
        if joins and last is not None and last.role is message.role:
            normal[-1] = _joined(last, message)
        else:
            normal.append(message)
    if all(message.role is Role.ASSISTANT for message in normal):
        return ()
    return tuple(normal)


def merged_users(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return messages with user messages in a row merged to one, for templates that refuse them."""
    return tuple(_merge(messages))


def _merge(messages: Iterable[Message]) -> Iterator[Message]:
    last: Message | None = None
    for message in messages:
        if last is not None and last.role is message.role is Role.USER:
            last = _joined(last, message)
            continue
        if last is not None:
            yield last
        last = message
    if last is not None:
        yield last


def _joined(first: Message, second: Message) -> Message:
    content = "\n\n".join(filter(None, (first.content, second.content)))
    reasoning = "\n\n".join(filter(None, (first.reasoning, second.reasoning)))
    return replace(first, content=content, reasoning=reasoning, calls=(*first.calls, *second.calls))
