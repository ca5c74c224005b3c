"""Carry out clicks on buttons and links of the transcript. Used on the main thread only.

This module copies text, opens links, folds messages and wraps code. For any other action, such as
regenerate, edit or save, it emits a signal to a controller.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto

from PySide6.QtCore import QObject, QUrl, Signal
from PySide6.QtGui import QGuiApplication

from app.widgets.transcript.input.pointer import Click, Pointer
from app.widgets.transcript.layout.placement import ScrollAnchor
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.layout.text_selection import TextSelection
from app.widgets.transcript.rows.row import RowAction

LINK_SCHEMES = frozenset({"http", "https", "mailto"})


class PictureAction(Enum):
    """The actions on a picture of a message."""

    OPEN = auto()
    COPY = auto()
    SAVE = auto()
    SEND_WITHOUT = auto()  # send the message again without the picture


class ClickActions(QObject):
    """Carries out the clicks reported by `Pointer` and the actions requested by screen readers."""

    requested = Signal(str, object)  # arguments: key of the message, RowAction
    # arguments: key of the message, place of one of its attached files
    file_requested = Signal(str, int)
    # arguments: key of the message, place of a picture among its attachments, PictureAction
    picture_requested = Signal(str, int, object)
    # arguments: key of an answer, place of one of the documents that it quotes
    quote_requested = Signal(str, int)
    save_requested = Signal(str, str)  # arguments: suggested file name, text to save
    folded = Signal()  # the heights of rows have changed, so the view must lay them out again

    def __init__(
        self,
        stack: MessageStack,
        placement: ScrollAnchor,
        pointer: Pointer,
        selection: TextSelection,
        open_url: Callable[[QUrl], object],
    ) -> None:
        super().__init__(pointer)
        self._stack = stack
        self._placement = placement
        self._pointer = pointer
        self._selection = selection
        self._open_url = open_url
        pointer.clicked.connect(self.carry_out)

    def act(self, message: int, action: RowAction) -> None:
        """Carry out an action that a screen reader requested for a message."""
        layout = self._stack.layouts[message]
        if action is RowAction.COPY_MESSAGE:
            _copy(layout.text)
        elif action is RowAction.COPY_DETAILS:
            _copy(layout.details)
        else:
            self.requested.emit(layout.item.key, action)

    def act_on_picture(self, message: int, place: int, action: PictureAction) -> None:
        """Request an action on a picture of a message."""
        self.picture_requested.emit(self._stack.layouts[message].item.key, place, action)

    def carry_out(self, click: Click) -> None:
        """Carry out the action of the clicked link or button."""
        layout = self._stack.layouts[click.message]
        target = click.at.target
        match target.action:
            case RowAction.COPY_MESSAGE | RowAction.COPY_DETAILS:
                is_text = target.action is RowAction.COPY_MESSAGE
                self._copy(layout.text if is_text else layout.details, click)
            case RowAction.COPY_CODE:
                self._copy(click.at.row.text, click)
            case RowAction.SAVE_CODE:
                self.save_requested.emit(click.at.row.file_name, click.at.row.text)
            case RowAction.OPEN_LINK:
                self.open_link(target.link)
            case RowAction.OPEN_FILE | RowAction.OPEN_PICTURE:
                self.file_requested.emit(layout.item.key, int(target.link))
            case RowAction.OPEN_QUOTE:
                self.quote_requested.emit(layout.item.key, int(target.link))
            case (
                RowAction.TOGGLE_THINKING
                | RowAction.TOGGLE_FOLD
                | RowAction.TOGGLE_DETAILS
                | RowAction.TOGGLE_DOCUMENTS
            ):
                self._toggle(click)
            case RowAction.TOGGLE_WRAP:
                self._wrap(click)
            case RowAction.EXPLAIN:
                pass  # nothing to do: a target with this action only has a tooltip
            case asked:
                self.requested.emit(layout.item.key, asked)

    def _copy(self, text: str, click: Click) -> None:
        _copy(text)
        self._pointer.confirm(click.at)

    def open_link(self, link: str) -> None:
        """Open a link, unless its scheme is not in LINK_SCHEMES."""
        url = QUrl(link)
        if url.scheme().lower() in LINK_SCHEMES:
            self._open_url(url)

    def _wrap(self, click: Click) -> None:
        """Turn line wrapping of a code block on or off.

        The clicked header does not move: the text at the top of the view keeps its position, and
        only the content below the header changes its height.
        """
        self._placement.hold()
        click.at.row.toggle_wrap()
        self._stack.remeasure()
        self.folded.emit()

    def _toggle(self, click: Click) -> None:
        """Fold or unfold a part of a message. The clicked row does not move."""
        layout = self._stack.layouts[click.message]
        self._placement.hold()
        self._selection.select(None)
        layout.toggle(click.at.target.action)
        self._stack.mark_unsettled()
        self.folded.emit()


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)
