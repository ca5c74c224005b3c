"""The menu commands for the chat on show, and for the step to another chat. Main thread."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QObject

from app.controllers.core import Core
from app.widgets.chat_pane import ChatPane
from app.widgets.commands import Actions, CommandId, connect_actions
from engine.types import ConversationId


class ChatCommands(QObject):
    """The commands. They act on the chat on show. Those without an effect are disabled."""

    def __init__(self, core: Core, pane: ChatPane, actions: Actions) -> None:
        super().__init__(pane)
        self._core = core
        self._pane = pane
        self._actions = actions
        self._connect_commands()
        library = core.library
        for changed in (
            library.current_changed,
            library.list_changed,
            library.deleted.changed,
            core.folders.changed,
        ):
            changed.connect(self._refresh)
        core.desk.changed.connect(self._on_chat_changed)
        core.turns.activity_changed.connect(self._on_chat_changed)
        core.chat.queue_changed.connect(self._on_chat_changed)
        pane.reading.changed.connect(self._refresh)
        self._refresh()

    def _connect_commands(self) -> None:
        core, find_bar, transcript = self._core, self._pane.find_bar, self._pane.transcript
        slots = {
            CommandId.NEW_CHAT: self._begin_chat,
            CommandId.ATTACH: self._pane.attaching.choose,
            CommandId.FIND: find_bar.begin_search,
            CommandId.FIND_NEXT: lambda: find_bar.step(1),
            CommandId.FIND_PREVIOUS: lambda: find_bar.step(-1),
            CommandId.STOP: self._pane.stop,
            CommandId.REGENERATE: partial(transcript.regenerate_last, 1),
            CommandId.CONTINUE: transcript.continue_last,
            CommandId.EDIT_LAST: self._pane.edit_last,
            CommandId.COPY_LAST: self._copy_last,
            CommandId.WHY_READ: transcript.explain_reading,
            CommandId.DELETE_LAST: transcript.delete_last,
            CommandId.PREVIOUS_VERSION: lambda: self._step_version(-1),
            CommandId.NEXT_VERSION: lambda: self._step_version(1),
            CommandId.SIDE_BY_SIDE: self._toggle_side_by_side,
            CommandId.KEEP_READY: self._toggle_ready,
            CommandId.NEXT_CHAT: lambda: core.organiser.select_neighbour(1),
            CommandId.PREVIOUS_CHAT: lambda: core.organiser.select_neighbour(-1),
            CommandId.BACK: lambda: core.history.step(-1),
            CommandId.FORWARD: lambda: core.history.step(1),
        }
        connect_actions(self._actions, slots)

    def _on_chat_changed(self, conversation_id: ConversationId) -> None:
        if conversation_id == self._core.library.current:
            self._refresh()

    def _refresh(self) -> None:
        """Enable the commands that would have an effect now, and disable the others."""
        core, transcript = self._core, self._pane.transcript
        answering = core.turns.live_in(core.library.current) is not None
        stopping = core.turns.is_stopping(core.library.current)
        queues = any(core.chat.queued(core.library.current))
        listed = core.library.current in core.library.listed
        for command, enabled in (
            (CommandId.STOP, answering),
            (CommandId.REGENERATE, transcript.has_messages and (stopping or not answering)),
            (CommandId.CONTINUE, transcript.can_continue and not answering),
            (CommandId.EDIT_LAST, queues or (transcript.has_messages and not answering)),
            (CommandId.COPY_LAST, transcript.has_messages),
            (CommandId.COPY_CHAT, transcript.has_messages),
            (CommandId.EXPORT, transcript.has_messages),
            (CommandId.SAVE_PDF, transcript.has_messages),
            (CommandId.PRINT, transcript.has_messages),
            (CommandId.EXPORT_ALL, len(core.library.listed) > 0),
            (CommandId.WHY_READ, transcript.can_explain),
            (CommandId.BRANCH_MAP, transcript.has_messages),
            (CommandId.DELETE_LAST, transcript.can_delete),
            (CommandId.FIND, transcript.has_messages),
            (CommandId.FIND_NEXT, transcript.has_messages),
            (CommandId.FIND_PREVIOUS, transcript.has_messages),
            (CommandId.PREVIOUS_VERSION, self._can_step_version(-1)),
            (CommandId.NEXT_VERSION, self._can_step_version(1)),
            (CommandId.SIDE_BY_SIDE, transcript.last_versions is not None),
            (CommandId.KEEP_READY, listed),
            (CommandId.RECENTLY_DELETED, bool(core.recently_deleted.items)),
            (CommandId.BACK, core.history.can_step(-1)),
            (CommandId.FORWARD, core.history.can_step(1)),
            (CommandId.NEXT_CHAT, len(core.library.listed) > 0),
            (CommandId.PREVIOUS_CHAT, len(core.library.listed) > 0),
        ):
            self._actions[command].setEnabled(enabled)
        kept_ready = core.library.current in core.library.listed.kept_ready
        self._actions[CommandId.KEEP_READY].setChecked(kept_ready)
        self._actions[CommandId.SIDE_BY_SIDE].setChecked(self._pane.reading.is_open)

    def _can_step_version(self, step: int) -> bool:
        reading = self._pane.reading
        if reading.is_open:
            return reading.can_step(step)
        return self._pane.transcript.has_neighbour(step)

    def _step_version(self, step: int) -> None:
        """Show the next or previous version. With columns, move to the next or previous one."""
        if self._pane.reading.is_open:
            self._pane.reading.step(step)
        else:
            self._pane.transcript.show_last_neighbour(step)

    def _copy_last(self) -> None:
        """Copy the answer in focus if several are side by side, else the last one."""
        if not self._pane.reading.copy_answer():
            self._pane.transcript.copy_last()

    def _toggle_side_by_side(self) -> None:
        answer = self._pane.transcript.last_versions
        if not self._pane.reading.close_answers() and answer is not None:
            self._pane.reading.show_answers(answer)
        self._refresh()

    def _begin_chat(self) -> None:
        self._pane.draft.flush()  # a typed draft is a change: the chat is not blank
        self._core.library.new_chat()
        self._pane.composer.edit.setFocus()

    def _toggle_ready(self) -> None:
        library = self._core.library
        self._core.organiser.keep_ready(
            library.current, library.current not in library.listed.kept_ready
        )
