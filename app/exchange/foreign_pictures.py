"""Pictures of other apps' conversations, found in the files of an import or in the conversation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace

from app.exchange.data_urls import decode_data_url
from app.exchange.foreign import ForeignChat, ForeignMessage, ForeignPicture, joined
from app.exchange.found import FoundPicture, Unreadable
from app.exchange.reading import UnreadableError
from app.exchange.sources import Meter, Sources
from app.words import exchange as words
from engine.types import Role

MAX_PICTURES = 20_000  # of one path that the user named


class ForeignPictures:
    """The pictures of the conversations in the files of one path."""

    def __init__(self, sources: Sources, meter: Meter) -> None:
        self._sources = sources
        self._meter = meter
        # Keys of found pictures by the digest of their source. Empty: the picture cannot be found.
        self._keys: dict[str, str] = {}
        self._found: set[str] = set()  # the keys of pictures that were yielded
        self._are_too_many = False

    def find(self, chat: ForeignChat, label: str) -> Iterator[FoundPicture | Unreadable]:
        """Yield the pictures of a conversation that have not been yielded before.

        label: name of the file with the conversation.
        """
        for picture in _asked(chat):
            place = _digest(picture.source)
            if place in self._keys:
                continue
            if len(self._keys) >= MAX_PICTURES:
                if not self._are_too_many:
                    self._are_too_many = True
                    yield Unreadable(name=label, reason=words.TOO_MANY_PICTURES)
                return
            self._keys[place] = ""
            try:
                content = self._content(picture.source)
            except UnreadableError as error:
                yield Unreadable(name=picture.name or picture.source, reason=str(error))
                continue
            if content:
                key = self._keys[place] = hashlib.sha256(content).hexdigest()
                if key not in self._found:
                    self._found.add(key)
                    yield FoundPicture(key=key, content=content)

    def attach(self, chat: ForeignChat) -> ForeignChat:
        """Return a conversation whose messages have the found pictures, and names of all others."""
        return replace(chat, messages=tuple(map(self._with_pictures, chat.messages)))

    def _with_pictures(self, message: ForeignMessage) -> ForeignMessage:
        if not message.pictures:
            return message
        is_user = message.role is Role.USER
        keyed = [
            replace(one, key=self._keys.get(_digest(one.source), "") if is_user else "")
            for one in message.pictures
        ]
        absent = [words.picture_was_here(one.name) for one in keyed if not one.key]
        return replace(
            message,
            text=joined([*absent, message.text]),
            pictures=tuple(one for one in keyed if one.key),
        )

    def _content(self, source: str) -> bytes:
        """Return the content of a picture, or nothing if it is not in the files."""
        file = self._sources.pictures.get(source)
        if file is None:
            return decode_data_url(source)
        return file.content(self._meter)


def _asked(chat: ForeignChat) -> Iterator[ForeignPicture]:
    """Yield the pictures of the user's messages."""
    for message in chat.messages:
        if message.role is Role.USER:
            yield from message.pictures


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()
