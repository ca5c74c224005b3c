"""Chats of programs that send no id of a chat: each request brings all messages as text.

A request continues the chat whose messages it begins with. Replies of the model are found by their
text and get back the token ids that were drawn, so that the cached state matches (kept_replies.py).
The chats are kept in memory, within limits; the least recently used is forgotten first.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from app.server.kept_replies import KeptReplies
from engine.sequences import common_prefix_len
from engine.types import ConversationId, Message, Role, ToolCall

SERVER_PREFIX = "server:"  # of the ids of all chats of the server
_MAX_CHATS = 256  # as many as the engine explains (engine/runner/history.py)
_MAX_KEYS = 20_000  # beginnings of the requests of one chat
_MAX_CHARS = 64 << 20  # characters in the messages of all chats

# A system prompt with this share of equal characters at both ends belongs to the same chat: a line
# of it, such as a date, has changed.
_NEAR = 0.9
_MAX_LINE = 120  # characters of a line in a ChangedLine

_Key = bytes


@dataclass(frozen=True, slots=True)
class ChangedLine:
    """The first message of a request that differs from the same chat's message before."""

    index: int
    role: Role
    old_line: str
    new_line: str


@dataclass(frozen=True, slots=True)
class PlacedChat:
    """A request's messages, and the chat that they continue."""

    conversation_id: ConversationId
    messages: tuple[Message, ...]  # with the token ids of the model's own replies
    new_messages: frozenset[int]  # as in engine.types.Request
    change: ChangedLine | None
    key: bytes  # identifies the messages


@dataclass(slots=True, eq=False)
class _KnownChat:
    conversation_id: ConversationId
    messages: tuple[Message, ...] = ()  # of the newest request, as the client sent them
    message_keys: Sequence[_Key] = ()  # of the beginnings of these messages
    num_chars: int = 0  # of these messages
    keys: set[_Key] = field(default_factory=set[_Key])  # of all beginnings of its requests
    is_busy: bool = False


class KnownChats:
    """The chats of all clients of one server. For one thread."""

    def __init__(self, replies: KeptReplies) -> None:
        self._replies = replies
        self._chats: OrderedDict[ConversationId, _KnownChat] = OrderedDict()
        self._by_key: dict[_Key, _KnownChat] = {}

    def place(self, messages: Sequence[Message]) -> PlacedChat:
        """Find the chat that messages continue, or begin one. It is busy until `release`."""
        keys = _keys(messages)
        chat = self._found(messages, keys) or self._near(messages) or self._new()
        change = _first_change(chat, messages, keys)
        new = frozenset(i for i, key in enumerate(keys) if key not in self._by_key)
        chat.messages, chat.message_keys, chat.is_busy = tuple(messages), keys, True
        chat.num_chars = sum(len(message.content) for message in messages)
        if len(chat.keys) > _MAX_KEYS:
            self._forget_keys(chat)
        for message, key in zip(messages, keys, strict=True):
            # Chats that share only a system prompt are different chats.
            if message.role is not Role.SYSTEM:
                self._by_key.setdefault(key, chat)
                chat.keys.add(key)
        self._chats.move_to_end(chat.conversation_id)
        self._keep_small()
        own = self._with_own_replies(messages, keys)
        return PlacedChat(chat.conversation_id, own, new, change, keys[-1])

    def with_own_replies(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return messages with the token ids of the model's own replies."""
        return self._with_own_replies(messages, _keys(messages))

    def release(self, placed: PlacedChat) -> None:
        """Allow other requests to continue the chat."""
        chat = self._chats.get(placed.conversation_id)
        if chat is not None:
            chat.is_busy = False

    def note_reply(
        self, placed: PlacedChat, reply: Message, shown: str, calls: tuple[ToolCall, ...]
    ) -> None:
        """Keep a reply of the model.

        Args:
            placed: the messages that it answers.
            reply: the reply, with its token ids.
            shown: the text that the client got.
            calls: the tool calls that the client got.
        """
        seen = Message(role=Role.ASSISTANT, content=shown, calls=calls)
        key = _key(placed.key, seen)
        self._replies.add(key, _key(_first_question(placed.messages), seen), reply)
        chat = self._chats.get(placed.conversation_id)
        if chat is not None:
            self._by_key.setdefault(key, chat)
            chat.keys.add(key)

    def _with_own_replies(
        self, messages: Sequence[Message], keys: Sequence[_Key]
    ) -> tuple[Message, ...]:
        question = _first_question(messages)
        return tuple(
            self._own(message, key, question) for message, key in zip(messages, keys, strict=True)
        )

    def _own(self, message: Message, key: _Key, question: _Key) -> Message:
        """Return the model's own reply with the text of a message, or else the message."""
        if message.role is not Role.ASSISTANT:
            return message
        # Its messages above may have been edited, but not the first question: the reply has
        # reasoning, which must not get into the chat of another program. An empty reply is found by
        # its place only.
        words = _key(question, message) if message.content or message.calls else None
        return self._replies.find(key, words) or message

    def _found(self, messages: Sequence[Message], keys: Sequence[_Key]) -> _KnownChat | None:
        for message, key in zip(reversed(messages), reversed(keys), strict=True):
            chat = None if message.role is Role.SYSTEM else self._by_key.get(key)
            if chat is not None and not chat.is_busy:
                return chat
        return None

    def _near(self, messages: Sequence[Message]) -> _KnownChat | None:
        """Return the newest chat with the same first question and nearly the same system prompt."""
        for chat in reversed(self._chats.values()):
            if not chat.is_busy and _are_near(chat.messages, messages):
                return chat
        return None

    def _new(self) -> _KnownChat:
        chat = _KnownChat(ConversationId(f"{SERVER_PREFIX}{uuid.uuid4().hex}"))
        self._chats[chat.conversation_id] = chat
        return chat

    def _keep_small(self) -> None:
        while len(self._chats) > 1 and (
            len(self._chats) > _MAX_CHATS
            or sum(chat.num_chars for chat in self._chats.values()) > _MAX_CHARS
        ):
            _, chat = self._chats.popitem(last=False)
            self._forget_keys(chat)

    def _forget_keys(self, chat: _KnownChat) -> None:
        for key in chat.keys:
            if self._by_key.get(key) is chat:
                del self._by_key[key]
        chat.keys.clear()


def _keys(messages: Sequence[Message]) -> list[_Key]:
    """Return one key for each beginning of messages."""
    keys: list[_Key] = []
    for message in messages:
        keys.append(_key(keys[-1] if keys else b"", message))
    return keys


def _key(before: _Key, message: Message) -> _Key:
    """Return the key of a message after the messages with the key `before`.

    Blanks at the ends and the reasoning do not count: many clients drop them.
    """
    calls = [(call.name, _canonical(call.arguments)) for call in message.calls]
    text = json.dumps([message.role, message.content.strip(), calls])
    return hashlib.blake2b(before + text.encode(), digest_size=16).digest()


def _first_question(messages: Sequence[Message]) -> _Key:
    """Return the key of the first message of a user."""
    return next((_key(b"", message) for message in messages if message.role is Role.USER), b"")


def _canonical(arguments: str) -> str:
    """Return JSON without a trace of its spelling, which clients change.

    Programs in JavaScript write 1.0 as 1, and have no other whole numbers than floats.
    """
    try:
        return json.dumps(json.loads(arguments, parse_int=float), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments


def _first_change(
    chat: _KnownChat, messages: Sequence[Message], keys: Sequence[_Key]
) -> ChangedLine | None:
    """Return the first change to the messages of a chat. `keys` are those of the new messages."""
    index = common_prefix_len(chat.message_keys, keys)
    if index == min(len(chat.message_keys), len(keys)):
        return None
    old, new = _first_difference(chat.messages[index], messages[index])
    return ChangedLine(index, messages[index].role, *_around_difference(old, new))


def _first_difference(old: Message, new: Message) -> tuple[str, str]:
    """Return the first lines that differ in messages with different keys. "": no such line."""
    for before, now in zip(_compared_lines(old), _compared_lines(new), strict=True):
        for lines in zip_longest(before, now, fillvalue=""):
            if lines[0] != lines[1]:
                return lines
    return "", ""


def _compared_lines(message: Message) -> tuple[Sequence[str], ...]:
    """Return the lines of the parts of a message that make its key."""
    calls = [f"{call.name} {_canonical(call.arguments)}" for call in message.calls]
    return (message.role,), message.content.strip().split("\n"), calls


def _around_difference(old: str, new: str) -> tuple[str, str]:
    """Cut two lines to the part around the first difference."""
    start = max(0, common_prefix_len(old, new) - _MAX_LINE // 2)
    return _cut(old, start), _cut(new, start)


def _cut(line: str, start: int) -> str:
    """Return _MAX_LINE characters of a line from a position. Mark the ends at which it was cut."""
    end = start + _MAX_LINE
    return f"{'…' * (start > 0)}{line[start:end]}{'…' * (end < len(line))}"


def _are_near(old: Sequence[Message], new: Sequence[Message]) -> bool:
    if not old or not new or old[0].role is not Role.SYSTEM or new[0].role is not Role.SYSTEM:
        return False
    # Texts are compared, because keys of long texts take far longer, for each of the chats.
    before, now = (
        [(message.role, message.content.strip()) for message in messages[1:2]]
        for messages in (old, new)
    )
    return before == now and _equal_share(old[0].content, new[0].content) >= _NEAR


def _equal_share(old: str, new: str) -> float:
    """Return the share of characters that two texts have in common at both ends."""
    longest = max(len(old), len(new), 1)
    start = common_prefix_len(old, new)
    end = common_prefix_len(old[start:][::-1], new[start:][::-1])
    return (start + end) / longest
