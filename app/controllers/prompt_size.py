"""The size of the next prompt of the conversation on show, counted by the engine. Main thread.

Captions of the composer and the inspector need the size: the draft is too long for the model, or
sending it makes the model read much. The tokens of the last turn do not give the size: many chat
templates drop an answer's thinking from the next prompt. The engine counts again whenever the size
may have changed: COUNT_MS after another conversation is shown, after a change of its messages,
draft or model, after its answer, and after idle work, which may have read the prompt ahead. With a
draft, the engine plans the request that sending it would make. While the user edits a message, the
request with the edited message is planned instead, and again during idle work that reads its
conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.bridge.engine_bridge import IdleEvent
from app.controllers.chat_services import ChatServices
from app.controllers.chat_states import ChatStates
from app.controllers.count_question import CountQuestion
from app.controllers.requests import (
    OpenEdit,
    counted_edit,
    counted_send,
    edited_turn,
    has_draft,
    has_long_draft,
    is_far_too_long,
    next_turn,
)
from app.conversation.attachments import Attachment
from app.conversation.folder import documents_of
from app.conversation.tree import Conversation, MessageNode, NodeId, has_messages, shown_path
from app.viewmodels.chat_state import ChatState, counted_state
from app.viewmodels.reading import ToRead
from engine.events import IdleWorking, ModelFacts
from engine.problem import Problem
from engine.questions import NextPrompt, TokensCounted
from engine.types import ConversationId, Request, Role

# Delay before the engine counts. It is longer than read_ahead.STAY_MS, so that the read-ahead of a
# conversation has begun by then, and its size is counted after it.
COUNT_MS = 600
# Characters of a first message, about 1,000 tokens. A shorter one is read within seconds, so it is
# not counted. Counting 65,000 tokens keeps the engine busy for 60 ms.
COUNTED_CHARS = 4_000

# Function that returns the content of the editor of a message, or None.
EditSource = Callable[[], OpenEdit | None]

# The model, the conversation and the messages that the length of the next prompt is about
_Basis = tuple[ModelFacts | None, ConversationId, tuple[MessageNode, ...]]


class PromptSizes(QObject):
    """The size of the next prompt, if it is known and a caption needs it."""

    changed = Signal()

    def __init__(self, services: ChatServices, states: ChatStates) -> None:
        super().__init__()
        self._desk = services.desk
        self._turns = services.turns
        self._models = services.models
        self._library = services.library
        self._rate = services.rate
        # newest event of the idle work that reads the conversation on show; None if there is none
        self._reading: IdleWorking | None = None
        # Newest event of idle work for messages that are no longer on show. The engine continues it
        # until read_ahead.py sends the present messages.
        self._outdated: IdleWorking | None = None
        self._edit: EditSource = _no_edit
        # None before the engine has counted, and while the prompt is being read ahead
        self.size: TokensCounted | None = None
        # The newest known length of the next prompt, without an edit. It holds during the next
        # count, unless the model, the conversation or the messages on show are others.
        self.num_tokens: int | None = None
        self._basis: _Basis = (None, services.library.current, ())
        # The last size without an edit, if it was too long. It holds during the next count, unless
        # other messages are on show, the text is gone or the files are others.
        self._too_long: TokensCounted | None = None
        self._too_long_files: tuple[Attachment, ...] = ()
        # The last size, which holds during the next count while the same text is typed: in the
        # composer, or in the message with this id.
        self._last: tuple[str, TokensCounted] | None = None
        # The size of the messages on show without a draft, if it is too long. A draft cannot change
        # that.
        self._full: TokensCounted | None = None
        self.is_counted = False  # False after a change, until the engine has counted or need not
        self._states = states
        self._question = CountQuestion(services.bridge, COUNT_MS)
        self._question.due.connect(self._count)
        services.bridge.idle_changed.connect(self._on_idle_changed)
        services.library.current_changed.connect(self._on_shown)
        services.models.status_changed.connect(self._on_status_changed)
        services.chat.draft_saved.connect(self._on_conversation_changed)
        services.chat.next_turn_changed.connect(self._on_messages_changed)
        services.turns.activity_changed.connect(self._on_messages_changed)
        services.rate.changed.connect(self.changed)

    def stop(self) -> None:
        """Count no more, because the app is closing. Later changes then have no effect."""
        self._question.stop()

    @property
    def to_read(self) -> ToRead | None:
        """The tokens that the model reads if the message is sent now. None if they are not known.

        While the conversation is read ahead, these are the tokens that are left. While a message is
        edited, they are those of its prompt, which is counted during the read-ahead too.
        """
        reading, size = self._reading, self.size
        if reading is not None and self._edit() is None:
            cached = reading.num_cached
            start, end = cached + reading.done, cached + reading.total
            return ToRead(end - start, self._rate.time(start, end), end)
        if size is None and self._last is not None and self._last[0] == self._place:
            size = self._last[1]
        return None if size is None else self._rate.to_read(size)

    @property
    def is_of_request(self) -> bool:
        """True if there is a draft that can be sent, or an edited message of the user."""
        conversation, edit = self._desk.get(self._library.current), self._edit()
        if edit is None:
            return has_draft(conversation)
        node = conversation.nodes.get(NodeId(edit.node_id))
        return node is not None and node.role is Role.USER and bool(edit.text.strip())

    @property
    def _place(self) -> str:
        """The id of the edited message, or an empty string for the composer."""
        edit = self._edit()
        return "" if edit is None else edit.node_id

    def kept_size(self, *, has_text: bool) -> TokensCounted | None:
        """Return the last size during a count, if the prompt was and must still be too long."""
        if not has_text:
            return self._full
        return self._too_long if self._too_long_files == self._files else None

    @property
    def _files(self) -> tuple[Attachment, ...]:
        return self._desk.get(self._library.current).draft_attachments

    def refusal_of(self, text: str) -> Problem | None:
        """Return the problem that the engine would report if this text was sent now.

        Return None if the size is not known, or if the prompt is not too long.
        """
        size, draft = self.size, self._desk.get(self._library.current).draft
        is_of_draft = self.is_counted and self._edit() is None and draft == text
        if size is not None and is_of_draft:
            return size.refusal
        return None if self._full is None else self._full.refusal

    def watch_edit(self, edit: EditSource) -> None:
        """Set the function that returns the edited message. Call note_edit() when it changes."""
        self._edit = edit

    def note_edit(self) -> None:
        """Count again: an editor was opened, changed or closed."""
        self._on_changed()

    def count_again(self) -> None:
        """Count again, because the engine has read part of the prompt. Keep the size until then."""
        self._question.wait()

    def _on_conversation_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._library.current:
            self._on_changed()

    def _on_messages_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._library.current:
            self._too_long = self._full = self._last = None
            self._on_changed()
            self.changed.emit()  # the kept size has changed

    def _on_shown(self) -> None:
        self._reading = self._too_long = self._full = self._last = None
        self._on_changed()

    def _on_status_changed(self) -> None:
        self._too_long = self._full = self._last = None  # the model may be another one
        self._on_changed()

    def _on_changed(self) -> None:
        """Drop the size, which may be wrong now, and count again after the delay."""
        self.is_counted = False
        conversation = self._desk.get(self._library.current)
        basis = (self._models.status.facts, self._library.current, shown_path(conversation))
        if basis != self._basis:
            if _ids(basis[-1]) != _ids(self._basis[-1]):
                self._outdated, self._reading = self._reading or self._outdated, None
            self._basis, self.num_tokens = basis, None
            self.changed.emit()
        self._set(None)
        self._question.wait()

    def _on_idle_changed(self, event: IdleEvent) -> None:
        before = self._reading
        is_working = isinstance(event, IdleWorking)
        is_reading = is_working and event.conversation_id == self._library.current
        if is_working and _is_same_work(event, self._outdated):
            return
        self._outdated = None
        self._reading = event if is_working and is_reading and event.kind.is_reading else None
        if self._reading is None:
            if before is not None or not is_working or self._are_documents_read(event):
                self._question.wait()
        elif self._edit() is None:
            self.num_tokens = self._reading.num_cached + self._reading.total
            self._set(None)
        elif not self._question.is_pending:
            self._question.wait()  # the read-ahead may have read a part of the edited prompt
        if self._reading != before:
            self.changed.emit()

    def _are_documents_read(self, event: IdleWorking) -> bool:
        """Return True if a part of the documents of the conversation on show was read."""
        reads_documents = event.conversation_id and documents_of(event.conversation_id)
        has_documents = bool(self._desk.get(self._library.current).documents)
        return bool(reads_documents) and has_documents and not self._question.is_pending

    def _count(self) -> None:
        current, facts, edit = self._library.current, self._models.status.facts, self._edit()
        if facts is None or self._turns.live_in(current) is not None:
            return
        if self._reading is not None and edit is None:
            return
        conversation = self._desk.get(current)
        prompt = self._prompt(conversation, facts, edit)
        if prompt.messages and (_is_long(prompt) or _must_count(conversation)):
            self._question.ask(prompt, self._on_counted)
            return
        self._last = None
        self.is_counted = True
        self._note_state(conversation, None)
        if edit is None:
            self._too_long = self.num_tokens = None
        self.changed.emit()

    def _prompt(
        self, conversation: Conversation, facts: ModelFacts, edit: OpenEdit | None
    ) -> NextPrompt | Request:
        """Return the request that would be sent now, or the known beginning of the next prompt."""
        cards, is_request = self._models.cards, self.is_of_request
        if edit is not None:
            if is_request:
                return counted_edit(conversation, edit, facts, cards)
            return edited_turn(conversation, NodeId(edit.node_id), edit.text, facts)
        files = (*conversation.documents, *conversation.draft_attachments)
        if is_request and not is_far_too_long(files, facts):
            return counted_send(conversation, facts, cards)
        return next_turn(conversation, facts, min_draft=1)

    def _on_counted(self, counted: TokensCounted) -> None:
        self.is_counted = True
        self._last = (self._place, counted)
        if self._edit() is None:
            self._too_long = counted if counted.num_too_long else None
            self._too_long_files = self._files
            self.num_tokens = counted.num_tokens
            conversation = self._desk.get(self._library.current)
            if not has_draft(conversation):
                self._full = self._too_long
            self._note_state(conversation, counted)
        self._set(counted)

    def _note_state(self, conversation: Conversation, counted: TokensCounted | None) -> None:
        """Note the state of the conversation on show: of its messages, or else of its draft.

        counted: the length of the next prompt; None if it is not counted.
        """
        facts, files = self._models.status.facts, conversation.draft_attachments
        if not has_messages(conversation) and facts is not None and is_far_too_long(files, facts):
            self._states.note_counted(conversation.conversation_id, ChatState.UNREAD)
        elif counted is not None and not (has_messages(conversation) and has_draft(conversation)):
            self._states.note_counted(conversation.conversation_id, counted_state(counted))

    def _set(self, size: TokensCounted | None) -> None:
        if size != self.size:
            self.size = size
            self.changed.emit()


def _no_edit() -> OpenEdit | None:
    return None


def _ids(messages: Sequence[MessageNode]) -> list[NodeId]:
    return [message.node_id for message in messages]


def _is_same_work(event: IdleWorking, before: IdleWorking | None) -> bool:
    return before is not None and replace(event, done=before.done) == before


def _is_long(prompt: NextPrompt | Request) -> bool:
    return sum(len(message.content) for message in prompt.messages) >= COUNTED_CHARS


def _must_count(conversation: Conversation) -> bool:
    """Return True if a caption needs the size of a prompt even if the prompt is short."""
    return has_messages(conversation) or has_long_draft(conversation)
