"""The user's actions on the files of drafts, and their chips and notes. Main thread.

The composer (widgets/attaching.py, chat_pane.py) and files that are opened with the app
(Core.open_files) call this controller. Its only state is the number of cuts that are left:

    desk.py              the files of each draft, which are a part of it and are saved with it
    draft_files.py       replaces them, and notes the step to undo
    file_openings.py     the files that are being opened. Their chips follow those of the draft
    file_counts.py       the tokens of the files, only of the draft on show. So chips and notes
                         about sizes, and cutting to the first part, are about this draft
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.controllers.desk import Desk
from app.controllers.draft_files import DraftFiles, Revert
from app.controllers.file_counts import COUNTED_CHARS, FileCounts, longest_of, texts_of
from app.controllers.file_openings import FileOpenings
from app.controllers.library import LibraryController
from app.controllers.models import ModelsController
from app.controllers.requests import is_far_too_long
from app.conversation.attachments import (
    AttachedPicture,
    Attachment,
    Files,
    chosen_pages,
    first_part,
    lacking_pages,
    with_view,
)
from app.settings import PictureSize
from app.viewmodels.attachments import (
    Chip,
    Excess,
    FileSize,
    chip_of,
    estimate,
    excess_note,
    excess_of,
    opening_chip,
    reading_note,
    sent_chip,
)
from app.viewmodels.idle_note import percent_read
from app.words import attachments as words, undo as undo_words
from engine.catalog.card import ModelCard
from engine.types import ConversationId

_MAX_CUTS = 6  # highest number of times that a file is cut until it fits
# Share of the estimated length that is kept, because the length of a token varies.
_KEPT_SHARE = 0.99
_MIN_PART = 64  # tokens; a shorter first part is of no use


class AttachmentsController(QObject):
    """The files of drafts. A file is identified by its place among the files of its draft."""

    changed = Signal(object)  # argument: ConversationId whose files, sizes or progress have changed
    # arguments: ConversationId, a sentence for the user
    said = Signal(object, str)
    started = Signal(object)  # argument: ConversationId in which the user attaches files
    # arguments: ConversationId, tuple of sentences about files that were not attached, or not as a
    # whole
    refused = Signal(object, object)

    def __init__(
        self,
        desk: Desk,
        models: ModelsController,
        library: LibraryController,
        drafts: DraftFiles,
        openings: FileOpenings,
        counts: FileCounts,
    ) -> None:
        super().__init__()
        self._desk = desk
        self._models = models
        self._library = library
        self._drafts = drafts
        self._openings = openings
        self._counts = counts
        self._cuts_left = 0
        openings.changed.connect(self.changed)
        openings.said.connect(self.said)
        openings.refused.connect(self.refused)
        counts.changed.connect(self.changed)
        counts.counted_all.connect(self._cut_again)

    def close(self) -> None:
        """End the extraction process and the worker thread."""
        self._openings.close()

    def attach(self, conversation_id: ConversationId, paths: Sequence[Path]) -> None:
        """Read files and add them to a draft, in this order."""
        self.started.emit(conversation_id)
        self._openings.open_files(conversation_id, paths)

    def attach_image(self, conversation_id: ConversationId, image: Callable[[], bytes]) -> None:
        """Add a pasted picture to a draft. image: returns the content of an image file."""
        self.started.emit(conversation_id)
        self._openings.open_image(conversation_id, image)

    def resize(self, conversation_id: ConversationId, place: int, size: PictureSize) -> None:
        """Give a picture of a draft another size for the model."""
        files = self._desk.get(conversation_id).draft_attachments
        file = files[place] if place < len(files) else None
        if file is not None and file.picture is not None and file.picture.size is not size:
            resized = partial(self._on_resized, conversation_id, file)
            self._openings.resize(file.picture, size, resized)

    def make_full(
        self, picture: AttachedPicture, on_made: Callable[[AttachedPicture], None]
    ) -> None:
        """Make a picture's view in the size FULL. If its file is gone, the picture is unchanged."""
        self._openings.resize(
            picture,
            PictureSize.FULL,
            lambda made: on_made(picture if isinstance(made, str) else made),
        )

    def _on_resized(
        self, conversation_id: ConversationId, before: Attachment, made: AttachedPicture | str
    ) -> None:
        """Give a picture of a draft its new view, if the picture is still there."""
        if isinstance(made, str):
            self.said.emit(conversation_id, made)
            return
        after = with_view(before, made)

        def exchange(_conversation: object) -> None:
            files = self._desk.get(conversation_id).draft_attachments
            if before in files:
                new = _exchanged(before, after, files)
                revert = partial(_exchanged, after, before)
                self._drafts.set(
                    conversation_id, new, revert=revert, name=undo_words.RESIZE_PICTURE
                )

        self._desk.open(
            conversation_id, exchange, lambda one: self.said.emit(conversation_id, str(one))
        )

    def remove(self, conversation_id: ConversationId, place: int) -> None:
        """Remove a file, or cancel its opening if `place` is behind the files of the draft."""
        files = self._desk.get(conversation_id).draft_attachments
        if place < len(files):
            file = files[place]
            self._drafts.set(
                conversation_id,
                (*files[:place], *files[place + 1 :]),
                revert=lambda now: now if file in now else (*now[:place], file, *now[place:]),
                name=undo_words.REMOVE_FILE,
            )
            return
        self._openings.cancel(self._openings.of_draft(conversation_id)[place - len(files)])

    def move(self, conversation_id: ConversationId, place: int, to: int) -> None:
        """Move a file to another place. Do nothing if one of the places does not exist."""
        files = list(self._desk.get(conversation_id).draft_attachments)
        if place != to and 0 <= to < len(files) and 0 <= place < len(files):
            files.insert(to, files.pop(place))
            self._drafts.set(conversation_id, tuple(files))

    def use_first_part(self, conversation_id: ConversationId) -> None:
        """Cut the longest file so that the prompt fits the model."""
        if conversation_id == self._library.current:
            self._cuts_left = _MAX_CUTS
            self._cut(undoes=True)

    def use_pages(self, conversation_id: ConversationId, pages: Sequence[range]) -> str:
        """Keep these pages of the longest file only. Return a sentence if it lacks some of them.

        If it has none of them, the file stays as it is.
        """
        files = self._desk.get(conversation_id).draft_attachments
        place = longest_of(files)
        part = chosen_pages(files[place], pages)
        if part is None:
            return words.BAD_PAGES
        lacking = lacking_pages(files[place], pages)
        kept = (*files[:place], part, *files[place + 1 :])
        revert = _restoring(files[place])
        self._drafts.set(conversation_id, kept, revert=revert, name=undo_words.SHORTEN_FILE)
        return words.lacks_pages(lacking) if lacking else ""

    def is_opening(self, conversation_id: ConversationId) -> bool:
        return bool(self._openings.of_draft(conversation_id))

    @property
    def chips(self) -> tuple[Chip, ...]:
        """The chips of the draft on show: its files, then files that are being opened."""
        counts, excess = self._counts, self.excess
        are_counted = counts.facts is not None and excess is None
        is_estimate = excess is not None and excess.is_estimate
        earlier = map(counts.num_tokens.get, texts_of(counts.files))
        shown = iter(
            counts.sizes or [None if number is None else FileSize(number, 0) for number in earlier]
        )
        known = [
            sent_chip(file)
            if file.picture is not None
            else chip_of(
                file,
                next(shown),
                counts=are_counted,
                estimated=estimate(file, counts.chars_per_token) if is_estimate else None,
            )
            for file in counts.files
        ]
        opened = [
            opening_chip(one.path, one.share)
            for one in self._openings.of_draft(self._library.current)
        ]
        return (*known, *opened)

    @property
    def excess(self) -> Excess | None:
        """By how much the next prompt is too long because of its files, None if it fits."""
        counts, texts = self._counts, texts_of(self._counts.files)
        if counts.facts is None or not texts:
            return None
        far = is_far_too_long(texts, counts.facts)
        rate = counts.chars_per_token if far else None
        return excess_of(texts, counts.counted, counts.facts, chars_per_token=rate)

    @property
    def excess_note(self) -> str:
        """A sentence that the files are too long; empty if they fit."""
        excess, status = self.excess, self._models.status
        if excess is None or status.facts is None:
            return ""
        texts = texts_of(self._counts.files)
        return excess_note(texts, excess, status.name or status.facts.title)

    @property
    def paged_file(self) -> Attachment | None:
        """The longest file, if its pages can be chosen."""
        files = self._counts.files
        longest = files[longest_of(files)] if files else None
        return longest if longest is not None and longest.num_pages else None

    @property
    def fitting_model(self) -> ModelCard | None:
        """A model on this machine for which the files are not too long, or None."""
        excess, facts = self.excess, self._counts.facts
        if excess is None or facts is None:
            return None
        needed = excess.num_tokens + facts.context_len // 8
        fits = [one for one in self._models.cards if one.usable and one.context_len > needed]
        return min(fits, key=lambda card: card.context_len, default=None)

    @property
    def reading_note(self) -> str:
        """A note on the files that are being read, with their share and the time; else empty."""
        counts, event, sizes = self._counts, self._counts.reading, self._counts.sizes
        if event is None or sizes is None:
            return ""
        percent = percent_read(event)
        return reading_note(texts_of(counts.files), sizes, percent, counts.seconds_left)

    def _cut_again(self) -> None:
        if self._cuts_left:
            self._cut()

    def _cut(self, *, undoes: bool = False) -> None:
        """Cut the longest file once. If the prompt is then still too long, it is cut again."""
        excess, files, facts = self.excess, self._counts.files, self._counts.facts
        if excess is None or facts is None or self._cuts_left == 0:
            self._cuts_left = 0
            return
        self._cuts_left -= 1
        place = longest_of(files)
        file = files[place]
        sizes = self._counts.sizes
        if sizes is None:
            kept = COUNTED_CHARS * facts.context_len
        else:
            tokens = sizes[texts_of(files).index(file)].num_tokens
            kept = int(len(file.text) * _KEPT_SHARE * max(_MIN_PART, tokens - excess.over) / tokens)
        cut = (*files[:place], first_part(file, kept), *files[place + 1 :])
        # All cuts are one step to undo: that of the first.
        revert = _restoring(file) if undoes else None
        conversation_id = self._library.current
        self._drafts.set(conversation_id, cut, revert=revert, name=undo_words.SHORTEN_FILE)


def _exchanged(old: Attachment, new: Attachment, files: Files) -> Files:
    return tuple(new if one == old else one for one in files)


def _restoring(whole: Attachment) -> Revert:
    """Return a function that puts a whole file in the place of a part of it."""
    return lambda files: tuple(
        whole if (one.name, one.source) == (whole.name, whole.source) else one for one in files
    )
