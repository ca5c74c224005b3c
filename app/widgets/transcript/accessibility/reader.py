"""Content of the transcript for screen readers: names, text, actions and screen positions.

Used on the main thread only. The accessible interfaces (nodes.py, canvas.py) call `MessageReader`
with the index of a message. `MessageReader` reads the message from its layout. Presses of buttons
are handled by the same code as mouse clicks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, QRectF, QSize
from PySide6.QtWidgets import QWidget

from app.viewmodels.phases import Planned
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.transcript.input.click_actions import ClickActions
from app.widgets.transcript.input.pointer import Click
from app.widgets.transcript.input.target_focus import TargetFocus
from app.widgets.transcript.layout.placement import ScrollAnchor
from app.widgets.transcript.layout.stack import MessageStack
from app.widgets.transcript.messages.places import MessageHit
from app.widgets.transcript.rows.actions import ActionButton, answer_parts, user_parts
from app.widgets.transcript.rows.notes import cut_link
from app.widgets.transcript.rows.row import RowAction
from app.words import commands, problems, transcript as words
from engine.types import Role

_SPEAKERS = {Role.USER: words.YOU, Role.ASSISTANT: words.ASSISTANT, Role.SYSTEM: words.SYSTEM}
_STATUS_WORDS = {
    ItemStatus.STREAMING: words.BEING_WRITTEN,
    ItemStatus.STOPPED: words.WAS_STOPPED,
    ItemStatus.FAILED: words.HAS_FAILED,
    ItemStatus.UNANSWERED: words.NOT_ANSWERED,
}


@dataclass(frozen=True, slots=True)
class ReadablePart:
    """A part of a message: a link, a button, or a code block with its buttons."""

    name: str
    rect: QRectF  # rectangle in pixels, relative to the top left of the message
    hit: MessageHit | None = None  # link or button to press; None for a code block
    inner: tuple[ReadablePart, ...] = ()  # buttons of a code block; empty for a link or a button


class MessageReader:
    """Describes messages for screen readers, and carries out their actions.

    Messages are addressed by their index in the stack. Rectangles are in screen coordinates.
    """

    def __init__(
        self,
        stack: MessageStack,
        placement: ScrollAnchor,
        viewport: QWidget,
        click_actions: ClickActions,
        focus: TargetFocus,
        reveal: Callable[[int], object],
    ) -> None:
        self.reveal = reveal  # function that scrolls the view to a message
        self._click_actions = click_actions
        self._focus = focus
        self._stack = stack
        self._placement = placement
        self._viewport = viewport

    def __len__(self) -> int:
        return len(self._stack)

    def name(self, index: int) -> str:
        """Return speaker, number, version and status of a message: "You, message 3 of 8"."""
        item = self._stack.items[index]
        parts = [_SPEAKERS[item.role], words.message_spoken(number=index + 1, count=len(self))]
        if item.version.count > 1:
            parts.append(words.version_spoken(number=item.version.number, count=item.version.count))
        if item.status is not ItemStatus.COMPLETE:
            parts.append(_STATUS_WORDS[item.status])
        return ", ".join(parts)

    def text(self, index: int) -> str:
        """Return the text of a message and, if its answer failed, the problem."""
        layout = self._stack.layouts[index]
        problem = "" if layout.item.problem is None else str(layout.item.problem)
        return "\n".join(part for part in (layout.text, problem) if part)

    def description(self, index: int) -> str:
        """Return the text and the state line of a message.

        The state line tells where the context of an answer came from.
        """
        line = self._stack.items[index].state_line
        return "\n".join(part for part in (self.text(index), line and line.explained) if part)

    def actions(self, index: int) -> dict[str, RowAction]:
        """Return the actions of a message by name. A button's tooltip is the name of its action."""
        return _actions(self._stack.items[index])

    def act(self, index: int, action: RowAction) -> None:
        self._click_actions.act(index, action)

    def parts(self, index: int) -> list[ReadablePart]:
        """Return the links, buttons and code blocks of a message.

        Rows that are not measured yet are skipped. Visible rows are always measured, so the result
        includes all visible links and buttons.
        """
        parts: list[ReadablePart] = []
        for row in self._stack.layouts[index].clickable():
            inner = tuple(ReadablePart(hit.name, hit.rect, hit) for hit in row.hits)
            group = row.row.group
            parts += [ReadablePart(group, row.rect, inner=inner)] if group else inner
        return parts

    def press(self, index: int, hit: MessageHit) -> None:
        self._click_actions.carry_out(Click(index, hit.at))

    @property
    def focused(self) -> int | None:
        """Index of the message that contains the focused link or button, or None."""
        return self._focus.message

    def is_focused(self, index: int, part: ReadablePart) -> bool:
        return part.hit is not None and (self._focus.message, self._focus.hit) == (index, part.hit)

    def rect(self, index: int, inner: QRectF | None = None) -> QRect:
        """Return the screen rectangle of a message, or of the rectangle `inner` in the message."""
        layout = self._stack.layouts[index]
        rect = QRect(QPoint(0, 0), QSize(layout.width, layout.height))
        y = self._stack.top(index) - self._placement.top
        corner = self._viewport.mapToGlobal(QPoint(self._placement.column_left, y))
        return (rect if inner is None else inner.toRect()).translated(corner)

    @property
    def shown(self) -> QRect:
        """The rectangle of the viewport in screen coordinates."""
        return QRect(self._viewport.mapToGlobal(QPoint(0, 0)), self._viewport.size())

    def at(self, x: int, y: int) -> int:
        """Return the index of the message nearest to a point of the screen."""
        local = self._viewport.mapFromGlobal(QPoint(x, y))
        return self._stack.at(local.y() + self._placement.top)


def _actions(item: TranscriptItem) -> dict[str, RowAction]:
    if item.status is ItemStatus.STREAMING:
        return {commands.STOP: RowAction.STOP}
    if item.editing:
        return {}
    parts = user_parts(item) if item.role is Role.USER else answer_parts(item)
    buttons = (part for part in parts if isinstance(part, ActionButton) and part.enabled)
    actions = {button.tip: button.action for button in buttons}
    if (link := cut_link(item)) is not None:
        actions[link.label] = link.action
    if isinstance(item.phase, Planned):
        actions[commands.WHY_READ] = RowAction.WHY_READ
    if item.problem is not None:
        actions[words.RETRY] = RowAction.RETRY
        if item.problem.details:
            actions[problems.COPY_DETAILS] = RowAction.COPY_DETAILS
    return actions
