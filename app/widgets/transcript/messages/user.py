"""A message of the user: a bubble that folds when long, or the editor in its place. Main thread."""

from __future__ import annotations

import re

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor
from typing_extensions import override

from app.theme.tokens import Radius, Size, Space
from app.viewmodels.find import ROW_END
from app.viewmodels.markdown import normalized
from app.viewmodels.state_line import StateLine
from app.viewmodels.transcript import TranscriptItem
from app.widgets.transcript.messages.body import (
    Kit,
    MarkdownRows,
    RowsFrom,
    estimate_text,
    plain_rows,
)
from app.widgets.transcript.messages.message import MessageLayout
from app.widgets.transcript.messages.places import BODY, MessagePaint
from app.widgets.transcript.rows.actions import user_actions
from app.widgets.transcript.rows.gap import GapRow
from app.widgets.transcript.rows.look import Look
from app.widgets.transcript.rows.notes import LinkRow
from app.widgets.transcript.rows.row import Paint, RowAction, Target, TextRow, TranscriptRow
from app.words import transcript as words

FOLD_LINES = 12
SHARE = 0.78  # of the column that a bubble may fill
SHRINK_ROWS = 40  # bubbles with more rows are as wide as allowed
_FOLD_TEXT = 4_000  # characters that surely fill the lines of a folded bubble
_MARKDOWN = re.compile(r"^ {0,3}(?:```|~~~|[-*+] |\d{1,9}[.)] )", re.MULTILINE)
_FOLD = Target(RowAction.TOGGLE_FOLD)


class EditorRow(TranscriptRow):
    """The place of the editor, which is a widget."""

    def __init__(self, size: QSize) -> None:
        self.natural_width = size.width()
        self._size = size

    @override
    def measure(self, width: int) -> int:
        return self._size.height()

    @override
    def paint(self, paint: Paint) -> None:
        """Leave it to the widget."""


class UserLayout(MessageLayout):
    """The rows of a user's message."""

    space_below = Size.MESSAGE_GAP

    def __init__(self, kit: Kit, item: TranscriptItem) -> None:
        super().__init__(kit, item)
        self._text = normalized(item.text)
        self._is_unfolded = False
        self._is_long = False
        self._markdown: MarkdownRows | None = None
        self._wrapped: set[int] = set()
        self._plain: list[TranscriptRow] = []
        self._num_text = 0
        self._num_bubble = 0  # rows: text and fold
        self._editor = EditorRow(QSize(0, 0))
        self._gap_row: GapRow | None = None
        self._line: StateLine | None = None

    def set_line(self, line: StateLine | None) -> None:
        """Say where the context of the answer came from, in the gap above it."""
        if line != self._line:
            self._line = line
            self._change()

    @property
    def editor_rect(self) -> QRectF | None:
        """Where the editor belongs, in message coordinates; None if the message is not edited."""
        if not self.item.editing or not self.rows:
            return None
        width = int(self._editor.natural_width)
        return QRectF(self.width - width, 0, width, self.rows[0].height)

    def set_editor_size(self, size: QSize) -> None:
        """Reserve so much for the editor."""
        self._editor = EditorRow(size)
        self._dirty = True

    @property
    @override
    def text(self) -> str:
        return self.item.text

    @override
    def toggle(self, action: RowAction) -> None:
        self._is_unfolded = not self._is_unfolded
        self._drop_text()

    @override
    def _read_text(self) -> str | None:
        """Plain text is read as it was written, unfolded once something is found in it."""
        if self.item.editing:
            return ""
        if not _MARKDOWN.search(self._text):
            return self._text.replace("\n", ROW_END)
        is_folded = self._is_long and not self._is_unfolded
        return None if is_folded else super()._read_text()

    @override
    def show_all(self) -> None:
        self._refresh()
        if self._is_long and not self._is_unfolded:
            self.toggle(RowAction.TOGGLE_FOLD)

    @override
    def update(self, item: TranscriptItem) -> None:
        if item.text != self.item.text:
            self._text = normalized(item.text)
            self._drop_text()
        super().update(item)

    @override
    def relook(self) -> None:
        self._drop_text()
        self._gap_row = None
        super().relook()

    @override
    def resize(self, width: int) -> None:
        if width != self.width and not self._is_unfolded:
            self._drop_text()  # how many lines there are, and so the fold, follow from the width
        super().resize(width)

    @classmethod
    @override
    def estimate(cls, look: Look, item: TranscriptItem, width: int) -> int:
        lines = FOLD_LINES * look.body.line
        text = estimate_text(look, item.text[:_FOLD_TEXT], max(1, int(width * SHARE)))
        return min(text, lines) + look.px(2 * Space.M + Size.MESSAGE_GAP)

    @property
    @override
    def can_release(self) -> bool:
        return not self.item.editing

    @property
    def text_width(self) -> int:
        """Return the width of text in the widest bubble."""
        return max(1, int(self.width * SHARE) - 2 * self._kit.look.px(Space.L))

    def _drop_text(self) -> None:
        self._forget_text()
        self._change()

    @override
    def _forget_text(self) -> None:
        self._markdown = None
        self._plain = []

    @override
    def _make_rows(self) -> RowsFrom:
        look = self._kit.look
        below = self._gap_row = self._gap_row or GapRow(look)
        if self.item.editing:
            self._num_text = self._num_bubble = 0
            below.show(None, self._line)
            below.gap = 0
            return RowsFrom(0, [self._editor, below])
        texts = self._text_rows(self._text) if self._is_unfolded else self._folded_rows()
        self._num_text = texts.first + len(texts.rows)
        fold = self._fold_rows()
        self._num_bubble = self._num_text + len(fold)
        below.show(user_actions(look, self.item), self._line)
        below.gap = look.px(Space.M)
        bubble = [*texts.rows, *fold]
        if texts.first == 0 and bubble:
            bubble[0].gap = look.px(Space.M)
        return RowsFrom(texts.first, [*bubble, below])

    def _text_rows(self, text: str) -> RowsFrom:
        if self._markdown is None and not self._plain:
            if _MARKDOWN.search(text):
                self._markdown = MarkdownRows(self._kit, self._wrapped)
                self._markdown.append_text(text)
                self._markdown.close()
                self._markdown.feed()
            else:
                self._plain = plain_rows(self._kit.look, text, 0)
        if self._markdown is not None:
            return self._markdown.take_rows()
        return RowsFrom(0, self._plain)

    def _folded_rows(self) -> RowsFrom:
        """Return the rows of the first lines, and note whether there are more."""
        head = "\n".join(self._text[:_FOLD_TEXT].split("\n", FOLD_LINES)[:FOLD_LINES])
        self._is_long = len(head) < len(self._text)
        rows: list[TranscriptRow] = []
        room = FOLD_LINES
        self._forget_text()
        for row in self._text_rows(head).rows:
            if room <= 0:
                self._is_long = True
                break
            height = row.measure(self.text_width)
            if row.num_lines > room and isinstance(row, TextRow):
                row.max_lines = room
                row.release()
                height = row.measure(self.text_width)
                self._is_long = True
            row.width, row.height = self.text_width, height
            room -= row.num_lines
            rows.append(row)
        return RowsFrom(0, rows)

    def _fold_rows(self) -> list[TranscriptRow]:
        if not self._is_long:
            return []
        num_lines = self._text.count("\n") + 1
        more = words.show_all_lines(num_lines) if num_lines > FOLD_LINES else words.SHOW_ALL
        label = words.SHOW_LESS if self._is_unfolded else more
        row = LinkRow(self._kit.look, _FOLD, label)
        row.gap = self._kit.look.px(Space.XS)
        return [row]

    @override
    def _row_left(self, number: int) -> int:
        if number >= self._num_bubble:
            return self.width - self._row_width(number)
        pad = self._kit.look.px(Space.L)
        if self.rows[number].is_rtl:
            return self.width - pad - self.text_width
        return int(self._bubble_rect().left()) + pad

    @override
    def _row_width(self, number: int) -> int:
        return self.text_width if number < self._num_bubble else self.width

    @override
    def _ordinal(self, number: int) -> int:
        return BODY + number

    @override
    def _has_text(self, number: int) -> bool:
        return number < self._num_text

    @override
    def _number(self, ordinal: int) -> int:
        return max(0, ordinal - BODY)

    @override
    def _num_unparsed(self) -> int:
        if self._markdown is None or self._markdown.is_fed:
            return 0
        return max(1, self._markdown.num_unfed)

    @override
    def _parse_more(self) -> None:
        assert self._markdown is not None
        self._markdown.feed()
        self._dirty = True

    @override
    def _estimate_rest(self) -> int:
        return 0 if self._markdown is None else self._markdown.estimate_rest(self.text_width)

    @override
    def source_text(self, ordinal: int) -> str:
        return self._text

    @override
    def _paint_over(self, paint: MessagePaint, number: int) -> None:
        """Nothing lies over a bubble."""

    @property
    @override
    def _ground(self) -> str:
        return self._kit.look.colors.user_bubble

    @override
    def _paint_background(self, paint: MessagePaint) -> None:
        if not self._num_bubble:
            return
        painter = paint.painter
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(self._ground))
        radius = self._kit.look.px(Radius.BUBBLE)
        painter.drawRoundedRect(self._bubble_rect(), radius, radius)

    def _bubble_rect(self) -> QRectF:
        look = self._kit.look
        natural = self.text_width
        bubble = self.rows[: min(self._num_bubble, SHRINK_ROWS + 1)]
        if len(bubble) <= SHRINK_ROWS and all(row.width >= 0 for row in bubble):
            natural = min(natural, int(max(row.natural_width for row in bubble)) + 1)
        width = natural + 2 * look.px(Space.L)
        height = self._pile.start(self._num_bubble) + look.px(Space.M)
        return QRectF(self.width - width, 0, width, height)
