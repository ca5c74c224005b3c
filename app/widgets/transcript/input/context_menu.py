"""The context menu of a message in the transcript. Used on the main thread only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QPoint, QPointF
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractScrollArea, QWidget

from app.viewmodels.phases import Planned
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.menu import Menu, pop_up
from app.widgets.transcript.input.click_actions import ClickActions, PictureAction
from app.widgets.transcript.layout.placement import ScrollAnchor
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.layout.text_selection import TextSelection
from app.widgets.transcript.messages.places import MessageHit
from app.widgets.transcript.rows.row import RowAction
from app.words import answers, attachments, commands, transcript as words
from engine.types import Role


@dataclass(frozen=True, slots=True)
class ContextMenu:
    """Opens the menu of the message below the mouse.

    quote: puts a text into the composer
    """

    stack: MessageStack
    placement: ScrollAnchor
    actions: ClickActions
    selection: TextSelection
    quote: Callable[[str], object]

    def open(self, view: QAbstractScrollArea, at: QPoint) -> None:
        """Open the menu at a point of the screen, unless no message is there."""
        spot = self.placement.spot_at(QPointF(view.viewport().mapFromGlobal(at)))
        if spot is not None:
            hit = self.stack.layouts[spot.message].hit(spot.x, spot.y)
            pop_up(self._make(spot.message, hit, view), at)

    def _make(self, message: int, hit: MessageHit | None, parent: QWidget) -> Menu:
        """Return the menu: entries for the link, the formula and the selection, then the message.

        hit: link or button below the mouse
        """
        menu, actions, selected = Menu(parent), self.actions, self.selection.text
        if hit is not None and hit.at.target.action is RowAction.OPEN_LINK:
            link, name = hit.at.target.link, _link_text(hit)
            menu.addAction(words.OPEN_LINK, lambda: actions.open_link(link))
            menu.addAction(words.COPY_LINK, lambda: QGuiApplication.clipboard().setText(link))
            menu.addAction(words.COPY_LINK_TEXT, lambda: QGuiApplication.clipboard().setText(name))
            menu.addSeparator()
        if hit is not None and hit.at.target.action is RowAction.EXPLAIN and hit.at.target.link:
            _add_formula(menu, latex=hit.at.target.link, why=hit.tip)
        if hit is not None and hit.at.target.action is RowAction.OPEN_PICTURE:
            place = int(hit.at.target.link)
            _add_picture(menu, self.stack, actions, message, place)
        if selected:
            menu.addAction(commands.COPY, lambda: QGuiApplication.clipboard().setText(selected))
        menu.addAction(words.COPY_MESSAGE, lambda: actions.act(message, RowAction.COPY_MESSAGE))
        quoted = selected or self.stack.layouts[message].text
        menu.addAction(words.QUOTE, lambda: self.quote(quoted)).setEnabled(bool(quoted.strip()))
        _add_changes(menu, self.stack, actions, message)
        return menu


def _add_formula(menu: Menu, *, latex: str, why: str) -> None:
    """Add the entries for a formula: the reason why it is not drawn, if so, and its source."""
    if why:
        menu.addAction(why).setEnabled(False)
    menu.addAction(words.COPY_LATEX, lambda: QGuiApplication.clipboard().setText(latex))
    menu.addSeparator()


def _add_picture(
    menu: Menu, stack: MessageStack, actions: ClickActions, message: int, place: int
) -> None:
    """Add the entries for a picture."""
    for text, action in (
        (attachments.OPEN, PictureAction.OPEN),
        (attachments.COPY_PICTURE, PictureAction.COPY),
        (attachments.SAVE_PICTURE, PictureAction.SAVE),
    ):
        menu.addAction(text, partial(actions.act_on_picture, message, place, action))
    item = stack.layouts[message].item
    has_more = bool(item.text.strip()) or len(item.files) > 1
    menu.addAction(
        attachments.SEND_WITHOUT_PICTURE,
        partial(actions.act_on_picture, message, place, PictureAction.SEND_WITHOUT),
    ).setEnabled(has_more and _can_change(stack, item))
    menu.addSeparator()


def _can_change(stack: MessageStack, item: TranscriptItem) -> bool:
    """Return True unless an answer is being written, or the message is being edited."""
    is_answering = any(one.status is ItemStatus.STREAMING for one in stack.items[-1:])
    return not is_answering and not item.editing


def _add_changes(menu: Menu, stack: MessageStack, actions: ClickActions, message: int) -> None:
    """Add the entries that change the conversation. They are disabled while an answer is written.

    A fork changes nothing, so it is disabled only for the answer in progress.
    """
    item = stack.layouts[message].item
    is_user = item.role is Role.USER
    can_change = _can_change(stack, item)

    def add(text: str, action: RowAction, *, enabled: bool) -> None:
        menu.addAction(text, lambda: actions.act(message, action)).setEnabled(enabled)

    if item.is_column:
        return
    menu.addSeparator()
    if is_user:
        add(words.EDIT, RowAction.EDIT, enabled=can_change)
    else:
        add(commands.REGENERATE, RowAction.REGENERATE, enabled=can_change)
        add(words.EDIT_ANSWER, RowAction.EDIT_ANSWER, enabled=can_change)
        if item.can_continue:
            add(commands.CONTINUE, RowAction.CONTINUE, enabled=can_change)
    if not is_user and item.version.count > 1:
        add(answers.SHOW, RowAction.SIDE_BY_SIDE, enabled=True)
    add(words.FORK, RowAction.FORK, enabled=item.status is not ItemStatus.STREAMING)
    if not is_user:
        add(commands.WHY_READ, RowAction.WHY_READ, enabled=isinstance(item.phase, Planned))
    menu.addSeparator()
    delete = words.DELETE_FROM_HERE if is_user else words.DELETE_VERSION
    add(delete, RowAction.DELETE, enabled=item.can_delete)


def _link_text(hit: MessageHit) -> str:
    """Return the whole text of a link. A hit has only the part in the style below the mouse."""
    target = hit.at.target
    names = (one.name for one in hit.at.row.hits() if one.target == target)
    return next((name for name in names if hit.name in name), hit.name)
