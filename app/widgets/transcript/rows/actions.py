"""The row of small buttons under a message, for example Copy, Regenerate and Edit.

Under an answer, the row also shows figures, for example the tokens per second. Used on the main
thread only. The buttons are painted and are not widgets, because a chat may have thousands of
messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from PySide6.QtCore import QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QFontMetricsF
from typing_extensions import override

from app.theme.icons import Icon
from app.theme.tokens import Radius, Size, Space, Type
from app.viewmodels import figures
from app.viewmodels.attachments import short_name
from app.viewmodels.transcript import ReplyFigures, TranscriptItem, Version
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.row import Hit, Paint, RowAction, Target, TranscriptRow
from app.words import answers, commands, transcript as words, units

_GLYPH = 16
_BUTTON = Size.CONTROL
_DOT = " · "  # between two figures


class Side(Enum):
    """The side of the column, left or right, on which the row of buttons is placed."""

    LEFT = auto()
    RIGHT = auto()


@dataclass(frozen=True, slots=True)
class ActionButton:
    """An icon button."""

    action: RowAction
    icon: Icon
    tip: str  # tooltip, also used as the name for screen readers
    enabled: bool = True  # False if the button is painted grey and ignores clicks


@dataclass(frozen=True, slots=True)
class Note:
    """A small text between or after the buttons, with an optional tooltip."""

    text: str
    tip: str = ""
    stays: bool = False  # True: painted while the buttons are hidden, too


@dataclass(frozen=True, slots=True)
class _Placed:
    """A button or a text, and its rectangle in the coordinates of the row."""

    part: ActionButton | Note
    rect: QRectF


_SIDE_BY_SIDE = ActionButton(RowAction.SIDE_BY_SIDE, Icon.COLUMNS, answers.SHOW)


class ActionsRow(TranscriptRow):
    """A row of buttons and small texts. The row keeps its height while its content is hidden."""

    def __init__(self, look: Look, parts: tuple[ActionButton | Note, ...], side: Side) -> None:
        self._look = look
        self._parts = parts
        self._side = side
        self._placed: list[_Placed] = []

    @property
    def left(self) -> float:
        """The left edge of the first button or text. 0 if the row is empty or not measured."""
        return self._placed[0].rect.left() if self._placed else 0.0

    @override
    def measure(self, width: int) -> int:
        button = self._button_width(width)
        placed = list(self._place(button))
        # Align the icons, not their larger click areas, with the edge of the column. A text has
        # half of Space.S at each side.
        starts_with_text = self._side is Side.LEFT and placed and isinstance(placed[0].part, Note)
        beside = round((button - self._look.px(_GLYPH)) / 2)
        inset = self._look.px(Space.S / 2) if starts_with_text else beside
        if placed:
            placed[-1] = self._cut(placed[-1], width + inset)
        used = placed[-1].rect.right() if placed else 0
        shift = -inset if self._side is Side.LEFT else width - used + inset
        self._placed = [_Placed(one.part, one.rect.translated(shift, 0)) for one in placed]
        return self._look.px(_BUTTON)

    @override
    def paint(self, paint: Paint) -> None:
        painter = paint.painter
        painter.setFont(self._look.face(Type.SMALL).font)
        for one in self._placed:
            if not paint.actions_shown and not _stays(one.part):
                continue
            if isinstance(one.part, ActionButton):
                self._paint_button(paint, one.part, one.rect)
            else:
                painter.setPen(QColor(self._look.colors.tertiary))
                painter.drawText(one.rect, Qt.AlignmentFlag.AlignCenter, one.part.text)

    @override
    def hits(self) -> list[Hit]:
        targets = [(_target(one.part), one) for one in self._placed]
        return [
            Hit(target, one.rect, one.part.tip, one.part.tip)
            for target, one in targets
            if target is not None
        ]

    def _paint_button(self, paint: Paint, button: ActionButton, rect: QRectF) -> None:
        colors, painter = self._look.colors, paint.painter
        target = Target(button.action)
        ink = colors.tertiary
        if paint.hovered == target:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(QColor(colors.hover))
            painter.drawRoundedRect(rect, Radius.BUTTON, Radius.BUTTON)
            ink = colors.text
        if not button.enabled:
            ink = colors.disabled
        size = self._look.px(_GLYPH)
        glyph = QRectF(0, 0, size, size)
        glyph.moveCenter(rect.center())
        icon = Icon.CHECK if paint.confirmed == target else button.icon
        self._look.icons.paint(painter, icon, ink, glyph)

    def _button_width(self, width: int) -> float:
        """Return the width of each button. It is smaller if the buttons do not fit otherwise.

        A text at the end is not counted: it is shortened. The icons of the first and the last
        button stand at the edges.
        """
        glyph, usual = self._look.px(_GLYPH), self._look.px(_BUTTON)
        num_buttons = sum(isinstance(part, ActionButton) for part in self._parts)
        texts = sum(self._text_width(part) for part in self._parts[:-1] if isinstance(part, Note))
        return max(glyph, min(usual, (width - texts - glyph) / max(1, num_buttons - 1)))

    def _text_width(self, note: Note) -> float:
        metrics = QFontMetricsF(self._look.face(Type.SMALL).font)
        return metrics.horizontalAdvance(note.text) + self._look.px(Space.S)

    def _place(self, button_width: float) -> Iterator[_Placed]:
        height, x = self._look.px(_BUTTON), 0.0
        for part in self._parts:
            width = button_width if isinstance(part, ActionButton) else self._text_width(part)
            yield _Placed(part, QRectF(x, 0, width, height))
            x += width

    def _cut(self, last: _Placed, width: float) -> _Placed:
        """Return the last part. If it is a text that ends after `width`, shorten the text."""
        part, rect = last.part, last.rect
        if isinstance(part, ActionButton) or rect.right() <= width:
            return last
        metrics = QFontMetricsF(self._look.face(Type.SMALL).font)
        room = max(0.0, width - rect.left()) - self._look.px(Space.S)
        text = part.text
        while _DOT in text and metrics.horizontalAdvance(text) > room:
            text = text.rpartition(_DOT)[0]  # without its last figure
        text = metrics.elidedText(text, Qt.TextElideMode.ElideRight, room)
        # paint() centres the text, so the part gets the width of the shortened text.
        taken = max(0.0, min(room, metrics.horizontalAdvance(text)) + self._look.px(Space.S))
        rect = QRectF(rect.topLeft(), QSizeF(taken, rect.height()))
        return _Placed(Note(text, f"{part.text}\n{part.tip}".strip()), rect)


def _target(part: ActionButton | Note) -> Target | None:
    if isinstance(part, Note):
        return Target(RowAction.EXPLAIN) if part.tip else None
    return Target(part.action) if part.enabled else None


def _stays(part: ActionButton | Note) -> bool:
    return isinstance(part, Note) and part.stays


def answer_actions(look: Look, item: TranscriptItem) -> ActionsRow:
    """Return the row under a finished answer: its buttons and its figures.

    If several models answered in the chat, the row begins with the name of the model.
    """
    parts = answer_parts(item)
    if item.figures is not None:
        if item.figures.names_model:
            name = item.figures.model_name
            parts = (Note(short_name(name), name, stays=True), *parts)
        tip = "" if item.state_line is None else item.state_line.explained
        parts = (*parts, Note(figures_text(item.figures), tip))
    return ActionsRow(look, parts, Side.LEFT)


def user_actions(look: Look, item: TranscriptItem) -> ActionsRow:
    """Return the row of buttons of a user's message."""
    return ActionsRow(look, user_parts(item), Side.RIGHT)


def answer_parts(item: TranscriptItem) -> tuple[ActionButton | Note, ...]:
    """Return the buttons of a finished answer.

    Those of versions are at the end, so that the others stay in place when a second version
    appears.
    """
    copy = ActionButton(RowAction.COPY_MESSAGE, Icon.COPY, commands.COPY)
    if item.is_column:
        return (copy,)
    return (
        copy,
        ActionButton(RowAction.REGENERATE, Icon.REGENERATE, commands.REGENERATE),
        ActionButton(RowAction.EDIT_ANSWER, Icon.EDIT, words.EDIT_ANSWER),
        ActionButton(RowAction.FORK, Icon.FORK, words.FORK),
        *([_deleting(item, words.DELETE_VERSION)] if item.version.count > 1 else ()),
        *version_parts(item.version),
        *([_SIDE_BY_SIDE] if item.version.count > 1 else ()),
    )


def user_parts(item: TranscriptItem) -> tuple[ActionButton | Note, ...]:
    """Return the buttons of a user's message."""
    return (
        *version_parts(item.version),
        ActionButton(RowAction.EDIT, Icon.EDIT, words.EDIT),
        ActionButton(RowAction.COPY_MESSAGE, Icon.COPY, commands.COPY),
        ActionButton(RowAction.FORK, Icon.FORK, words.FORK),
        _deleting(item, words.DELETE_FROM_HERE),
    )


def _deleting(item: TranscriptItem, tip: str) -> ActionButton:
    """Return the Delete button.

    While an answer is being written, the button is disabled. It is not removed, because the other
    buttons would move.
    """
    return ActionButton(RowAction.DELETE, Icon.TRASH, tip, item.can_delete)


def no_actions(look: Look) -> ActionsRow:
    """Return an empty row that is as high as a row of buttons."""
    return ActionsRow(look, (), Side.LEFT)


def version_parts(version: Version) -> tuple[ActionButton | Note, ...]:
    """Return the buttons that switch to another version of a message, and the version number.

    Return an empty tuple if the message has only one version.
    """
    number, count = version.number, version.count
    if count < 2:
        return ()
    back = ActionButton(
        RowAction.PREVIOUS_VERSION, Icon.CHEVRON_LEFT, commands.PREVIOUS_VERSION, number > 1
    )
    on = ActionButton(
        RowAction.NEXT_VERSION, Icon.CHEVRON_RIGHT, commands.NEXT_VERSION, number < count
    )
    return (back, Note(f"{number} / {count}"), on)


def figures_text(reply: ReplyFigures) -> str:
    """Return the figures of a reply: speed, time to the first word, number of tokens.

    The text begins with the name of the model, unless the name is on show at any time.
    """
    has_name = reply.model_name and not reply.names_model
    parts: list[str] = [reply.model_name] if has_name else []
    if reply.decode_tok_s is not None:
        digits = 0 if reply.decode_tok_s >= 10 else 1
        parts.append(units.tokens_per_second(f"{reply.decode_tok_s:.{digits}f}"))
    if reply.first_token_s is not None:
        seconds = reply.first_token_s
        # From 1 s on the line above the answer can have the same time, in the same form.
        is_long = seconds >= 1
        time = figures.milliseconds(seconds * 1e3) if is_long else units.seconds(f"{seconds:.2f}")
        parts.append(words.first_word(time))
    if reply.num_tokens is not None:
        tokens = units.tokens(reply.num_tokens)
        is_whole = reply.num_last is None
        parts.append(tokens if is_whole else words.last_measured(f"{reply.num_last:,}", tokens))
    return _DOT.join(parts)
