"""The line above an answer that has no text yet: the reason for its wait. Main thread.

turns.py has one WaitLines. A line about few tokens is not shown at first, because most answers
begin at once. LONG_MS after the user's action it is shown in any case (LiveReply.is_late).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from PySide6.QtCore import QObject, QTimer

from app.bridge.engine_bridge import IdleEvent
from app.controllers.desk import Desk
from app.controllers.running_turn import RunningTurn
from app.conversation.folder import Folder, documents_of
from app.conversation.placement import FolderId
from app.conversation.text import one_line
from app.viewmodels.phases import Phase, Reading, Waiting
from app.viewmodels.state_line import LONG_MS
from app.words import state as words
from engine.events import IdleWorking, RequestQueued, WaitReason
from engine.types import ConversationId, chat_of

_TITLE_LEN = 40  # characters of the title of a chat, or the name of a folder, in a line


class WaitLines(QObject):
    """Shows the lines of the turns that have had no text for LONG_MS."""

    def __init__(
        self,
        turns: Collection[RunningTurn],
        desk: Desk,
        tick: Callable[[], float],
        show: Callable[[RunningTurn, Phase], None],
        parent: QObject,
    ) -> None:
        """Create an object without a running timer.

        Args:
            turns: the running turns, a list that changes with them.
            desk: has the titles of their conversations.
            tick: returns the time in seconds of the clock of RunningTurn.sent_at.
            show: shows a phase as the line of a turn.
            parent: the owner.
        """
        super().__init__(parent)
        self._turns, self._desk, self._tick, self._show = turns, desk, tick, show
        # The conversation that the engine reads ahead. It ends its step before it begins a request.
        self._read_ahead: ConversationId | None = None
        # Returns the folder with an id, or None if it is unknown. Core sets it.
        self.folder_of: Callable[[FolderId], Folder | None] = lambda _folder_id: None
        self.timer = QTimer(self, singleShot=True, interval=LONG_MS)
        self.timer.timeout.connect(self._show_late)

    def start(self) -> None:
        """Look at the turns after LONG_MS."""
        if not self.timer.isActive():
            self.timer.start()

    def stop(self) -> None:
        self.timer.stop()

    def note_idle(self, event: IdleEvent) -> None:
        """Note which conversation the engine reads ahead."""
        self._read_ahead = None
        if isinstance(event, IdleWorking) and event.kind.is_reading:
            self._read_ahead = event.conversation_id

    def queued_phase(self, running: RunningTurn, event: RequestQueued) -> Waiting:
        """Return the phase of a turn that waits, with the reason in words."""
        text = shorter = ""
        behind = event.behind and chat_of(event.behind)
        # True if other answers to the same message are among those that this one may wait for
        chats = [one.conversation_id for one in self._turns]
        has_others = chats.count(running.conversation_id) > 1
        match event.reason:
            case WaitReason.READING if behind == running.conversation_id:
                return Waiting(0, words.WAITING_FOR_MESSAGES)
            case WaitReason.READING:
                title = self._title(behind)
                shorter = words.WAITING_TO_READ
                text = words.waiting_to_read(title) if title else shorter
            case WaitReason.ANSWERS if has_others:
                text = words.WAITING_FOR_ANSWERS
            case WaitReason.ANSWERS:
                text = words.WAITING_TO_ANSWER
            case WaitReason.MEMORY if has_others:
                text = words.WAITING_FOR_ANSWER_MEMORY
            case WaitReason.MEMORY:
                text = words.WAITING_FOR_MEMORY
            case WaitReason.TURN:
                pass
        if text and event.ahead > 1:
            text = words.more_ahead(text, event.ahead - 1)
        return Waiting(event.ahead, text, shorter)

    def _show_late(self) -> None:
        now = self._tick()
        early = [one for one in self._turns if not (one.live.num_tokens or one.live.is_late)]
        for running in early:
            if now - running.sent_at >= LONG_MS / 1000:
                running.live.is_late = True
                self._show(running, self._late_phase(running))
        if not all(one.live.is_late for one in early):
            self.timer.start()

    def _late_phase(self, running: RunningTurn) -> Phase:
        """Return the phase of a late turn. It names the chat or documents whose step still runs."""
        phase = running.live.phase
        behind = self._read_before(running)
        if phase != Waiting(0) or behind is None:
            return phase
        folder_id = documents_of(behind)
        if folder_id is not None:
            folder, text = self.folder_of(folder_id), words.WAITING_FOR_DOCUMENTS
            text = words.waiting_for_documents(_short(folder.name)) if folder else text
            return Waiting(0, text, words.WAITING_FOR_DOCUMENTS)
        title = self._title(behind)
        text = words.waiting_for_step(title) if title else words.WAITING_FOR_STEP
        return Waiting(0, text, words.WAITING_FOR_STEP)

    def _read_before(self, running: RunningTurn) -> ConversationId | None:
        """Return the other conversation of which the engine reads a part. None if it is unknown."""
        conversation_id = running.conversation_id
        others = [one for one in self._turns if one.conversation_id != conversation_id]
        reading = [one for one in others if isinstance(one.live.phase, Reading)]
        if others:
            return reading[0].conversation_id if len(reading) == len(others) == 1 else None
        return None if self._read_ahead == conversation_id else self._read_ahead

    def _title(self, conversation_id: ConversationId | None) -> str:
        if conversation_id is None or conversation_id not in self._desk:
            return ""
        return _short(self._desk.get(conversation_id).title)


def _short(title: str) -> str:
    """Return a title that is cut to _TITLE_LEN characters."""
    title = one_line(title, _TITLE_LEN + 1)
    return title if len(title) <= _TITLE_LEN else f"{title[:_TITLE_LEN].rstrip()}…"
