"""Carry out clicks on buttons and links of the transcript. Used on the main thread only.

Copying, opening links, folding and wrapping are done here. All other actions, such as regenerate,
edit and save, are emitted as signals for a controller.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QGuiApplication

from app.widgets.transcript.input.pointer import Click, Pointer
from app.widgets.transcript.layout.placement import Placement
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.rows.row import RowAction

LINK_SCHEMES = frozenset({"http", "https", "mailto"})


class Clicks(QObject):
    """Carries out the clicks that the pointer reports, and the actions of screen readers."""

    requested = Signal(str, object)  # key of the message, RowAction for the chat controller
    save_requested = Signal(str, str)  # suggested file name, text
    folded = Signal()  # rows have changed their heights: lay out again

    def __init__(
        self,
        stack: MessageStack,
        placement: Placement,
        pointer: Pointer,
        open_url: Callable[[QUrl], object],
    ) -> None:
        super().__init__(pointer)
        self._stack = stack
        self._placement = placement
        self._pointer = pointer
        self._open_url = open_url
        pointer.clicked.connect(self.carry_out)

    def act(self, message: int, action: RowAction) -> None:
        """Carry out an action of a message that a screen reader has requested."""
        layout = self._stack.layouts[message]
        if action is RowAction.COPY_MESSAGE:
            _copy(layout.text)
        elif action is RowAction.COPY_DETAILS:
            _copy(layout.details)
        else:
            self.requested.emit(layout.item.key, action)

    def carry_out(self, click: Click) -> None:
        """Carry out the action of a target that was clicked."""
        layout = self._stack.layouts[click.message]
        target = click.at.target
        match target.action:
            case RowAction.COPY_MESSAGE:
                self._copy(layout.text, click)
            case RowAction.COPY_CODE:
                self._copy(click.at.row.text, click)
            case RowAction.COPY_DETAILS:
                self._copy(layout.details, click)
            case RowAction.SAVE_CODE:
                self.save_requested.emit(click.at.row.file_name, click.at.row.text)
            case RowAction.OPEN_LINK:
                self._open_link(target.link)
            case RowAction.TOGGLE_THINKING | RowAction.TOGGLE_FOLD | RowAction.TOGGLE_DETAILS:
                self._toggle(click)
            case RowAction.TOGGLE_WRAP:
                self._wrap(click)
            case RowAction.EXPLAIN:
                pass  # a click does nothing: the explanation is a tooltip
            case asked:
                self.requested.emit(layout.item.key, asked)

    def _copy(self, text: str, click: Click) -> None:
        _copy(text)
        self._pointer.confirm(click.at)

    def _open_link(self, link: str) -> None:
        url = QUrl(link)
        if url.scheme().lower() in LINK_SCHEMES:
            self._open_url(url)

    def _wrap(self, click: Click) -> None:
        """Switch line wrapping of a code block.

        The clicked header does not move: the top of the view stays in place, and only rows below
        the header change their heights.
        """
        self._placement.hold()
        click.at.row.toggle_wrap()
        self._stack.remeasure()
        self.folded.emit()

    def _toggle(self, click: Click) -> None:
        """Fold or unfold a part of a message, and keep the clicked row in place."""
        layout = self._stack.layouts[click.message]
        self._placement.hold()
        self._pointer.select(None)
        layout.toggle(click.at.target.action)
        self._stack.mark_unsettled()
        self.folded.emit()


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)
