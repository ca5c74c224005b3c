"""The toast over the conversation: offers undo, reports finished answers and problems."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import QEvent, QObject, QPoint
from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.controllers.core import Core
from app.controllers.folder_search import FoundModels
from app.controllers.imports import ImportResult
from app.conversation.text import file_label
from app.theme.tokens import Size, Space
from app.widgets.chat_pane import ChatPane
from app.widgets.dialogs import show_reasons, show_unreadable
from app.widgets.paper.printing import Printing
from app.widgets.toast import Toast
from app.words import (
    answers,
    attachments,
    dialogs,
    exchange,
    models,
    undo as undo_words,
    window as words,
)
from engine.types import ConversationId

_FILES: Final = "files"  # topic of the problems with files
_SHOWN_REASONS: Final = 3  # highest number of sentences about files in a toast


class PaneToast(Toast):
    """A toast above the composer. Its parent is the window, and it overlaps the chat pane."""

    def __init__(self, pane: ChatPane, core: Core, window: QWidget) -> None:
        super().__init__(window)
        self._pane = pane
        self._window = window
        self.presented.connect(self.place)
        self.ended.connect(lambda: pane.view.keep_free(0))
        for one in (pane.composer, pane.cards):
            one.installEventFilter(self)
        pane.said.connect(self.warn)
        self._library = core.library
        self._enter()
        core.library.current_changed.connect(self._enter)
        pane.attaching.said.connect(self._on_file_problem)
        pane.attaching.noted.connect(self._on_file_note)
        core.attachments.started.connect(partial(self.withdraw_topic, _FILES))
        core.attachments.refused.connect(self._on_files_refused)
        core.undo.undone.connect(self.withdraw)
        core.undoing.undone.connect(self._on_undone)
        core.undoing.redone.connect(self._on_redone)
        core.exports.saved.connect(self._on_saved)
        core.exports.exported.connect(self._on_exported)
        self._exports, self._imports = core.exports, core.imports
        core.exports.progressed.connect(self._on_export_progressed)
        core.exports.ended.connect(lambda: self.withdraw(core.exports.cancel))
        self._organiser = core.organiser
        core.imports.progressed.connect(self._on_import_progressed)
        core.imports.ended.connect(self._on_imported)
        core.folder_search.ended.connect(self._on_folder_searched)
        core.chat.deleted.connect(self._on_deleted)
        core.presets.replaced.connect(self._on_preset_replaced)
        core.presets.deleted.connect(self._on_preset_deleted)
        pane.reading.used.connect(self._on_answer_used)

    def follow(self, printing: Printing) -> None:
        """Report the progress of printing with a button that cancels it, and its result."""
        cancel = printing.cancel

        def on_progressed(percent: int) -> None:
            self.offer(exchange.making_pages(percent), dialogs.CANCEL, cancel)

        printing.progressed.connect(on_progressed)
        printing.ended.connect(lambda: self.withdraw(cancel))
        printing.saved.connect(self._on_saved)

    def place(self) -> None:
        """Move the toast above the composer and its cards, or to the bottom in an empty chat.

        The buttons of the cards stay free. In a low window the toast covers the upper cards.
        Without cards it covers the jump button, if that lies on the text, as a whole.
        """
        pane = self._pane
        self.setFixedWidth(min(Size.INSPECTOR + Size.SIDEBAR, pane.width() - Space.XXL))
        height = max(self.minimumHeight(), self.heightForWidth(self.width()))
        self.resize(self.width(), height)
        is_empty = pane.reading.isHidden()
        below = pane.height() if is_empty else pane.cards.y()
        gap = Space.S if is_empty else 0  # the cards and the composer have margins of their own
        corner = pane.mapTo(self._window, QPoint((pane.width() - self.width()) // 2, 0))
        self.move(corner.x(), corner.y() + max(0, below - self.height() - gap))
        self.raise_()
        pane.view.keep_free(self.height() + Space.S)

    def _on_undone(self, name: str) -> None:
        self.say_done(undo_words.undone(name))

    def _on_redone(self, name: str) -> None:
        self.say_done(undo_words.redone(name))

    def _on_saved(self, name: str) -> None:
        self.say(words.saved_as(name))

    def _on_exported(self, number: int, name: str) -> None:
        self.say(exchange.exported_chats(number, name))

    def _on_folder_searched(self, folder: Path, found: FoundModels) -> None:
        name = file_label(folder)
        text = models.found_in(found.number, found.num_broken, name, found.cause)
        report = self.say if found.number > found.num_broken else self.warn
        report(text)

    def _on_export_progressed(self, share: float) -> None:
        self.offer(exchange.exporting(round(100 * share)), dialogs.CANCEL, self._exports.cancel)

    def _on_import_progressed(self, share: float) -> None:
        self.offer(exchange.importing(round(100 * share)), dialogs.CANCEL, self._imports.cancel)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow the composer and the cards, which change while a problem stays on show."""
        if event.type() in (QEvent.Type.Move, QEvent.Type.Resize) and self.isVisible():
            self.place()
        return super().eventFilter(watched, event)

    def _enter(self) -> None:
        self.enter(self._library.current)

    def _on_file_problem(self, chat: ConversationId, text: str) -> None:
        self.warn(text, place=chat)

    def _on_file_note(self, text: str) -> None:
        self.say(text, place=self._library.current)

    def _on_files_refused(self, chat: ConversationId, sentences: Sequence[str]) -> None:
        """Show in a chat why files were not attached. A box lists the reasons if there are many."""
        shown = "\n".join(sentences[:_SHOWN_REASONS])
        num_more = len(sentences) - _SHOWN_REASONS
        if num_more <= 0:
            self.warn(shown, _FILES, place=chat)
            return
        text = f"{shown}\n{attachments.more_reasons(num_more)}"
        show_all = partial(show_reasons, self._window, sentences)
        self.offer_details(text, words.SHOW_ALL, show_all, _FILES, place=chat)

    def _on_imported(self, result: ImportResult) -> None:
        self.withdraw(self._imports.cancel)
        has_any = result.changed or result.present
        summary = exchange.imported(result.added, result.grown, result.present) if has_any else ""
        select = partial(self._organiser.select_first, result.changed)
        show = select if result.changed else None
        if result.unreadable:
            show_unreadable(self._window, summary, result.unreadable, show)
        elif show is not None:
            self.offer(summary, words.SHOW, show)
        elif summary:
            self.say(summary)

    def _on_deleted(self, num_messages: int, undo: Callable[[], object]) -> None:
        self.offer_undo(words.deleted_messages(num_messages), undo)

    def _on_preset_replaced(self, name: str, undo: Callable[[], object]) -> None:
        self.offer_undo(words.replaced_preset(name), undo)

    def _on_preset_deleted(self, name: str, undo: Callable[[], object]) -> None:
        self.offer_undo(words.deleted_preset(name), undo)

    def _on_answer_used(self, number: int, undo: Callable[[], object]) -> None:
        self.offer_undo(answers.used(number), undo)
