"""Import: find the conversations in files, folders and archives, whatever their kind.

`Import.found` is a generator: the caller stores each conversation before it asks for the next one,
may stop at any time, and reads the progress from `meter`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from app.conversation.filed import FiledConversation
from app.conversation.placement import Placement
from app.conversation.text import file_label
from app.exchange import own_files, own_json
from app.exchange.foreign import ForeignChat, as_fields, to_conversation
from app.exchange.foreign_pictures import ForeignPictures
from app.exchange.found import FoundPicture, Unreadable
from app.exchange.kinds import Fields, foreign_chat, is_jan_thread, jan_chat
from app.exchange.reading import UnreadableError, json_values
from app.exchange.sources import Document, Meter, Sources, sources
from app.words import exchange as words


class Import:
    """The conversations of some files. Plain Python; use it on one thread."""

    def __init__(self, paths: Sequence[Path], *, now: float) -> None:
        self._paths = paths
        self._now = now
        self.meter = Meter()

    def found(self) -> Iterator[FiledConversation | FoundPicture | Unreadable]:
        """Yield each conversation after its pictures, and all that cannot be read."""
        for path in self._paths:
            any_found = False
            try:
                with sources(path) as files:
                    self.meter.total += sum(file.size for file in files.documents)
                    found = _FoundInPath(files, self.meter, self._now)
                    for one in found.all():
                        any_found = True
                        yield one
            except UnreadableError as error:
                yield Unreadable(name=file_label(path), reason=str(error))
                continue
            if not any_found:
                yield Unreadable(name=file_label(path), reason=words.UNKNOWN)


class _FoundInPath:
    """The conversations in the files of one path."""

    def __init__(self, files: Sources, meter: Meter, now: float) -> None:
        self._files = files.documents
        self._by_name = {file.name: file for file in files.documents}
        self._pictures = ForeignPictures(files, meter)
        self._meter = meter
        self._now = now

    def all(self) -> Iterator[FiledConversation | FoundPicture | Unreadable]:
        for file in self._files:
            yield from self._in_file(file)

    def _in_file(self, file: Document) -> Iterator[FiledConversation | FoundPicture | Unreadable]:
        number = 0
        try:
            with file.text(self._meter) as text:
                for value in json_values(text):
                    fields = as_fields(value)
                    if own_files.is_picture(fields):
                        picture = own_files.picture_from_value(fields)
                        if picture is not None:
                            yield picture
                        continue
                    number += 1
                    try:
                        yield from self._conversation(fields, file)
                    except UnreadableError as error:
                        name = words.chat_number(file.label, number)
                        yield Unreadable(name=name, reason=str(error))
                    except RecursionError:
                        name = words.chat_number(file.label, number)
                        yield Unreadable(name=name, reason=words.TOO_DEEP)
        except UnreadableError as error:
            yield Unreadable(
                name=words.chat_number(file.label, number + 1) if number else file.label,
                reason=str(error),
            )

    def _conversation(
        self, value: Fields, file: Document
    ) -> Iterator[FiledConversation | FoundPicture | Unreadable]:
        """Yield the conversation in an object after its pictures; nothing for another object."""
        if own_json.is_own(value):
            yield _imported(own_json.from_value(value))
            return
        chat = self._foreign_chat(value, file)
        if chat is None:
            return
        yield from self._pictures.find(chat, file.label)
        yield FiledConversation(
            conversation=to_conversation(self._pictures.attach(chat), now=self._now),
            placement=Placement(pinned=chat.pinned, archived=chat.archived),
        )

    def _foreign_chat(self, value: Fields, file: Document) -> ForeignChat | None:
        messages = self._by_name.get(_messages_of(file.name))
        if messages is None or not is_jan_thread(value):
            return foreign_chat(value)
        with messages.text(self._meter) as text:
            return jan_chat(value, json_values(text))


def _imported(filed: FiledConversation) -> FiledConversation:
    """Mark the replies of an exported conversation as read by no model of this data folder."""
    nodes = {
        node_id: node
        if node.generation is None
        else replace(node, generation=replace(node.generation, was_imported=True))
        for node_id, node in filed.conversation.nodes.items()
    }
    return replace(filed, conversation=replace(filed.conversation, nodes=nodes))


def _messages_of(name: str) -> str:
    """Return the path of the messages that belong to a thread.json of Jan."""
    path = PurePosixPath(name)
    return str(path.with_name("messages.jsonl")) if path.name == "thread.json" else ""
