"""The values of a conversation that the app and the engine exchange: messages and requests.

All classes are frozen and do not use mlx, so that their instances can be passed between threads.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NewType

MAX_DRAFTS: Final = 7  # highest number of drafts that one forward pass verifies

RequestId = NewType("RequestId", str)
ConversationId = NewType("ConversationId", str)

# Prefix of the ids under which the engine reads the documents of folders ahead, for new chats in
# the folder. Such an id is no chat.
DOCUMENTS_PREFIX: Final = "documents:"
# Separates the id of a chat from the number of an answer, in an id that answer_id returns.
_ANSWER: Final = "/answer-"


def answer_id(chat_id: ConversationId, number: int) -> ConversationId:
    """Return the conversation id of one of several answers to a message that are written at once.

    A conversation has one set of live caches, so each answer but the first has an id of its own.

    Args:
        chat_id: the conversation of the message.
        number: number of the answer, from 1. The first answer has the id of its chat.
    """
    return chat_id if number == 1 else ConversationId(f"{chat_id}{_ANSWER}{number}")


def chat_of(conversation_id: ConversationId) -> ConversationId:
    """Return the chat of an id that answer_id returned. Any other id is returned unchanged."""
    return ConversationId(conversation_id.partition(_ANSWER)[0])


def num_chats(conversation_ids: Iterable[ConversationId]) -> int:
    """Return the number of chats of conversation ids. The documents of a folder are no chat."""
    chats = {chat_of(one) for one in conversation_ids}
    return sum(not one.startswith(DOCUMENTS_PREFIX) for one in chats)


def is_of(user: str, conversation_id: str) -> bool:
    """Return True if state of `user` on disk is forgotten together with a conversation.

    These are the conversation itself, its several answers, and all documents of a folder if
    `conversation_id` is the beginning of their ids, which ends with a colon.
    """
    is_folder = conversation_id.startswith(DOCUMENTS_PREFIX) and conversation_id.endswith(":")
    return (is_folder and user.startswith(conversation_id)) or conversation_id in (
        user,
        chat_of(ConversationId(user)),
    )


def picture_digest(width: int, height: int, pixels: bytes) -> str:
    """Return the hex SHA-256 of a picture's size and RGB pixels: 8 bits a channel, row by row."""
    return hashlib.sha256(b"%dx%d " % (width, height) + pixels).hexdigest()


class Role(StrEnum):
    """The author of a message. The values are the names that chat templates use."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"  # author of the result of a tool call


class Channel(StrEnum):
    """A part of a reply: the model's reasoning or the answer."""

    REASONING = "reasoning"
    ANSWER = "answer"


class FinishReason(StrEnum):
    """The reason why a reply ended."""

    STOP = "stop"  # the model drew an end token
    LENGTH = "length"  # The reply reached max_tokens, the context length or the memory limit.
    CANCELLED = "cancelled"  # the user or Request.stop_after ended the reply
    ERROR = "error"  # the request failed


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyTokens:
    """The token ids of one reply, kept as drawn so that the reply is never tokenised again.

    The ids are stored as bytes, which take a tenth of the memory of a tuple. This matters because
    the app holds thousands of replies and reads the ids of only a few.
    """

    # The token ids, each as an unsigned 32-bit integer. They are little endian on every machine,
    # because the user may move the data folder to another machine.
    token_bytes: bytes
    # Number of ids at the start that belong to the reasoning and its closing marker. The other ids
    # are the answer.
    answer_start: int
    # Hash of the model's tokenizer. The ids are valid only for a tokenizer with this hash.
    tokenizer_hash: str

    @classmethod
    def of(cls, token_ids: Sequence[int], *, answer_start: int, tokenizer_hash: str) -> ReplyTokens:
        return cls(
            token_bytes=struct.pack(f"<{len(token_ids)}I", *token_ids),
            answer_start=answer_start,
            tokenizer_hash=tokenizer_hash,
        )

    @property
    def token_ids(self) -> tuple[int, ...]:
        """Token ids of the reply. Each access unpacks them from token_bytes."""
        return struct.unpack(f"<{self.num_tokens}I", self.token_bytes)

    @property
    def num_tokens(self) -> int:
        return len(self.token_bytes) // 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call of a function that a client of the model carries out."""

    name: str
    arguments: str  # a JSON object


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture of a user message, as the model gets it.

    Its file is EngineConfig.picture_folder / f"{digest}.png": RGB pixels, 8 bits a channel.
    """

    digest: str  # picture_digest of the pixels
    width: int  # pixels
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation, as the engine receives it in a request."""

    role: Role
    content: str  # text of the message, without the reasoning
    reasoning: str = ""
    reply: ReplyTokens | None = None  # token ids, if a model generated this message; else None
    # Positions in `content` where the parts of a user message end that other versions of the
    # message are likely to share: its attached files. The cache keeps a resume point at each one.
    part_ends: tuple[int, ...] = ()
    # Pictures of a user message. They stand before `content`.
    pictures: tuple[Picture, ...] = ()
    # Tool calls of an assistant message that a client wrote. If a model generated the message, the
    # text of its calls is in `content`.
    calls: tuple[ToolCall, ...] = ()
    tool_name: str = ""  # for the result of a tool call: name of the called function


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParams:
    """Parameters for drawing the next token.

    A parameter of 0 switches its filter or penalty off. The repetition penalty is off at 1.
    """

    temperature: float = 0.7  # at 0 or below, the token with the largest logit is drawn
    top_p: float = 0.95
    top_k: int = 0
    min_p: float = 0.0
    min_kept: int = 1  # lowest number of candidate tokens that the min_p filter must leave
    # Parameters of XTC ("exclude top choices"). Among the tokens with a probability of at least
    # xtc_threshold, XTC excludes all but the least likely one. xtc_probability is the chance that
    # XTC is applied to a draw.
    xtc_probability: float = 0.0
    xtc_threshold: float = 0.1  # minimum probability of a top choice, 0 to 0.5
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForcedReply:
    """A given reply. Its tokens are fed in place of sampled tokens, for benchmarks and tests."""

    text: str
    reasoning: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenScore:
    """The log-probability of a token of an answer, and those of the most likely tokens.

    The text of a token that is a part of a character contains U+FFFD.
    """

    text: str
    end: int  # length of the text of the answer up to the end of this token
    logprob: float  # natural logarithm
    likeliest: tuple[
        tuple[str, float], ...
    ] = ()  # texts and log-probabilities, the likeliest first


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerFormat:
    """The form that an answer must have: a JSON value of a schema, calls of functions, or either.

    The reasoning before the answer is free.
    """

    schema: str = ""  # a JSON schema, as a JSON object; "" if the answer must be calls
    functions: tuple[str, ...] = ()  # names of the tools of the request that may be called
    calls_once: bool = False  # True if the answer has one call at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for the next message of the assistant, or for the rest of a cut-off message.

    If messages end with a reply, the request continues this reply. The reply's token ids are fed
    unchanged, and the new tokens follow them.
    """

    request_id: RequestId
    conversation_id: ConversationId
    # All messages of the shown branch. The last one is a user message or the reply to continue.
    messages: tuple[Message, ...]
    # Indices of the messages that no model has read. In PromptPlan, fed tokens of these messages
    # count as `read`, and fed tokens of the other messages count as `replayed`.
    new_messages: frozenset[int]
    # A request with the same messages. This one starts once the prompt of that one has been read,
    # or once that one has ended, and restores the whole prompt. None: it waits for no other
    # request.
    follows: RequestId | None = None
    # True if several requests have these messages. The first one that reads the prompt publishes
    # it, also if the others have not been submitted yet.
    shares_prompt: bool = False
    # Indices of the messages that only other models have read.
    foreign_messages: frozenset[int] = frozenset()
    # True if an earlier answer to the last message was cut off before its state was saved.
    is_unsaved: bool = False
    sampling: SamplingParams = field(default_factory=SamplingParams)
    # Highest number of tokens to draw. The earlier part of a continued reply does not count.
    max_tokens: int = 4096
    # True or False to switch reasoning on or off; None for the template's default.
    thinking: bool | None = None
    # True to keep the reasoning of earlier replies in the prompt, if the template supports it.
    keep_thinking: bool = False
    # The functions that the model may call, as a JSON list in the form of OpenAI's API. "" for
    # none.
    tools: str = ""
    answer_format: AnswerFormat | None = None  # None: any answer
    # Number of the likeliest tokens whose log-probabilities are wanted beside that of each token of
    # the answer (RequestFinished.scores). None: no log-probabilities are wanted.
    num_likeliest: int | None = None
    forced: ForcedReply | None = None
    # Cancel the request after this many delivered tokens; None for no limit.
    stop_after: int | None = None
    # Number of drafts that each forward pass verifies if there are as many (speculative decoding),
    # at most MAX_DRAFTS. 0: none. None: the engine chooses the number that is expected to be
    # fastest.
    max_drafts: int | None = 0
    record_logits: bool = False  # True to keep the logits of every draw for a later Verify command
    # True to leave the prefix cache unchanged: the request uses separate live caches, adds nothing
    # to the prefix cache and evicts nothing from it. Benchmarks use this for cold runs.
    side: bool = False

    @property
    def prompt_of(self) -> RequestId:
        """The request that is the first with these messages: the followed one, else this one."""
        return self.follows or self.request_id
