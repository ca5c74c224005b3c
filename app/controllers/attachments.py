"""The files attached to drafts: their sizes, and how far the model has read them. Main thread.

The text of a file (file_openings.py) becomes a part of the draft and is saved with it. The engine
then counts its tokens, and reads it ahead (read_ahead.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import EngineBridge, IdleEvent
from app.controllers.desk import Desk
from app.controllers.draft_files import DraftFiles, Revert
from app.controllers.file_openings import FileOpenings
from app.controllers.library import LibraryController
from app.controllers.models import ModelsController
from app.controllers.origin import Origin
from app.controllers.requests import is_far_too_long, next_turn
from app.conversation.attachments import (
    AttachedPicture,
    Attachment,
    Files,
    chosen_pages,
    first_part,
    lacking_pages,
    with_view,
)
from app.conversation.tree import Conversation, MessageStatus, shown_path
from app.settings import PictureSize
from app.viewmodels.attachments import (
    Chip,
    Excess,
    FileSize,
    chip_of,
    estimate,
    excess_note,
    excess_of,
    file_sizes,
    opening_chip,
    reading_note,
    seconds_left,
    sent_chip,
)
from app.viewmodels.idle_note import percent_read
from app.words import attachments as words, undo as undo_words
from engine.catalog.card import ModelCard
from engine.events import IdleKind, IdleWorking
from engine.questions import TokensCounted
from engine.types import ConversationId

# Highest number of times that a file is cut again until it fits, and the share that is kept of what
# should fit: tokens are not equally long everywhere.
_MAX_CUTS = 6
_KEPT_SHARE = 0.99
# Characters of a first part for each token of the context, before its tokens are counted. That is
# more than fits: a token has 3 to 6 characters.
_COUNTED_CHARS = 6
# Characters at the start of a file far too long that are counted, for an estimate of its tokens.
_SAMPLE_CHARS = 20_000
_CHARS_PER_TOKEN = 4.0  # before a sample is counted
_MIN_PART = 64  # tokens; a shorter first part is of no use


@dataclass(slots=True)
class _FileReading:
    """The read-ahead of files that is running."""

    since: float  # Origin.tick() of its first event
    first_done: int
    event: IdleWorking


class AttachmentsController(QObject):
    """The files of drafts. A file is identified by its place among the files of its draft."""

    changed = Signal(object)  # argument: ConversationId whose files, sizes or progress have changed
    # arguments: ConversationId, a sentence for the user
    said = Signal(object, str)
    started = Signal(object)  # argument: ConversationId in which the user attaches files
    # arguments: ConversationId, tuple of sentences about files that were not attached, or not as a
    # whole
    refused = Signal(object, object)

    def __init__(  # noqa: PLR0913 (the sizes and the progress depend on each)
        self,
        bridge: EngineBridge,
        desk: Desk,
        models: ModelsController,
        library: LibraryController,
        drafts: DraftFiles,
        openings: FileOpenings,
        origin: Origin,
    ) -> None:
        super().__init__()
        self._bridge = bridge
        self._desk = desk
        self._models = models
        self._library = library
        self._drafts = drafts
        self._origin = origin
        self._openings = openings
        self._facts = models.status.facts
        self._counted: TokensCounted | None = None  # for the files of the draft on show
        # Tokens of the files on show that were counted, also if another file is too long for that.
        self._num_tokens: dict[Attachment, int] = {}
        # Characters per token in the newest sample of a file far too long, for the model in use.
        self._chars_per_token = _CHARS_PER_TOKEN
        self._files: Files = ()  # files of the draft on show
        self._read = 0  # tokens at the start of the next prompt that are cached or fed
        self._reading: _FileReading | None = None
        self._is_answering = False  # True if the conversation on show has a running answer
        self._cuts_left = 0
        self._openings.changed.connect(self.changed)
        self._openings.said.connect(self.said)
        self._openings.refused.connect(self.refused)
        bridge.idle_changed.connect(self._on_idle_changed)
        library.current_changed.connect(self._refresh)
        desk.changed.connect(self._on_changed)
        models.status_changed.connect(self._on_status_changed)

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
        """Make the view of a picture in the size FULL. If its file is gone, the picture is unchanged."""
        self._openings.resize(
            picture,
            PictureSize.FULL,
            lambda made: on_made(picture if isinstance(made, str) else made),
        )

    def _on_resized(
        self, conversation_id: ConversationId, before: Attachment, made: AttachedPicture | str
    ) -> None:
        """Put the picture with another view in the place of the one before, if that is still there."""
        if isinstance(made, str):
            self.said.emit(conversation_id, made)
            return
        after = with_view(before, made)

        def exchange(_conversation: object) -> None:
            files = self._desk.get(conversation_id).draft_attachments
            if before in files:
                new = tuple(after if one == before else one for one in files)
                revert = partial(_exchanged, after, before)
                self._set(conversation_id, new, revert, undo_words.RESIZE_PICTURE)

        self._desk.open(
            conversation_id, exchange, lambda one: self.said.emit(conversation_id, str(one))
        )

    def remove(self, conversation_id: ConversationId, place: int) -> None:
        """Remove a file, or cancel its opening. Files that are opened follow the others."""
        files = self._desk.get(conversation_id).draft_attachments
        if place < len(files):
            file = files[place]
            self._set(
                conversation_id,
                (*files[:place], *files[place + 1 :]),
                lambda now: now if file in now else (*now[:place], file, *now[place:]),
                undo_words.REMOVE_FILE,
            )
            return
        self._openings.cancel(self._openings.of_draft(conversation_id)[place - len(files)])

    def move(self, conversation_id: ConversationId, place: int, to: int) -> None:
        """Move a file to another place. Places outside of the files do nothing."""
        files = list(self._desk.get(conversation_id).draft_attachments)
        if place != to and 0 <= to < len(files) and 0 <= place < len(files):
            files.insert(to, files.pop(place))
            self._set(conversation_id, tuple(files))

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
        place = _longest(files)
        part = chosen_pages(files[place], pages)
        if part is None:
            return words.BAD_PAGES
        lacking = lacking_pages(files[place], pages)
        kept = (*files[:place], part, *files[place + 1 :])
        self._set(conversation_id, kept, _restoring(files[place]))
        return words.lacks_pages(lacking) if lacking else ""

    def is_opening(self, conversation_id: ConversationId) -> bool:
        return bool(self._openings.of_draft(conversation_id))

    @property
    def chips(self) -> tuple[Chip, ...]:
        """The chips of the draft on show: its files, then files that are being opened."""
        sizes = file_sizes(_texts(self._files), self._counted, self._read)
        excess = self.excess
        counts = self._facts is not None and excess is None
        is_estimate = excess is not None and excess.is_estimate
        rate = self._chars_per_token
        earlier = map(self._num_tokens.get, _texts(self._files))
        shown = iter(
            sizes or [None if number is None else FileSize(number, 0) for number in earlier]
        )
        known = [
            sent_chip(file)
            if file.picture is not None
            else chip_of(
                file,
                next(shown),
                counts=counts,
                estimated=estimate(file, rate) if is_estimate else None,
            )
            for file in self._files
        ]
        opened = [
            opening_chip(one.path, one.share)
            for one in self._openings.of_draft(self._library.current)
        ]
        return (*known, *opened)

    @property
    def excess(self) -> Excess | None:
        """By how much the next prompt is too long because of its files, None if it fits."""
        texts = _texts(self._files)
        if self._facts is None or not texts:
            return None
        far = is_far_too_long(texts, self._facts)
        rate = self._chars_per_token if far else None
        return excess_of(texts, self._counted, self._facts, chars_per_token=rate)

    @property
    def excess_note(self) -> str:
        """A sentence that the files are too long; empty if they fit."""
        excess, status = self.excess, self._models.status
        if excess is None or status.facts is None:
            return ""
        return excess_note(_texts(self._files), excess, status.name or status.facts.title)

    @property
    def paged_file(self) -> Attachment | None:
        """The longest file, if its pages can be chosen."""
        longest = self._files[_longest(self._files)] if self._files else None
        return longest if longest is not None and longest.num_pages else None

    @property
    def fitting_model(self) -> ModelCard | None:
        """A model on this machine for which the files are not too long, or None."""
        excess, facts = self.excess, self._facts
        if excess is None or facts is None:
            return None
        needed = excess.num_tokens + facts.context_len // 8
        fits = [one for one in self._models.cards if one.usable and one.context_len > needed]
        return min(fits, key=lambda card: card.context_len, default=None)

    @property
    def reading_note(self) -> str:
        """A note on the files that are being read, with their share and the time; else empty."""
        texts = _texts(self._files)
        sizes = file_sizes(texts, self._counted, self._read)
        if self._reading is None or sizes is None:
            return ""
        event, since = self._reading.event, self._reading.since
        left = seconds_left(
            done=event.done - self._reading.first_done,
            total=event.total - self._reading.first_done,
            spent_s=self._origin.tick() - since,
        )
        return reading_note(texts, sizes, percent_read(event), left)

    # Changes of the draft

    def _set(
        self,
        conversation_id: ConversationId,
        files: Files,
        revert: Revert | None = None,
        name: str = undo_words.SHORTEN_FILE,
    ) -> None:
        self._drafts.set(conversation_id, files, revert=revert, name=name)

    def _cut(self, *, undoes: bool = False) -> None:
        """Cut the longest file once. If the prompt is then still too long, it is cut again."""
        excess, facts = self.excess, self._facts
        if excess is None or facts is None or self._cuts_left == 0:
            self._cuts_left = 0
            return
        self._cuts_left -= 1
        place = _longest(self._files)
        file = self._files[place]
        texts = _texts(self._files)
        sizes = file_sizes(texts, self._counted, 0)
        if sizes is None:
            kept = _COUNTED_CHARS * facts.context_len
        else:
            tokens = sizes[texts.index(file)].num_tokens
            kept = int(len(file.text) * _KEPT_SHARE * max(_MIN_PART, tokens - excess.over) / tokens)
        part = first_part(file, kept)
        files = (*self._files[:place], part, *self._files[place + 1 :])
        self._set(self._library.current, files, _restoring(file) if undoes else None)

    # Sizes and progress

    def _on_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._library.current:
            self._refresh()

    def _on_status_changed(self) -> None:
        if self._models.status.facts is not self._facts:
            self._facts = self._models.status.facts
            self._chars_per_token = _CHARS_PER_TOKEN
            self._files = ()
            self._refresh()

    def _refresh(self) -> None:
        """Count again if the draft on show has other files than before, or an answer has ended."""
        current = self._library.current
        conversation = self._desk.get(current)
        files = conversation.draft_attachments
        was_answering, self._is_answering = self._is_answering, _is_answering(conversation)
        if files != self._files or (was_answering and not self._is_answering):
            self._files, self._counted, self._read = files, None, 0
            self._reading = None
            self._num_tokens = {}
            self._count()
        self.changed.emit(current)

    def _count(self) -> None:
        facts = self._facts
        if facts is None:
            return
        sent = self._files if facts.sees else _texts(self._files)
        if is_far_too_long(sent, facts):
            place = _longest(sent)
            sample = _sample(sent[place], _COUNTED_CHARS * facts.context_len)
            sent = (*sent[:place], sample, *sent[place + 1 :])
        while is_far_too_long(sent, facts):
            place = _longest(sent)
            sent = (*sent[:place], *sent[place + 1 :])
        if not _texts(sent):
            return
        conversation = self._desk.get(self._library.current)
        conversation = replace(conversation, draft_attachments=sent)
        if is_far_too_long((*conversation.documents, *sent), facts):
            # The documents of the folder leave no room. Count the files alone.
            conversation = replace(conversation, documents=())
        if self._is_answering:
            # The next prompt is not known yet. Count the files as if they began the chat.
            conversation = replace(conversation, nodes={}, children={}, shown={})
        turn = next_turn(conversation, facts)
        asked = self._bridge.engine.count_tokens(turn)
        self._bridge.when_answered(asked, partial(self._on_counted, turn.conversation_id, sent))

    def _on_counted(
        self,
        conversation_id: ConversationId,
        sent: Files,
        counted: TokensCounted,
    ) -> None:
        """Note the size of the files `sent`: all files of the draft, or some and a sample."""
        texts = _texts(sent)
        sizes = file_sizes(texts, counted, 0)
        if conversation_id != self._library.current or sizes is None:
            return
        self._num_tokens = {file: size.num_tokens for file, size in zip(texts, sizes, strict=True)}
        for file, num_tokens in self._num_tokens.items():
            if file not in self._files and num_tokens:
                self._chars_per_token = len(file.text) / num_tokens
        if sent == self._files:
            self._counted = counted
            self._read = 0 if self._is_answering else max(self._read, counted.num_cached)
            if self._cuts_left:
                self._cut()
        self.changed.emit(conversation_id)

    def _on_idle_changed(self, event: IdleEvent) -> None:
        current = self._library.current
        is_ours = isinstance(event, IdleWorking) and event.conversation_id == current
        if not isinstance(event, IdleWorking) or not is_ours or event.kind is not IdleKind.DRAFT:
            if self._reading is not None:
                self._reading = None
                self.changed.emit(current)
            return
        before = self._reading
        if before is None or before.event.total != event.total:
            self._reading = _FileReading(self._origin.tick(), event.done, event)
        else:
            before.event = event
        if self._counted is not None:
            start = self._counted.num_tokens - event.total
            self._read = max(self._read, start + event.done)
        if self._files:
            self.changed.emit(current)


def _is_answering(conversation: Conversation) -> bool:
    path = shown_path(conversation)
    return bool(path) and path[-1].status is MessageStatus.STREAMING


def _exchanged(old: Attachment, new: Attachment, files: Files) -> Files:
    return tuple(new if one == old else one for one in files)


def _restoring(whole: Attachment) -> Revert:
    """Return a function that puts a whole file in the place of a part of it."""
    return lambda files: tuple(
        whole if (one.name, one.source) == (whole.name, whole.source) else one for one in files
    )


def _sample(file: Attachment, max_chars: int) -> Attachment:
    return file.with_text(file.text[: min(_SAMPLE_CHARS, max_chars)], file.part)


def _texts(files: Files) -> Files:
    """Return the files that are no pictures. The engine counts only these one by one."""
    return tuple(file for file in files if file.picture is None)


def _longest(files: Sequence[Attachment]) -> int:
    return max(range(len(files)), key=lambda place: len(files[place].text))
