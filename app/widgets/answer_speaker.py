"""Screen-reader announcements of the answer in the shown conversation. Main thread."""

from __future__ import annotations

import re
from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import QWidget

from app.controllers.library import LibraryController
from app.controllers.turns import Turns
from app.conversation.tree import NodeId
from app.theme.tokens import Millis
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.announcer import Announcer
from app.widgets.transcript.binding import TranscriptBinding
from app.words import answers, transcript as words
from engine.types import Channel, ConversationId

_SENTENCES = re.compile(r".*(?:[.!?…:]\s|[。！？]|\n)", re.DOTALL)  # noqa: RUF001 - CJK stops


class AnswerSpeaker(QObject):
    """An object that announces an answer: its start, its sentences as they arrive, its end.

    Sentences are announced only while `is_heard()` is true, at most once per `interval_ms`.
    Sentences that arrive sooner are joined into the next announcement.
    """

    def __init__(
        self,
        widget: QWidget,
        turns: Turns,
        library: LibraryController,
        transcript: TranscriptBinding,
        *,
        is_heard: Callable[[], bool] = QAccessible.isActive,
        interval_ms: int = Millis.SPEAK,
    ) -> None:
        super().__init__(widget)
        self.announcer = Announcer(widget)
        self._turns = turns
        self._library = library
        self._transcript = transcript
        self._is_heard = is_heard
        # reply that is being announced; None if no answer is running
        self._reply: NodeId | None = None
        # all running answers of the conversation. They answer the same message.
        self._running: tuple[NodeId, ...] = ()
        self._are_several = False  # True if the ends name the answers: several were running
        self._unsaid = ""  # text of the reply that is not announced yet
        self._timer = QTimer(self, singleShot=True, interval=interval_ms)
        self._timer.timeout.connect(self._announce_sentences)
        turns.activity_changed.connect(self._on_activity_changed)
        turns.text_arrived.connect(self._on_text_arrived)
        library.current_changed.connect(self._on_current_changed)

    def _on_current_changed(self) -> None:
        """Announce the answer that is running in the conversation shown now, if there is one."""
        self._running = self._turns.replies_in(self._library.current)
        self._are_several = len(self._running) > 1
        self._follow(self._turns.reply_in(self._library.current))

    def _on_activity_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id != self._library.current:
            return
        running, before = self._turns.replies_in(conversation_id), self._running
        self._running = running
        self._are_several = len(running) > 1 or (bool(before) and self._are_several)
        reply, spoken, unsaid = self._turns.reply_in(conversation_id), self._reply, self._unsaid
        if reply != spoken:
            self._follow(reply)
        if running and not before:
            self.announcer.say(words.ANSWERING)
        for ended in before:
            if ended not in running and (item := self._transcript.answer_item(ended)) is not None:
                rest = unsaid if ended == spoken else ""
                end = _end_of_several(item) if self._are_several else _end(item)
                self.announcer.say(f"{rest}\n{end}".strip())

    def _follow(self, reply: NodeId | None) -> None:
        self._reply = reply
        self._unsaid = ""
        self._timer.stop()

    def _on_text_arrived(self, node_id: NodeId, channel: Channel, text: str) -> None:
        if node_id == self._reply and channel is Channel.ANSWER and self._is_heard():
            self._unsaid += text
            if not self._timer.isActive():
                self._announce_sentences()

    def _announce_sentences(self) -> None:
        found = _SENTENCES.match(self._unsaid)
        if found is not None:
            self._unsaid = self._unsaid[found.end() :]
            self.announcer.say(found.group().strip())
            self._timer.start()


def _end(item: TranscriptItem) -> str:
    match item.status:
        case ItemStatus.FAILED:
            return str(item.problem)
        case ItemStatus.STOPPED:
            return words.ANSWER_STOPPED
        case ItemStatus.COMPLETE | ItemStatus.STREAMING | ItemStatus.UNANSWERED:
            num_tokens = None if item.figures is None else item.figures.num_tokens
            return words.answer_finished(num_tokens)


def _end_of_several(item: TranscriptItem) -> str:
    """Return the announcement of the end of one of several answers, with its number."""
    number = item.version.number
    match item.status:
        case ItemStatus.FAILED:
            return answers.failed(number, str(item.problem))
        case ItemStatus.STOPPED:
            return answers.stopped(number)
        case ItemStatus.COMPLETE | ItemStatus.STREAMING | ItemStatus.UNANSWERED:
            num_tokens = None if item.figures is None else item.figures.num_tokens
            return answers.ended(number, num_tokens)
