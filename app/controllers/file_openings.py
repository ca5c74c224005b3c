"""The files that are being opened: their texts are extracted and added to drafts. Main thread.

A worker thread waits for the extraction process. Files that are attached at once are one action,
which one undo removes. A file that is still being opened is then cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from app.bridge.jobs import Job, JobLane
from app.controllers.desk import Desk
from app.controllers.draft_files import DraftFiles
from app.controllers.preferences import Preferences
from app.conversation.attachments import (
    MAX_ATTACHMENTS,
    MAX_CHARS,
    AttachedPicture,
    Attachment,
    Files,
)
from app.conversation.folder import FolderDocument
from app.conversation.text import file_label
from app.extraction.extractor import Extracted, Extractor
from app.extraction.refusal import Refused, RefusedFileError
from app.settings import PictureSize
from app.store.pictures import PictureFiles
from app.words import attachments as words, folder_documents as document_words, undo as undo_words
from engine.problem import Problem, ProblemKind
from engine.types import ConversationId

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _AttachedBatch:
    """Files that the user has attached at once. One undo removes them."""

    num_files: int
    added: list[Attachment]


@dataclass(slots=True, eq=False)
class FileOpening:
    """A file whose text is being extracted."""

    conversation_id: ConversationId
    path: Path
    batch: _AttachedBatch
    share: float | None = None
    job: Job | None = None  # None until the opening is queued


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A file that was extracted as a document of a folder."""

    document: FolderDocument | None  # None if the file has no text for a document
    sentence: str = ""  # for the user, if the file was refused or cut


class FileOpenings(QObject):
    """The openings of all drafts, in the order in which the files were attached."""

    changed = Signal(object)  # argument: ConversationId whose openings or progress have changed
    # arguments: ConversationId, a sentence for the user
    said = Signal(object, str)
    # arguments: ConversationId, tuple of sentences about files that were not attached, or not as a
    # whole
    refused = Signal(object, object)

    def __init__(
        self, desk: Desk, drafts: DraftFiles, pictures: PictureFiles, preferences: Preferences
    ) -> None:
        super().__init__()
        self._pictures = pictures
        self._preferences = preferences
        self._desk = desk
        self._drafts = drafts
        self._lane = JobLane("attaching")
        self._extractor = Extractor()
        self._running: list[FileOpening] = []
        # Sentences about the files of the running openings.
        self._refused: dict[ConversationId, list[str]] = {}

    def close(self) -> None:
        """End the extraction process and the worker thread."""
        self._extractor.close()
        self._lane.stop()

    def of_draft(self, conversation_id: ConversationId) -> list[FileOpening]:
        return [one for one in self._running if one.conversation_id == conversation_id]

    def open_files(self, conversation_id: ConversationId, paths: Sequence[Path]) -> None:
        """Read files and add them to a draft, in this order."""
        present = len(self._desk.get(conversation_id).draft_attachments)
        waiting = len(self.of_draft(conversation_id))
        if present + waiting + len(paths) > MAX_ATTACHMENTS:
            number = present + waiting + len(paths)
            self.said.emit(conversation_id, words.too_many(number, MAX_ATTACHMENTS))
            return
        batch = _AttachedBatch(len(paths), [])
        for path in paths:
            self._start(
                FileOpening(conversation_id, path, batch), partial(self._extract, path, self._size)
            )
        self.changed.emit(conversation_id)

    def open_image(self, conversation_id: ConversationId, image: Callable[[], bytes]) -> None:
        """Add a pasted picture to a draft.

        image: returns the content of an image file. It is called on the worker thread.
        """
        path = Path(words.PASTED)
        opening = FileOpening(conversation_id, path, _AttachedBatch(1, []))
        self._start(opening, partial(self._extract_image, image, self._size))
        self.changed.emit(conversation_id)

    def resize(
        self,
        picture: AttachedPicture,
        size: PictureSize,
        on_done: Callable[[AttachedPicture | str], None],
    ) -> None:
        """Make the view of a picture in another size. The result is the picture, or a sentence."""
        self._lane.run(partial(self._resize, picture, size), on_done)

    def read_attachment(
        self,
        source: Path | Callable[[], bytes],
        on_done: Callable[[Extracted | str], None],
        on_progress: Callable[[float], None],
    ) -> Job:
        """Extract a file, or a picture whose content a function returns on the worker thread.

        The result is the file or a sentence. A job that is stopped has no result.
        """

        def report(problem: Problem) -> None:
            if problem.kind is not ProblemKind.STOPPED:
                on_done(f"{words.NO_ATTACHMENT} {problem.cause}")

        is_file = isinstance(source, Path)
        extract = (
            partial(self._extract, source, self._size)
            if is_file
            else partial(self._extract_image, source, self._size)
        )
        return self._lane.start(extract, on_done, report, on_progress)

    def read_document(
        self,
        path: Path,
        on_done: Callable[[ReadDocument], None],
        on_progress: Callable[[float], None] = lambda _share: None,
    ) -> Job:
        """Extract a file as a document of a folder. A job that is stopped has no result."""

        def report(problem: Problem) -> None:
            if problem.kind is not ProblemKind.STOPPED:
                on_done(ReadDocument(None, f"{document_words.NOT_READ} {problem.cause}"))

        return self._lane.start(partial(self._extract_document, path), on_done, report, on_progress)

    def run(self, call: Callable[[], T], on_result: Callable[[T], None]) -> None:
        """Run a short call on the worker thread, between two files."""
        self._lane.run(call, on_result)

    @property
    def _size(self) -> PictureSize:
        """Size in which the model gets pictures that are attached now."""
        return self._preferences.value.picture_size

    def _start(self, opening: FileOpening, extract: Callable[[Job], Extracted | str]) -> None:
        self._running.append(opening)
        opening.job = self._lane.start(
            extract,
            partial(self._on_extracted, opening),
            partial(self._on_failed, opening),
            partial(self._on_progressed, opening),
        )

    def cancel(self, opening: FileOpening) -> None:
        if opening.job is not None:
            opening.job.stop()
        self._running.remove(opening)
        self._report_refused(opening.conversation_id)
        self.changed.emit(opening.conversation_id)

    def _extract(self, path: Path, size: PictureSize, job: Job) -> Extracted | str:
        """Return a file's text or stored picture, or a sentence. Runs on the worker thread."""
        try:
            extracted = self._extractor.read(path, job.report, size=size)
            picture = extracted.attachment.picture
            if picture is not None and extracted.content is not None:
                self._pictures.add(picture, extracted.content)
        except RefusedFileError as refusal:
            return words.refused(file_label(path), refusal.why)
        except OSError as error:
            return f"{words.NO_ATTACHMENT} {error.strerror}"
        return extracted

    def _extract_document(self, path: Path, job: Job) -> ReadDocument:
        """Return a document, or a sentence. Runs on the worker thread.

        The size and the time are those before the text is read: a file that changes meanwhile is
        found to have changed.
        """
        try:
            stat = path.stat()
            extracted = self._extractor.read(path, job.report, size=self._size)
        except RefusedFileError as refusal:
            return ReadDocument(None, words.refused(file_label(path), refusal.why))
        except FileNotFoundError:
            return ReadDocument(None, words.refused(file_label(path), Refused.MISSING))
        except OSError as error:
            return ReadDocument(None, f"{document_words.NOT_READ} {error.strerror}")
        file = extracted.attachment
        if file.picture is not None:
            return ReadDocument(None, document_words.is_picture(file.name))
        document = FolderDocument(attachment=file, size=stat.st_size, modified_at=stat.st_mtime)
        is_cut = extracted.is_cut
        return ReadDocument(document, words.cut_at(file.name, MAX_CHARS) if is_cut else "")

    def _extract_image(
        self, image: Callable[[], bytes], size: PictureSize, job: Job
    ) -> Extracted | str:
        """Extract a pasted picture from a private file, which is removed again."""
        try:
            with TemporaryDirectory(prefix="rejoinder-") as folder:
                path = Path(folder) / words.PASTED
                path.write_bytes(image())
                found = self._extract(path, size, job)
        except OSError as error:
            return f"{words.NO_ATTACHMENT} {error.strerror}"
        if isinstance(found, str):
            return found
        attachment = replace(found.attachment, source="")
        return Extracted(attachment, is_cut=found.is_cut, content=found.content)

    def _resize(self, picture: AttachedPicture, size: PictureSize) -> AttachedPicture | str:
        try:
            return self._pictures.resized(picture, size, self._extractor.view)
        except RefusedFileError as refusal:
            is_missing = refusal.why is Refused.MISSING
            why = words.ORIGINAL_MISSING if is_missing else words.ORIGINAL_UNREADABLE
        except OSError as error:
            why = error.strerror
        return f"{words.NOT_RESIZED} {why}"

    def _on_progressed(self, opening: FileOpening, share: float) -> None:
        opening.share = share
        self.changed.emit(opening.conversation_id)

    def _on_extracted(self, opening: FileOpening, result: Extracted | str) -> None:
        if opening not in self._running:  # it was cancelled
            return
        self._running.remove(opening)
        if isinstance(result, str):
            self._note_refused(opening.conversation_id, result)
        else:
            self._add(opening, result)
        self._report_refused(opening.conversation_id)
        self.changed.emit(opening.conversation_id)

    def _on_failed(self, opening: FileOpening, problem: Problem) -> None:
        self._on_extracted(opening, f"{words.NO_ATTACHMENT} {problem.cause}")

    def _add(self, opening: FileOpening, result: Extracted) -> None:
        """Add a file to its draft, unless the draft has it."""
        file, batch, conversation_id = result.attachment, opening.batch, opening.conversation_id
        if result.is_cut:
            self._note_refused(conversation_id, words.cut_at(file.name, MAX_CHARS))

        def add(_conversation: object) -> None:
            files = self._desk.get(conversation_id).draft_attachments
            if any((one.name, one.digest) == (file.name, file.digest) for one in files):
                self._note_refused(conversation_id, words.already(file.name))
                self._report_refused(conversation_id)
                return
            is_first = not batch.added
            batch.added.append(file)
            self._drafts.set(
                conversation_id,
                (*files, file),
                revert=partial(self._detach, batch) if is_first else None,
                name=undo_words.attach(batch.num_files),
            )

        def report(problem: Problem) -> None:
            self.said.emit(conversation_id, str(problem))

        self._desk.open(conversation_id, add, report)

    def _detach(self, batch: _AttachedBatch, files: Files) -> Files:
        """Cancel the openings of a batch. Return the draft's files without those of the batch."""
        for opening in [one for one in self._running if one.batch is batch]:
            self.cancel(opening)
        return tuple(one for one in files if one not in batch.added)

    def _note_refused(self, conversation_id: ConversationId, sentence: str) -> None:
        self._refused.setdefault(conversation_id, []).append(sentence)

    def _report_refused(self, conversation_id: ConversationId) -> None:
        """Report files that were not attached, or only in part, after a draft's last opening."""
        if conversation_id in self._refused and not self.of_draft(conversation_id):
            self.refused.emit(conversation_id, tuple(self._refused.pop(conversation_id)))
