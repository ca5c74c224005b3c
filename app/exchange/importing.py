"""Import: find the conversations in files, folders and archives, whatever their kind.

`Import.found` is a generator: the caller stores each conversation before it asks for the next one,
may stop at any time, and reads the progress from `meter`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import cast

from app.conversation.filed import FiledConversation
from app.conversation.placement import Placement
from app.conversation.text import file_label
from app.exchange import own_json
from app.exchange.foreign import to_conversation
from app.exchange.kinds import Fields, foreign_chat, is_jan_thread, jan_chat
from app.exchange.reading import UnreadableError, json_values
from app.exchange.sources import Document, Meter, documents
from app.words import exchange as words


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A file or conversation that cannot be read."""

    name: str
    reason: str  # one sentence


class Import:
    """The conversations of some files. Plain Python; use it on one thread."""

    def __init__(self, paths: Sequence[Path], *, now: float) -> None:
        self._paths = paths
        self._now = now
        self.meter = Meter()

    def found(self) -> Iterator[FiledConversation | Unreadable]:
        """Yield each conversation, and each file or conversation that cannot be read."""
        for path in self._paths:
            any_found = False
            try:
                with documents(path) as files:
                    self.meter.total += sum(file.size for file in files)
                    by_name = {file.name: file for file in files}
                    for file in files:
                        for one in self._in_file(file, by_name):
                            any_found = True
                            yield one
            except UnreadableError as error:
                yield Unreadable(name=file_label(path), reason=str(error))
                continue
            if not any_found:
                yield Unreadable(name=file_label(path), reason=words.UNKNOWN)

    def _in_file(
        self, file: Document, by_name: dict[str, Document]
    ) -> Iterator[FiledConversation | Unreadable]:
        number = 0
        try:
            with file.text(self.meter) as text:
                for number, value in enumerate(json_values(text), start=1):
                    if not isinstance(value, dict):
                        continue
                    try:
                        filed = self._conversation(cast("Fields", value), file, by_name)
                    except UnreadableError as error:
                        name = words.chat_number(file.label, number)
                        yield Unreadable(name=name, reason=str(error))
                        continue
                    except RecursionError:
                        name = words.chat_number(file.label, number)
                        yield Unreadable(name=name, reason=words.TOO_DEEP)
                        continue
                    if filed is not None:
                        yield filed
        except UnreadableError as error:
            yield Unreadable(
                name=words.chat_number(file.label, number + 1) if number else file.label,
                reason=str(error),
            )

    def _conversation(
        self, value: Fields, file: Document, by_name: dict[str, Document]
    ) -> FiledConversation | None:
        """Return the conversation in an object, or None if the object is something else."""
        if own_json.is_own(value):
            return _imported(own_json.from_value(value))
        messages = by_name.get(_messages_of(file.name))
        if messages is not None and is_jan_thread(value):
            with messages.text(self.meter) as text:
                chat = jan_chat(value, json_values(text))
        else:
            chat = foreign_chat(value)
        return chat and FiledConversation(
            conversation=to_conversation(chat, now=self._now),
            placement=Placement(pinned=chat.pinned, archived=chat.archived),
        )


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
