"""Readers of the exports of ChatGPT, Claude, LM Studio, Open WebUI and Jan.

Each reader takes a parsed JSON object and ignores what it does not know. Sources of the formats:

    ChatGPT     conversations.json: `mapping` of node ids to {message, parent, children}
                github.com/mitkury/chatgpt-export-parser, docs/chatgpt-data-export-format.md
                A picture is an `image_asset_pointer`. Its file begins with the pointer's id, also
                if it ends in .dat, since 2026: github.com/Superkikim/nexus-ai-chat-importer, #62
    Claude      conversations.json: `chat_messages`, newer ones with `parent_message_uuid`
    LM Studio   *.conversation.json: `messages` of {versions, currentlySelected}
                github.com/YorkieDev/lm-studio-conversation-converter
                A picture is {type: "file", fileType: "image", fileIdentifier}, the name of a file
                in the folder user-files, which stands beside the folder conversations
    Open WebUI  an array of {chat: {history: {messages, currentId}}}
                A picture is {type: "image", url} in `files` of a message. The URL has the data, or
                is that of a file on the server, which the export lacks: MessageInput.svelte
    Jan         thread.json and messages.jsonl, docs/docs/specs in github.com/janhq/jan
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from pathlib import PurePosixPath

from app.exchange.data_urls import DATA_URL_START
from app.exchange.foreign import (
    MAX_MESSAGES,
    MAX_VERSIONS,
    ForeignChat,
    ForeignMessage,
    ForeignPicture,
    as_fields,
    as_items,
    as_seconds,
    as_text,
    joined,
    required,
)
from app.exchange.reading import UnreadableError
from app.exchange.sources import USER_FILES, file_id
from app.words import exchange as words
from engine.types import Role

Fields = Mapping[str, object]

_ROLES = {
    "user": Role.USER,
    "human": Role.USER,
    "assistant": Role.ASSISTANT,
    "system": Role.SYSTEM,
}
_REASONING = re.compile(r'<details type="reasoning"[^<>]*>')
_SUMMARY = re.compile(r"<summary>")
_QUOTE = re.compile(r"^> ?", re.MULTILINE)


def foreign_chat(value: Fields) -> ForeignChat | None:
    """Return the conversation in an object of any known kind, or None if the kind is unknown."""
    for is_kind, read in _READERS:
        if is_kind(value):
            return read(value)
    return None


def chatgpt_chat(value: Fields) -> ForeignChat:
    mapping = as_fields(required(value["mapping"], dict))
    _limit(mapping)
    ranks: dict[str, int] = {}
    for node in mapping.values():
        children = as_items(as_fields(node).get("children"))
        ranks.update((as_text(child), rank) for rank, child in enumerate(children))
    # The versions of a message are in the order of its parent's children.
    keys = sorted(mapping, key=lambda key: ranks.get(key, 0))
    return ForeignChat(
        kind="chatgpt",
        key=as_text(value.get("conversation_id")) or as_text(value.get("id")) or _key_of(value),
        title=as_text(value.get("title")),
        created_at=as_seconds(value.get("create_time")),
        updated_at=as_seconds(value.get("update_time")),
        shown=as_text(value.get("current_node")) or None,
        archived=value.get("is_archived") is True,
        messages=tuple(_chatgpt_message(key, as_fields(mapping[key])) for key in keys),
    )


def _chatgpt_message(key: str, node: Fields) -> ForeignMessage:
    message = as_fields(node.get("message"))
    content, about = as_fields(message.get("content")), as_fields(message.get("metadata"))
    role = _ROLES.get(as_text(as_fields(message.get("author")).get("role")))
    is_hidden = about.get("is_visually_hidden_from_conversation") is True
    to_tool = as_text(message.get("recipient")) not in ("", "all")
    kind = as_text(content.get("content_type"))
    text = reasoning = ""
    pictures: tuple[ForeignPicture, ...] = ()
    if kind == "thoughts":
        thoughts = map(as_fields, as_items(content.get("thoughts")))
        reasoning = joined(as_text(one.get("content")) for one in thoughts)
    elif kind in ("text", "multimodal_text", "code"):
        parts = as_items(content.get("parts")) or [content.get("text")]
        attached = [as_fields(one) for one in as_items(about.get("attachments"))]
        names = {as_text(one.get("id")): as_text(one.get("name")) for one in attached}
        text, pictures = _content(parts, names)
    return ForeignMessage(
        key=key,
        parent=as_text(node.get("parent")) or None,
        role=None if is_hidden or to_tool else role,
        text=text,
        reasoning=reasoning,
        at=as_seconds(message.get("create_time")),
        model=as_text(about.get("model_slug")),
        pictures=pictures,
    )


def claude_chat(value: Fields) -> ForeignChat:
    messages = [as_fields(one) for one in as_items(required(value["chat_messages"], list))]
    _limit(messages)
    keys = [as_text(one.get("uuid")) or str(index) for index, one in enumerate(messages)]
    # Older exports have no parents: their messages are one branch.
    parents = [as_text(one.get("parent_message_uuid")) or None for one in messages]
    if not any(parents):
        parents = [None, *keys[:-1]]
    return ForeignChat(
        kind="claude",
        key=as_text(value.get("uuid")) or _key_of(value),
        title=as_text(value.get("name")),
        created_at=as_seconds(value.get("created_at")),
        updated_at=as_seconds(value.get("updated_at")),
        shown=as_text(value.get("current_leaf_message_uuid")) or None,
        messages=tuple(map(_claude_message, keys, parents, messages)),
    )


def _claude_message(key: str, parent: str | None, message: Fields) -> ForeignMessage:
    blocks = [as_fields(one) for one in as_items(message.get("content"))]
    texts = [as_text(one.get("text")) for one in blocks if one.get("type") == "text"]
    thoughts = [as_text(one.get("thinking")) for one in blocks if one.get("type") == "thinking"]
    attached = [as_fields(one) for one in as_items(message.get("attachments"))]
    pasted = [as_text(one.get("extracted_content")) for one in attached]
    text = joined(texts) or as_text(message.get("text"))
    return ForeignMessage(
        key=key,
        parent=parent,
        role=_ROLES.get(as_text(message.get("sender"))),
        text=joined([*pasted, text]) or (words.NO_TEXT if as_items(message.get("files")) else ""),
        reasoning=joined(thoughts),
        at=as_seconds(message.get("created_at")),
    )


def lm_studio_chat(value: Fields) -> ForeignChat:
    steps = [as_fields(one) for one in as_items(value["messages"])]
    _limit(steps)
    created = value.get("createdAt")
    messages, shown = _lm_studio_messages(steps)
    return ForeignChat(
        kind="lm-studio",
        key=str(created) if as_seconds(created) is not None else _key_of(value),
        title=as_text(value.get("name")),
        created_at=as_seconds(created),
        system_prompt=as_text(value.get("systemPrompt")),
        pinned=value.get("pinned") is True,
        messages=messages,
        shown=shown,
    )


def _lm_studio_messages(
    steps: Iterable[Fields],
) -> tuple[tuple[ForeignMessage, ...], str | None]:
    """Return all versions of all messages, and the key of the last selected version.

    A message follows the selected version before it.
    """
    found: list[ForeignMessage] = []
    above: str | None = None
    for index, step in enumerate(steps):
        versions = [as_fields(one) for one in as_items(step.get("versions"))]
        if len(versions) > MAX_VERSIONS:
            raise UnreadableError(words.TOO_MANY_VERSIONS)
        chosen = step.get("currentlySelected")
        number = chosen if isinstance(chosen, int) and 0 <= chosen < len(versions) else 0
        found += (
            _lm_studio_message(f"{index}.{at}", above, version)
            for at, version in enumerate(versions)
        )
        above = f"{index}.{number}" if versions else above
    return tuple(found), above


def _lm_studio_message(key: str, parent: str | None, version: Fields) -> ForeignMessage:
    blocks = [as_fields(one) for one in as_items(version.get("steps"))] or [version]
    texts: list[str] = []
    thoughts: list[str] = []
    pictures: tuple[ForeignPicture, ...] = ()
    model = as_text(as_fields(version.get("senderInfo")).get("senderName"))
    for block in blocks:
        style = as_text(as_fields(block.get("style")).get("type"))
        into = thoughts if style == "thinking" else texts
        text, found = _content(as_items(block.get("content")))
        into.append(text)
        pictures += found
        model = model or as_text(as_fields(block.get("genInfo")).get("indexedModelIdentifier"))
    return ForeignMessage(
        key=key,
        parent=parent,
        role=_ROLES.get(as_text(version.get("role"))),
        text=joined(texts),
        reasoning=joined(thoughts),
        model=model,
        pictures=pictures,
    )


def open_webui_chat(value: Fields) -> ForeignChat:
    chat = as_fields(value.get("chat")) or value
    history = as_fields(chat.get("history"))
    tree = as_fields(history.get("messages"))
    _limit(tree)
    ranks: dict[str, int] = {}
    for message in tree.values():
        children = as_items(as_fields(message).get("childrenIds"))
        ranks.update((as_text(child), rank) for rank, child in enumerate(children))
    keys = sorted(tree, key=lambda key: ranks.get(key, 0))
    return ForeignChat(
        kind="open-webui",
        key=as_text(value.get("id")) or as_text(chat.get("id")) or _key_of(value),
        title=as_text(value.get("title")) or as_text(chat.get("title")),
        created_at=as_seconds(value.get("created_at")) or as_seconds(chat.get("timestamp")),
        updated_at=as_seconds(value.get("updated_at")),
        system_prompt=as_text(as_fields(chat.get("params")).get("system")),
        shown=as_text(history.get("currentId")) or None,
        pinned=value.get("pinned") is True,
        archived=value.get("archived") is True,
        messages=tuple(_open_webui_message(key, as_fields(tree[key])) for key in keys),
    )


def _open_webui_message(key: str, message: Fields) -> ForeignMessage:
    content = message.get("content")
    text, pictures = _content(as_items(content))
    text = text or as_text(content)
    answer, thoughts = _split(text, _REASONING, "</details>")
    thoughts = [html.unescape(_split(one, _SUMMARY, "</summary>")[0]) for one in thoughts]
    return ForeignMessage(
        key=key,
        parent=as_text(message.get("parentId")) or None,
        role=_ROLES.get(as_text(message.get("role"))),
        text=answer.strip() if thoughts else text,
        reasoning=joined(_QUOTE.sub("", one.strip()) for one in thoughts),
        at=as_seconds(message.get("timestamp")),
        model=as_text(message.get("modelName")) or as_text(message.get("model")),
        pictures=(*pictures, *_open_webui_pictures(message)),
    )


def _open_webui_pictures(message: Fields) -> Iterator[ForeignPicture]:
    for one in map(as_fields, as_items(message.get("files"))):
        kind = as_text(one.get("content_type"))
        if one.get("type") == "image" or kind.startswith("image/"):
            yield ForeignPicture(name=as_text(one.get("name")), source=_data_url(one.get("url")))
    for image in map(as_text, as_items(message.get("images"))):
        yield ForeignPicture(name="", source=_data_url(image) or f"{DATA_URL_START};base64,{image}")


def _split(text: str, opening: re.Pattern[str], closing: str) -> tuple[str, list[str]]:
    """Return the text outside of all elements of a kind, and the text inside of each.

    A search for both tags in one pattern would read the rest of the text again for each opening tag
    without a closing one.
    """
    outside: list[str] = []
    inside: list[str] = []
    at = 0
    while (start := opening.search(text, at)) and (end := text.find(closing, start.end())) >= 0:
        outside.append(text[at : start.start()])
        inside.append(text[start.end() : end])
        at = end + len(closing)
    return "".join((*outside, text[at:])), inside


def jan_chat(thread: Fields, lines: Iterator[object]) -> ForeignChat:
    """Return the conversation of a thread.json and the values of its messages.jsonl."""
    messages: list[ForeignMessage] = []
    for line in lines:
        if len(messages) > MAX_MESSAGES:
            raise UnreadableError(words.TOO_MANY_MESSAGES)
        above = messages[-1].key if messages else None
        messages.append(_jan_message(str(len(messages)), above, as_fields(line)))
    assistant = as_fields((as_items(thread.get("assistants")) or [None])[0])
    return ForeignChat(
        kind="jan",
        key=as_text(thread.get("id")) or _key_of(thread),
        title=as_text(thread.get("title")) or as_text(thread.get("summary")),
        created_at=as_seconds(thread.get("created", thread.get("created_at"))),
        updated_at=as_seconds(thread.get("updated", thread.get("updated_at"))),
        system_prompt=as_text(assistant.get("instructions")),
        messages=tuple(messages),
    )


def _jan_message(number: str, above: str | None, message: Fields) -> ForeignMessage:
    text, pictures = _content(as_items(message.get("content")))
    return ForeignMessage(
        key=f"{number} {as_text(message.get('id'))}",
        parent=above,
        role=_ROLES.get(as_text(message.get("role"))),
        text=text,
        at=as_seconds(message.get("created_at")),
        model=as_text(as_fields(message.get("metadata")).get("modelId")),
        pictures=pictures,
    )


def is_jan_thread(value: Fields) -> bool:
    return value.get("object") == "thread" or isinstance(value.get("assistants"), list)


def _content(
    parts: Iterable[object], names: Mapping[str, str] | None = None
) -> tuple[str, tuple[ForeignPicture, ...]]:
    """Return the text and the pictures of the parts of a message.

    names: names of files by their ids.
    """
    texts: list[str] = []
    pictures: list[ForeignPicture] = []
    for part in parts:
        picture = _part_picture(as_fields(part), names or {})
        if picture is None:
            texts.append(_part_text(part))
        else:
            pictures.append(picture)
    return joined(texts), tuple(pictures)


def _part_picture(part: Fields, names: Mapping[str, str]) -> ForeignPicture | None:
    """Return the picture in a part of a message: of ChatGPT, of LM Studio, or of OpenAI's API."""
    if part.get("content_type") == "image_asset_pointer":
        pointer = as_text(part.get("asset_pointer")).rpartition("://")[2]
        source = file_id(pointer)
        return ForeignPicture(
            name=names.get(pointer, ""), source=source if source == pointer else ""
        )
    if part.get("type") == "file" and part.get("fileType") == "image":
        name = PurePosixPath(as_text(part.get("fileIdentifier"))).name
        return ForeignPicture(name=name, source=f"{USER_FILES}/{name}")
    if part.get("type") == "image_url":
        url = as_fields(part.get("image_url")).get("url")
        return ForeignPicture(name="", source=_data_url(url))
    return None


def _data_url(value: object) -> str:
    """Return a URL that has the data of a picture, and "" for any other."""
    url = as_text(value)
    return url if url.startswith(DATA_URL_START) else ""


def _part_text(part: object) -> str:
    """Return the text of a part of a message: a string, or an object with a text."""
    if isinstance(part, str):
        return part
    text = as_fields(part).get("text")
    # The text is itself an object in Jan and in OpenAI's threads.
    return (
        as_text(text)
        or as_text(as_fields(text).get("value"))
        or (words.NO_TEXT if as_fields(part) else "")
    )


def _limit(messages: Sized) -> None:
    if len(messages) > MAX_MESSAGES:
        raise UnreadableError(words.TOO_MANY_MESSAGES)


def _key_of(value: Fields) -> str:
    """Return an id for a conversation without one, from its first texts."""
    return hashlib.sha256(repr(value)[:100_000].encode("utf-8", "replace")).hexdigest()


def _is_lm_studio(value: Fields) -> bool:
    messages = as_items(value.get("messages"))
    return bool(messages) and "versions" in as_fields(messages[0])


def _is_open_webui(value: Fields) -> bool:
    return "history" in (as_fields(value.get("chat")) or value)


_READERS: tuple[tuple[Callable[[Fields], bool], Callable[[Fields], ForeignChat]], ...] = (
    (lambda value: value.get("mapping") is not None, chatgpt_chat),
    (lambda value: value.get("chat_messages") is not None, claude_chat),
    (_is_lm_studio, lm_studio_chat),
    (_is_open_webui, open_webui_chat),
)
