"""Rejoinder's own JSON of a conversation, with all branches. The package documents the fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace

from app.conversation.attachments import (
    AttachedPicture,
)
from app.conversation.filed import FiledConversation
from app.conversation.folder import Folder, FolderColor, FolderDocument, clean_folder
from app.conversation.placement import FolderId, Placement
from app.conversation.preset import PRESET_NAME_LEN
from app.conversation.text import FILE_NAME_LEN, clean_text, one_line
from app.conversation.tree import (
    MANUAL_TITLE_LEN,
    Conversation,
    Generation,
    MessageNode,
    MessageStatus,
    NodeId,
    Setup,
    add_nodes,
    show_version,
)
from app.exchange.foreign import MAX_MESSAGES, MAX_VERSIONS, as_seconds
from app.exchange.own_files import VERSION, AttachedInFile, attached_in_file, read_attachments
from app.exchange.reading import UnreadableError
from app.store.codec import from_parsed
from app.words import exchange as words
from engine.problem import Problem
from engine.types import ConversationId, ReplyTokens, Role

FORMAT = "rejoinder-conversation"
_MAX_ID_LEN = 100
_MAX_TOKEN = 2**32
_FIRST = ""  # key in `shown` for the versions of the first message


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tokens:
    token_ids: tuple[int, ...]
    answer_start: int
    tokenizer_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Message:
    """A message in the file. The fields are those of MessageNode."""

    node_id: str
    parent: str | None = None
    role: Role
    content: str
    created_at: float
    reasoning: str = ""
    reply: _Tokens | None = None
    status: MessageStatus = MessageStatus.COMPLETE
    generation: Generation | None = None
    problem: Problem | None = None
    attachments: tuple[AttachedInFile, ...] = ()
    chat_title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folder:
    """The folder of a conversation in the file. The fields are those of Folder."""

    folder_id: str
    name: str
    color: str = FolderColor.GRAY
    created_at: float = 0.0
    system_prompt: str = ""
    preset: str = ""
    documents: tuple[AttachedInFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A conversation in the file, without `shown`."""

    conversation_id: str
    created_at: float
    updated_at: float
    title: str
    title_is_manual: bool = False
    system_prompt: str = ""
    read_system_prompt: str | None = None
    keep_ready: bool = False
    setup: Setup = field(default_factory=Setup)
    draft: str = ""
    draft_attachments: tuple[AttachedInFile, ...] = ()
    without_documents: bool = False
    pinned: bool = False
    archived: bool = False
    folder: _Folder | None = None
    messages: tuple[_Message, ...]


def to_json(filed: FiledConversation) -> str:
    """Return the JSON object of a conversation, without its deleted messages."""
    conv = filed.conversation
    nodes = tuple(_exported_nodes(conv))
    file = _File(
        conversation_id=conv.conversation_id,
        created_at=conv.created_at,
        updated_at=conv.updated_at,
        title=conv.title,
        title_is_manual=conv.title_is_manual,
        system_prompt=conv.system_prompt,
        read_system_prompt=conv.read_system_prompt,
        keep_ready=conv.keep_ready,
        setup=conv.setup,
        draft=conv.draft,
        draft_attachments=tuple(map(attached_in_file, conv.draft_attachments)),
        without_documents=conv.without_documents,
        pinned=filed.placement.pinned,
        archived=filed.placement.archived,
        folder=filed.folder and _folder(filed.folder),
        messages=tuple(map(_message, nodes)),
    )
    kept = {None, *(node.node_id for node in nodes)}
    shown = {parent or _FIRST: node for parent, node in conv.shown.items() if parent in kept}
    value = {"format": FORMAT, "version": VERSION, **asdict(file), "shown": shown}
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def pictures_of(filed: FiledConversation) -> Iterator[AttachedPicture]:
    """Yield the pictures that the JSON object of a conversation names."""
    conv = filed.conversation
    files = [file for node in _exported_nodes(conv) for file in node.attachments]
    for file in (*files, *conv.draft_attachments):
        if file.picture is not None:
            yield file.picture


def is_own(value: Mapping[str, object]) -> bool:
    return value.get("format") == FORMAT


def from_value(value: Mapping[str, object]) -> FiledConversation:
    """Return the conversation that a parsed object describes.

    Raises:
        UnreadableError: the object is not valid, or has another version.
    """
    if value.get("version") != VERSION:
        raise UnreadableError(words.NEWER)
    try:
        return _filed(from_parsed(_File, value), value.get("shown"))
    except (ValueError, OverflowError):
        raise UnreadableError(words.BAD_CONVERSATION) from None


def _exported_nodes(conv: Conversation) -> Iterator[MessageNode]:
    """Yield the messages that are not deleted and do not follow a deleted one."""
    there = {node_id for ids in conv.children.values() for node_id in ids}
    kept: set[NodeId | None] = {None}
    for node in conv.nodes.values():
        if node.node_id in there and node.parent in kept:
            kept.add(node.node_id)
            yield node


def _filed(file: _File, shown: object) -> FiledConversation:
    folder = file.folder and _folder_from(file.folder)
    return FiledConversation(
        conversation=_conversation(file, shown),
        placement=Placement(
            pinned=file.pinned,
            archived=file.archived,
            folder_id=folder and folder.folder_id,
        ),
        folder=folder,
    )


def _conversation(file: _File, shown: object) -> Conversation:
    if len(file.messages) > MAX_MESSAGES:
        raise UnreadableError(words.TOO_MANY_MESSAGES)
    _check_tree(file.messages)
    conv = Conversation(
        conversation_id=ConversationId(_id(file.conversation_id)),
        created_at=_time(file.created_at),
        updated_at=_time(file.updated_at),
        title=one_line(file.title, MANUAL_TITLE_LEN),
        title_is_manual=file.title_is_manual,
        system_prompt=clean_text(file.system_prompt),
        read_system_prompt=file.read_system_prompt and clean_text(file.read_system_prompt),
        keep_ready=file.keep_ready,
        setup=file.setup,
        draft=clean_text(file.draft),
        draft_attachments=read_attachments(file.draft_attachments),
        without_documents=file.without_documents,
    )
    conv = add_nodes(conv, *map(_node, file.messages))
    if isinstance(shown, dict):
        for node_id in shown.values():  # pyright: ignore[reportUnknownVariableType]
            if isinstance(node_id, str) and node_id in conv.nodes:
                conv = show_version(conv, NodeId(node_id))
    return conv


def _check_tree(messages: tuple[_Message, ...]) -> None:
    roles: dict[str | None, Role] = {None: Role.ASSISTANT}
    versions: dict[str | None, int] = {}
    for message in messages:
        if message.node_id in roles or message.parent not in roles:
            raise ValueError("a parent comes before its children, and an id is used once")
        if {roles[message.parent], message.role} != {Role.USER, Role.ASSISTANT}:
            raise ValueError("the roles alternate")
        roles[message.node_id] = message.role
        versions[message.parent] = versions.get(message.parent, 0) + 1
        if versions[message.parent] > MAX_VERSIONS:
            raise UnreadableError(words.TOO_MANY_VERSIONS)


def _message(node: MessageNode) -> _Message:
    reply = node.reply
    return _Message(
        node_id=node.node_id,
        parent=node.parent,
        role=node.role,
        content=node.content,
        created_at=node.created_at,
        reasoning=node.reasoning,
        reply=reply
        and _Tokens(
            token_ids=reply.token_ids,
            answer_start=reply.answer_start,
            tokenizer_hash=reply.tokenizer_hash,
        ),
        status=_ended(node.status),
        generation=node.generation,
        problem=node.problem,
        attachments=tuple(map(attached_in_file, node.attachments)),
        chat_title=node.chat_title,
    )


def _node(message: _Message) -> MessageNode:
    tokens = message.reply
    if tokens and not all(0 <= token < _MAX_TOKEN for token in tokens.token_ids):
        raise ValueError("a token id is out of range")
    if tokens and not 0 <= tokens.answer_start <= len(tokens.token_ids):
        raise ValueError("answer_start is out of range")
    return MessageNode(
        node_id=NodeId(_id(message.node_id)),
        parent=None if message.parent is None else NodeId(message.parent),
        role=message.role,
        content=clean_text(message.content),
        created_at=_time(message.created_at),
        reasoning=clean_text(message.reasoning),
        reply=tokens
        and ReplyTokens.of(
            tokens.token_ids,
            answer_start=tokens.answer_start,
            tokenizer_hash=clean_text(tokens.tokenizer_hash),
        ),
        status=_ended(message.status),
        generation=message.generation and _clean(message.generation),
        problem=message.problem,
        attachments=read_attachments(message.attachments if message.role is Role.USER else ()),
        chat_title="" if message.parent else one_line(message.chat_title, MANUAL_TITLE_LEN),
    )


def _folder(folder: Folder) -> _Folder:
    return _Folder(
        folder_id=folder.folder_id,
        name=folder.name,
        color=folder.color,
        created_at=folder.created_at,
        system_prompt=folder.system_prompt,
        preset=folder.preset,
        documents=tuple(attached_in_file(one.attachment) for one in folder.documents),
    )


def _folder_from(folder: _Folder) -> Folder:
    return clean_folder(
        Folder(
            folder_id=FolderId(_id(folder.folder_id)),
            name=folder.name,
            color=FolderColor.named(folder.color),
            created_at=_time(folder.created_at),
            system_prompt=folder.system_prompt,
            preset=one_line(folder.preset, PRESET_NAME_LEN),
            documents=tuple(
                FolderDocument(attachment=replace(one, from_folder=False))
                for one in read_attachments(folder.documents)
                if one.picture is None
            ),
        )
    )


def _clean(generation: Generation) -> Generation:
    return replace(generation, model_name=one_line(generation.model_name, FILE_NAME_LEN))


def _ended(status: MessageStatus) -> MessageStatus:
    """Return the status of a message that no engine writes: a streaming one has stopped."""
    return MessageStatus.STOPPED if status is MessageStatus.STREAMING else status


def _id(text: str) -> str:
    if not 0 < len(text) <= _MAX_ID_LEN or not text.isascii() or not text.isprintable():
        raise ValueError("an id has other characters, or is too long")
    return text


def _time(seconds: float) -> float:
    if as_seconds(seconds) != seconds:
        raise ValueError("a time is out of range")
    return seconds
