"""The toast over the conversation: offers undo, reports finished answers and problems."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QWidget
from typing_extensions import override

from app.controllers.core import Core
from app.controllers.imports import ImportResult
from app.theme.tokens import Size, Space
from app.widgets.chat_pane import ChatPane
from app.widgets.dialogs import show_unreadable
from app.widgets.paper.printing import Printing
from app.widgets.toast import Toast
from app.words import commands, dialogs, exchange, window as words


class PaneToast(Toast):
    """A toast above the composer. Its parent is the window, and it overlaps the chat pane."""

    def __init__(self, pane: ChatPane, core: Core, window: QWidget) -> None:
        super().__init__(window)
        self._pane = pane
        self._window = window
        pane.said.connect(self.say)
        core.undo.undone.connect(self.withdraw)
        core.exports.saved.connect(self._on_saved)
        core.exports.exported.connect(self._on_exported)
        self._imports = core.imports
        core.imports.progressed.connect(self._on_import_progressed)
        core.imports.ended.connect(self._on_imported)
        core.chat.deleted.connect(self._on_deleted)
        core.presets.replaced.connect(self._on_preset_replaced)
        core.presets.deleted.connect(self._on_preset_deleted)

    def follow(self, printing: Printing) -> None:
        """Report the progress of printing with a button that cancels it, and its result."""
        cancel = printing.cancel

        def on_progressed(percent: int) -> None:
            self.offer(exchange.making_pages(percent), dialogs.CANCEL, cancel)

        printing.progressed.connect(on_progressed)
        printing.ended.connect(lambda: self.withdraw(cancel))
        printing.saved.connect(self._on_saved)

    def place(self) -> None:
        """Move the toast above the composer, or to the bottom of the pane in an empty chat."""
        pane = self._pane
        self.setFixedWidth(min(Size.INSPECTOR + Size.SIDEBAR, pane.width() - Space.XXL))
        height = max(self.minimumHeight(), self.heightForWidth(self.width()))
        self.resize(self.width(), height)
        is_empty = pane.question.isVisible()
        below = pane.rect().bottomLeft() if is_empty else pane.composer.geometry().topLeft()
        corner = pane.mapTo(self._window, below)
        left = corner.x() + (pane.width() - self.width()) // 2
        self.move(left, corner.y() - self.height() - Space.S)
        self.raise_()

    @override
    def say(self, text: str) -> None:
        super().say(text)
        self.place()

    @override
    def offer(self, text: str, word: str, act: Callable[[], object]) -> None:
        super().offer(text, word, act)
        self.place()

    def _on_saved(self, name: str) -> None:
        self.say(words.saved_as(name))

    def _on_exported(self, number: int, name: str) -> None:
        self.say(exchange.exported_chats(number, name))

    def _on_import_progressed(self, share: float) -> None:
        self.offer(exchange.importing(round(100 * share)), dialogs.CANCEL, self._imports.cancel)

    def _on_imported(self, result: ImportResult) -> None:
        summary = exchange.imported(result.added, result.grown, result.present)
        self.say(summary)
        if result.unreadable:
            show_unreadable(self._window, summary, result.unreadable)

    def _on_deleted(self, num_messages: int, undo: Callable[[], object]) -> None:
        self.offer(words.deleted_messages(num_messages), commands.UNDO, undo)

    def _on_preset_replaced(self, name: str, undo: Callable[[], object]) -> None:
        self.offer(words.replaced_preset(name), commands.UNDO, undo)

    def _on_preset_deleted(self, name: str, undo: Callable[[], object]) -> None:
        self.offer(words.deleted_preset(name), commands.UNDO, undo)
