"""The tokens of the files of the draft on show, and how far the model has read them. Main thread.

The engine counts the tokens of the files again when the draft has other files, when an answer has
ended and with another model. It reads the files ahead (read_ahead.py). Files far too long for the
model are not counted, because that would take seconds: the start of the longest one is, for an
estimate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import IdleEvent
from app.controllers.chat_services import ChatServices
from app.controllers.origin import Origin
from app.controllers.requests import is_far_too_long, next_turn
from app.conversation.attachments import Attachment, Files
from app.conversation.tree import Conversation, MessageStatus, shown_path
from app.viewmodels.attachments import FileSize, file_sizes, seconds_left
from engine.events import IdleKind, IdleWorking, ModelFacts
from engine.questions import TokensCounted
from engine.types import ConversationId

# Characters of a file for each token of the context that are counted at most. That is more than
# fits: a token has 3 to 6 characters.
COUNTED_CHARS = 6
# Characters at the start of a file far too long that are counted, for an estimate of its tokens.
_SAMPLE_CHARS = 20_000
_CHARS_PER_TOKEN = 4.0  # before a sample is counted


@dataclass(slots=True)
class _FileReading:
    """The read-ahead of files that is running."""

    since: float  # Origin.tick() of its first event
    first_done: int
    event: IdleWorking


class FileCounts(QObject):
    """Counts the files of the draft on show, and follows their reading."""

    changed = Signal(
        object
    )  # argument: ConversationId on show; its files, sizes or progress changed
    counted_all = Signal()  # all files of the draft are counted; `changed` follows

    def __init__(self, services: ChatServices, origin: Origin) -> None:
        super().__init__()
        self._bridge = services.bridge
        self._desk = services.desk
        self._models = services.models
        self._library = services.library
        self._origin = origin
        self.facts = services.models.status.facts
        self.files: Files = ()  # files of the draft on show
        self.counted: TokensCounted | None = None  # the next prompt with all files
        # Tokens of the files that were counted, also if another file is too long for that.
        self.num_tokens: dict[Attachment, int] = {}
        # Characters per token in the newest sample of a file far too long, for the model in use.
        self.chars_per_token = _CHARS_PER_TOKEN
        self._read = 0  # tokens at the start of the next prompt that are cached or fed
        self._reading: _FileReading | None = None
        self._is_answering = False  # True if the conversation on show has a running answer
        services.bridge.idle_changed.connect(self._on_idle_changed)
        services.library.current_changed.connect(self._refresh)
        services.desk.changed.connect(self._on_changed)
        services.models.status_changed.connect(self._on_status_changed)

    @property
    def sizes(self) -> list[FileSize] | None:
        """The sizes of the files without pictures; None if not all of them are counted."""
        return file_sizes(texts_of(self.files), self.counted, self._read)

    @property
    def reading(self) -> IdleWorking | None:
        """The newest event of the read-ahead of the files; None if it is not running."""
        return None if self._reading is None else self._reading.event

    @property
    def seconds_left(self) -> int | None:
        """The expected seconds until all files are read; None if unknown."""
        reading = self._reading
        if reading is None:
            return None
        return seconds_left(
            done=reading.event.done - reading.first_done,
            total=reading.event.total - reading.first_done,
            spent_s=self._origin.tick() - reading.since,
        )

    def _on_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._library.current:
            self._refresh()

    def _on_status_changed(self) -> None:
        if self._models.status.facts is not self.facts:
            self.facts = self._models.status.facts
            self.chars_per_token = _CHARS_PER_TOKEN
            self.files = ()
            self._refresh()

    def _refresh(self) -> None:
        """Count again if the draft on show has other files than before, or an answer has ended."""
        current = self._library.current
        conversation = self._desk.get(current)
        files = conversation.draft_attachments
        was_answering, self._is_answering = self._is_answering, _is_answering(conversation)
        if files != self.files or (was_answering and not self._is_answering):
            self.files, self.counted, self._read = files, None, 0
            self._reading = None
            self.num_tokens = {}
            if self.facts is not None:
                self._count(conversation, self.facts)
        self.changed.emit(current)

    def _count(self, conversation: Conversation, facts: ModelFacts) -> None:
        sent = _counted_files(self.files if facts.sees else texts_of(self.files), facts)
        if not texts_of(sent):
            return
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
        self, conversation_id: ConversationId, sent: Files, counted: TokensCounted
    ) -> None:
        """Note the size of the files `sent`: all files of the draft, or some and a sample."""
        texts = texts_of(sent)
        sizes = file_sizes(texts, counted, 0)
        if conversation_id != self._library.current or sizes is None:
            return
        self.num_tokens = {file: size.num_tokens for file, size in zip(texts, sizes, strict=True)}
        for file, num_tokens in self.num_tokens.items():
            if file not in self.files and num_tokens:
                self.chars_per_token = len(file.text) / num_tokens
        if sent == self.files:
            self.counted = counted
            self._read = 0 if self._is_answering else max(self._read, counted.num_cached)
            self.counted_all.emit()
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
        if self.counted is not None:
            start = self.counted.num_tokens - event.total
            self._read = max(self._read, start + event.done)
        if self.files:
            self.changed.emit(current)


def texts_of(files: Files) -> Files:
    """Return the files that are no pictures. The engine counts only these one by one."""
    return tuple(file for file in files if file.picture is None)


def longest_of(files: Sequence[Attachment]) -> int:
    """Return the place of the longest file."""
    return max(range(len(files)), key=lambda place: len(files[place].text))


def _is_answering(conversation: Conversation) -> bool:
    path = shown_path(conversation)
    return bool(path) and path[-1].status is MessageStatus.STREAMING


def _counted_files(files: Files, facts: ModelFacts) -> Files:
    """Return the files to count: all, or those not far too long and a sample of the longest."""
    if is_far_too_long(files, facts):
        place = longest_of(files)
        sample = _sample(files[place], COUNTED_CHARS * facts.context_len)
        files = (*files[:place], sample, *files[place + 1 :])
    while is_far_too_long(files, facts):
        place = longest_of(files)
        files = (*files[:place], *files[place + 1 :])
    return files


def _sample(file: Attachment, max_chars: int) -> Attachment:
    return file.with_text(file.text[: min(_SAMPLE_CHARS, max_chars)], file.part)
