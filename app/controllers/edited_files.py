"""The files of messages in editors, which a user removes and adds before the message is sent again.

The changed files are kept here until the edit is sent or cancelled. Main thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge.jobs import Job
from app.controllers.desk import Desk
from app.controllers.file_openings import FileOpenings
from app.conversation.attachments import (
    MAX_ATTACHMENTS,
    MAX_CHARS,
    AttachedPicture,
    Files,
    with_view,
)
from app.conversation.tree import NodeId
from app.extraction.extractor import Extracted
from app.settings import PictureSize
from app.viewmodels.attachments import Chip, opening_chip, sent_chip
from app.words import attachments as words
from engine.types import ConversationId


@dataclass(slots=True, eq=False)
class _Opening:
    """A file that is being extracted."""

    node_id: NodeId  # the message in the editor
    path: Path
    share: float | None = None
    job: Job | None = None  # None until the extraction is queued


class EditedFiles(QObject):
    """Changes the files of the message in the editor. A file is identified by its place."""

    changed = Signal()
    # arguments: ConversationId, a sentence for the user
    said = Signal(object, str)

    def __init__(self, desk: Desk, openings: FileOpenings) -> None:
        super().__init__()
        self._desk = desk
        self._openings = openings
        # The files of messages in editors, if they are not those of the message.
        self._changed: dict[NodeId, Files] = {}
        self._running: list[_Opening] = []

    def is_changed(self, node_id: NodeId) -> bool:
        return node_id in self._changed

    def changed_files(self, node_id: NodeId) -> Files | None:
        """Return the files of a message in an editor. None: those of the message."""
        return self._changed.get(node_id)

    def take(self, node_id: NodeId) -> Files | None:
        """Forget the files of an editor that is closed, and return them as changed_files() does."""
        return self._changed.pop(node_id, None)

    def files(self, conversation_id: ConversationId, node_id: NodeId) -> Files:
        """Return the files that the message has if it is sent now."""
        node = self._desk.get(conversation_id).nodes.get(node_id)
        return self._changed.get(node_id, () if node is None else node.attachments)

    def num_unchanged(self, conversation_id: ConversationId, node_id: NodeId) -> int:
        """Return the number of files before the first change. The model has read these before."""
        node = self._desk.get(conversation_id).nodes.get(node_id)
        before = () if node is None else node.attachments
        pairs = zip(before, self.files(conversation_id, node_id), strict=False)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))

    def chips(self, conversation_id: ConversationId, node_id: NodeId) -> tuple[Chip, ...]:
        """Return the chips of the files of a message, then of those that are being opened."""
        opened = (opening_chip(one.path, one.share) for one in self._of(node_id))
        return (*map(sent_chip, self.files(conversation_id, node_id)), *opened)

    def attach(
        self,
        conversation_id: ConversationId,
        node_id: NodeId,
        sources: Sequence[Path | Callable[[], bytes]],
    ) -> None:
        """Add files to a message, in this order. A function returns the content of a picture."""
        number = len(self.files(conversation_id, node_id)) + len(self._of(node_id)) + len(sources)
        if number > MAX_ATTACHMENTS:
            self.said.emit(conversation_id, words.too_many(number, MAX_ATTACHMENTS))
            return
        for source in sources:
            path = source if isinstance(source, Path) else Path(words.PASTED)
            opening = _Opening(node_id, path)
            self._running.append(opening)
            opening.job = self._openings.read_attachment(
                source,
                partial(self._on_read, conversation_id, opening),
                partial(self._on_progress, opening),
            )
        self.changed.emit()

    def remove(self, conversation_id: ConversationId, node_id: NodeId, place: int) -> None:
        """Remove a file, or cancel its opening. Files that are opened follow the others."""
        files = self.files(conversation_id, node_id)
        if place < len(files):
            self.set(conversation_id, node_id, (*files[:place], *files[place + 1 :]))
        else:
            self._cancel(self._of(node_id)[place - len(files)])
            self.changed.emit()

    def move(self, conversation_id: ConversationId, node_id: NodeId, place: int, to: int) -> None:
        """Move a file to another place. Places outside of the files do nothing."""
        files = list(self.files(conversation_id, node_id))
        if place != to and 0 <= to < len(files) and 0 <= place < len(files):
            files.insert(to, files.pop(place))
            self.set(conversation_id, node_id, tuple(files))

    def resize(
        self, conversation_id: ConversationId, node_id: NodeId, place: int, size: PictureSize
    ) -> None:
        """Give a picture of a message another size for the model."""
        files = self.files(conversation_id, node_id)
        file = files[place] if place < len(files) else None
        if file is None or file.picture is None or file.picture.size is size:
            return

        def exchange(made: AttachedPicture | str) -> None:
            if isinstance(made, str):
                self.said.emit(conversation_id, made)
                return
            after = with_view(file, made)
            now = self.files(conversation_id, node_id)
            new = tuple(after if one == file else one for one in now)
            self.set(conversation_id, node_id, new)

        self._openings.resize(file.picture, size, exchange)

    def set(self, conversation_id: ConversationId, node_id: NodeId, files: Files) -> None:
        """Replace the files of a message in the editor."""
        node = self._desk.get(conversation_id).nodes.get(node_id)
        if node is None:
            return
        self._changed[node_id] = files
        if files == node.attachments:
            del self._changed[node_id]
        self.changed.emit()

    def cancel_openings(self, node_id: NodeId) -> None:
        """Stop the extraction of files for a message, whose edit was cancelled."""
        for opening in self._of(node_id):
            self._cancel(opening)

    def _of(self, node_id: NodeId) -> list[_Opening]:
        return [one for one in self._running if one.node_id == node_id]

    def _cancel(self, opening: _Opening) -> None:
        if opening.job is not None:
            opening.job.stop()
        self._running.remove(opening)

    def _on_progress(self, opening: _Opening, share: float) -> None:
        opening.share = share
        self.changed.emit()

    def _on_read(
        self, conversation_id: ConversationId, opening: _Opening, result: Extracted | str
    ) -> None:
        if opening not in self._running:  # it was cancelled
            return
        self._running.remove(opening)
        self.changed.emit()
        if isinstance(result, str):
            self.said.emit(conversation_id, result)
            return
        file, node_id = result.attachment, opening.node_id
        files = self.files(conversation_id, node_id)
        if any((one.name, one.digest) == (file.name, file.digest) for one in files):
            self.said.emit(conversation_id, words.already(file.name))
            return
        if result.is_cut:
            self.said.emit(conversation_id, words.cut_at(file.name, MAX_CHARS))
        self.set(conversation_id, node_id, (*files, file))
