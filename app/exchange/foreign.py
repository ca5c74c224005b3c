"""Conversion of another app's conversation to a Conversation.

Other apps allow messages in any order of roles; ours alternate, and the first one is the user's:

    system messages                 go to the system prompt, if they come first
    tool calls and hidden messages  are left out; what follows them moves up
    two messages of one role        become one message
    an answer at the start          follows a user message that says so
    a user message without answer   gets an empty, stopped answer, which can be regenerated
    a second message of one id      is kept under another id
    messages in a cycle of parents  become a branch of their own

The ids come from the ids of the other app, so that a second import finds the same messages.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import cast

from app.conversation.attachments import (
    MAX_ATTACHMENTS,
    AttachedPicture,
    Attachment,
    make_picture,
)
from app.conversation.text import clean_text, message_text, one_line, title_from
from app.conversation.tree import (
    MANUAL_TITLE_LEN,
    Conversation,
    Generation,
    MessageNode,
    MessageStatus,
    NodeId,
    add_nodes,
    show_version,
)
from app.exchange.reading import MAX_VALUE_CHARS, UnreadableError
from app.settings import PictureSize
from app.words import exchange as words
from engine.types import ConversationId, Picture, Role, SamplingParams

MAX_MESSAGES = 50_000
MAX_VERSIONS = 1000
_ID_LEN = 32
_MILLISECONDS = 1e11  # larger times are milliseconds, not seconds
_MAX_SECONDS = 253402300799.0  # the year 9999
_PICTURE_CHARS = 500  # of the JSON of a picture
_GAP = "\n\n"  # between the texts of two messages that become one


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignPicture:
    """A picture of a message of another app."""

    name: str  # empty if the other app gave it none
    source: str  # key of a file in the export (see sources.py), or a data URL; empty if neither
    key: str = ""  # key of its FoundPicture; empty until it was found


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignMessage:
    """A message of another app, with clean text."""

    key: str  # id in its conversation
    parent: str | None
    role: Role | None  # None for a message that is left out
    text: str = ""
    reasoning: str = ""
    at: float | None = None  # Unix seconds
    model: str = ""
    pictures: tuple[ForeignPicture, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignChat:
    """A conversation of another app. Versions of a message are in their order in `messages`."""

    kind: str
    key: str  # id in the other app
    title: str
    messages: tuple[ForeignMessage, ...]
    system_prompt: str = ""
    created_at: float | None = None
    updated_at: float | None = None
    shown: str | None = None  # key of the last message of the branch on show
    pinned: bool = False
    archived: bool = False


@dataclass(slots=True, eq=False)
class _Draft:
    """A message that is being put together from one or more foreign ones."""

    key: str
    parent: _Draft | None
    role: Role
    texts: list[str] = field(default_factory=list[str])
    thoughts: list[str] = field(default_factory=list[str])
    pictures: list[ForeignPicture] = field(default_factory=list[ForeignPicture])
    at: float | None = None
    model: str = ""
    num_children: int = 0

    def add(self, message: ForeignMessage) -> None:
        self.texts += [message.text] if message.text.strip() else []
        self.thoughts += [message.reasoning] if message.reasoning.strip() else []
        self.pictures += message.pictures
        self.at = self.at if self.at is not None else message.at
        self.model = self.model or message.model


def to_conversation(chat: ForeignChat, *, now: float) -> Conversation:
    """Build the conversation. A missing time becomes the time of the chat, or `now`.

    Raises:
        UnreadableError: there is no message, or there are too many.
    """
    if len(chat.messages) > MAX_MESSAGES:
        raise UnreadableError(words.TOO_MANY_MESSAGES)
    system = _first_system(chat)
    builder = _Builder(chat)
    drafts = builder.drafts()
    if not any((draft.texts or draft.pictures) and draft.role is Role.USER for draft in drafts):
        raise UnreadableError(words.EMPTY)
    times = [draft.at for draft in drafts if draft.at is not None]
    created = _first(chat.created_at, min(times, default=None), chat.updated_at, now)
    updated = _first(chat.updated_at, max(times, default=None), created)
    empty = Conversation(
        conversation_id=ConversationId(_id(chat.kind, chat.key)),
        created_at=created,
        updated_at=updated,
        system_prompt=clean_text(chat.system_prompt or system),
    )
    ids = {draft: NodeId(_id(chat.kind, chat.key, draft.key)) for draft in drafts}
    conv = add_nodes(empty, *(_node(draft, ids, created) for draft in drafts))
    title = one_line(chat.title, MANUAL_TITLE_LEN)
    first = next((draft.texts[0] for draft in drafts if draft.texts), words.PICTURE_NAME)
    conv = replace(conv, title=title or title_from(first), title_is_manual=bool(title))
    at = builder.shown
    while at is not None:
        conv = show_version(conv, ids[at])
        at = at.parent
    return conv


class _Builder:
    """The drafts of a chat in order: parents first, versions in their order."""

    def __init__(self, chat: ForeignChat) -> None:
        self._chat = chat
        self.shown: _Draft | None = None
        self._drafts: list[_Draft] = []
        self._num_chars = 0

    def drafts(self) -> list[_Draft]:
        children = self._children()
        # Each item: message, the draft above it, and True if no other branch shares that draft.
        roots = children.get(None, [])
        below: list[tuple[ForeignMessage, _Draft | None, bool]] = [
            (root, None, len(roots) == 1) for root in reversed(roots)
        ]
        while below:
            message, above, is_alone = below.pop()
            draft = self._draft(message, above, is_alone=is_alone)
            if draft is not None and message.key == self._chat.shown:
                self.shown = draft
            following = children.get(message.key, [])
            alone = len(following) == 1 and (is_alone or draft is not above)
            below += [(one, draft, alone) for one in reversed(following)]
        for draft in [*self._drafts]:
            if draft.role is Role.USER and draft.num_children == 0:
                self._new(f"{draft.key}/reply", draft, Role.ASSISTANT)
        return self._drafts

    def _children(self) -> dict[str | None, list[ForeignMessage]]:
        known = _by_key(self._chat.messages)
        parents = _parents(known)
        children: dict[str | None, list[ForeignMessage]] = {}
        for key, message in known.items():
            parent = parents[key]
            children.setdefault(parent, []).append(message)
            if len(children[parent]) > MAX_VERSIONS:
                raise UnreadableError(words.TOO_MANY_VERSIONS)
        return children

    def _draft(
        self, message: ForeignMessage, above: _Draft | None, *, is_alone: bool
    ) -> _Draft | None:
        """Return the draft that holds a message; `above` if the message is left out."""
        is_empty = not (message.text.strip() or message.reasoning.strip() or message.pictures)
        role = message.role
        if (role is not Role.USER and role is not Role.ASSISTANT) or is_empty:
            return above
        if above is None and role is Role.ASSISTANT:
            above = self._new(f"{message.key}/question", None, Role.USER)
            above.texts.append(words.NO_QUESTION)
        if above is None or above.role is not role:
            draft = self._new(message.key, above, role)
        elif is_alone:
            draft = above
        else:
            draft = self._new(message.key, above.parent, role)
            draft.texts += above.texts
            draft.thoughts += above.thoughts
            draft.pictures += above.pictures
            self._count(sum(map(len, (*draft.texts, *draft.thoughts))), len(draft.pictures))
        draft.add(message)
        self._count(len(message.text) + len(message.reasoning), len(message.pictures))
        return draft

    def _new(self, key: str, parent: _Draft | None, role: Role) -> _Draft:
        draft = _Draft(key, parent, role)
        if parent is not None:
            parent.num_children += 1
            if parent.num_children > MAX_VERSIONS:
                raise UnreadableError(words.TOO_MANY_VERSIONS)
        self._drafts.append(draft)
        return draft

    def _count(self, chars: int, num_pictures: int) -> None:
        # Texts of shared messages are copied to each branch, so the sum may exceed the file's size.
        self._num_chars += chars + num_pictures * _PICTURE_CHARS
        if self._num_chars > MAX_VALUE_CHARS:
            raise UnreadableError(words.TOO_LARGE)


def _by_key(messages: Iterable[ForeignMessage]) -> dict[str, ForeignMessage]:
    """Return the messages by their keys. A message whose key is taken gets another key."""
    known: dict[str, ForeignMessage] = {}
    counts: Counter[str] = Counter()
    for message in messages:
        key = message.key
        while key in known:
            counts[message.key] += 1
            key = f"{message.key}/{counts[message.key]}"
        known[key] = replace(message, key=key)
    return known


def _parents(known: Mapping[str, ForeignMessage]) -> dict[str, str | None]:
    """Return the parent of each message. If parents form a cycle, one message of it gets none."""
    parents = {
        key: message.parent if message.parent in known else None for key, message in known.items()
    }
    settled: set[str | None] = {None}
    for key in known:
        path: set[str | None] = set()
        at: str | None = key
        while at is not None and at not in settled and at not in path:
            path.add(at)
            at = parents[at]
        if at is not None and at in path:
            parents[at] = None
        settled |= path
    return parents


def _node(draft: _Draft, ids: dict[_Draft, NodeId], created: float) -> MessageNode:
    text = _GAP.join(draft.texts)
    is_reply = draft.role is Role.ASSISTANT
    generation = Generation(
        model_path="",
        model_name=one_line(draft.model, MANUAL_TITLE_LEN),
        template_hash="",
        thinking=None,
        sampling=SamplingParams(),
        max_tokens=0,
    )
    return MessageNode(
        node_id=ids[draft],
        parent=draft.parent and ids[draft.parent],
        role=draft.role,
        content=clean_text(text) if is_reply else message_text(text),
        reasoning=clean_text(_GAP.join(draft.thoughts)) if is_reply else "",
        created_at=_first(draft.at, created),
        status=MessageStatus.COMPLETE if draft.texts or not is_reply else MessageStatus.STOPPED,
        generation=generation if is_reply and draft.model else None,
        attachments=tuple(map(_attachment, draft.pictures[:MAX_ATTACHMENTS])),
    )


def _attachment(picture: ForeignPicture) -> Attachment:
    """Return a picture that is not decoded yet. See FoundPicture."""
    view = Picture(digest=picture.key, width=1, height=1)
    undecoded = AttachedPicture(
        original=picture.key,
        extension="png",
        width=1,
        height=1,
        size=PictureSize.MEDIUM,
        view=view,
    )
    return make_picture(picture.name or words.PICTURE_NAME, undecoded)


def _first_system(chat: ForeignChat) -> str:
    """Return the text of the system messages before the first other message."""
    texts: list[str] = []
    for message in chat.messages:
        if message.role is Role.SYSTEM:
            texts.append(message.text)
        elif message.role in (Role.USER, Role.ASSISTANT):
            break
    return _GAP.join(text for text in texts if text.strip())


def _id(*parts: str) -> str:
    joined = "\0".join(parts).encode("utf-8", "replace")
    return hashlib.sha256(joined).hexdigest()[:_ID_LEN]


def _first(*times: float | None) -> float:
    return next(time for time in times if time is not None)


# Values of parsed JSON that have any type. A value of a wrong type counts as missing.


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def as_fields(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def required(value: object, form: type) -> object:
    """Return the messages of a conversation. Raise UnreadableError if they have another form."""
    if not isinstance(value, form):
        raise UnreadableError(words.OTHER_FORM)
    return value


def as_seconds(value: object) -> float | None:
    """Return Unix seconds for a number of seconds or milliseconds, or an ISO 8601 time."""
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value[:_ID_LEN])
            value = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    seconds = value / 1000 if value > _MILLISECONDS else float(value)
    return seconds if math.isfinite(seconds) and 0 <= seconds <= _MAX_SECONDS else None


def joined(texts: Iterable[str]) -> str:
    return _GAP.join(text for text in texts if text.strip())
