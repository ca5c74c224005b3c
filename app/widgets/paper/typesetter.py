"""Layout of a conversation on pages, in steps of a few milliseconds. Main thread only.

The rows of the transcript lay out and paint themselves. Each page shows a part of the column, which
ends between two lines. A message is dropped when it is on its pages, so memory does not grow with
the conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto

from PySide6.QtCore import QPointF, QRectF

from app.theme.tokens import Space, TextStyle, Type
from app.widgets.paper.messages import PaperMessage
from app.widgets.paper.sheets import Sheets
from app.widgets.transcript.messages.body import RowKit
from app.widgets.transcript.messages.layouts import make_layout
from app.widgets.transcript.messages.message import MessageLayout
from app.widgets.transcript.messages.places import MessagePaint, PageBreak
from app.widgets.transcript.rows.flow import TextFlow
from app.widgets.transcript.rows.row import IdleResult, RowAction
from engine.types import Role

_MAX_HEADER = 1 / 3  # largest height of a repeated header, as a share of the page
_SPARE = Space.M  # pixels of the foot that the end of a bubble may use


class Step(Enum):
    """The results of one step."""

    DONE = auto()
    WAITING = auto()  # another process typesets a formula or colours code


class Typesetter:
    """The pages of one conversation."""

    def __init__(self, sheets: Sheets, kit: RowKit, title: str) -> None:
        self._sheets = sheets
        self._kit = kit
        self._title = title
        self._is_fresh = True  # True while a page has no text of a message
        self.share = 0.0  # share of the messages that are on pages

    def close(self) -> None:
        """End the last page. Call this after the last step, or to cancel."""
        self._sheets.close()

    def steps(self, messages: Sequence[PaperMessage]) -> Iterator[Step]:
        """Place the title and all messages, one step with each call of next().

        Raises:
            PrinterError: the device does not accept pages.
        """
        self._sheets.open(self._kit.look)
        self._place_text(self._flow(self._title, Type.H1))
        for number, message in enumerate(messages):
            self.share = number / len(messages)
            yield from self._message(message)

    def _message(self, message: PaperMessage) -> Iterator[Step]:
        layout = make_layout(self._kit, message.item)
        layout.resize(self._sheets.width)
        is_user = message.item.role is Role.USER
        if is_user or message.item.reasoning:
            layout.toggle(RowAction.TOGGLE_FOLD if is_user else RowAction.TOGGLE_THINKING)
        yield from self._settle(layout)
        self._place_caption(message, layout)
        top, bottom = 0, layout.actions_top
        while bottom - top > self._sheets.room + _SPARE:
            cut = layout.page_break(top, top + self._sheets.room)
            if cut is None and self._is_fresh:
                end = top + self._sheets.room
                cut = PageBreak(end, end)
            if cut is not None:
                yield from self._place(layout, top, cut.end)
                top = cut.start
            self._next_page()
            yield from self._repeat_header(layout, cut)
        yield from self._place(layout, top, bottom)

    def _repeat_header(self, layout: MessageLayout, cut: PageBreak | None) -> Iterator[Step]:
        """Place the header of a table again at the top of a page, unless it fills most of it."""
        if cut is not None and cut.header is not None:
            top, bottom = cut.header
            if bottom - top <= _MAX_HEADER * self._sheets.room:
                yield from self._place(layout, top, bottom)
                self._is_fresh = True

    def _settle(self, layout: MessageLayout) -> Iterator[Step]:
        """Lay out a message, and again when its formulas are typeset."""
        num_before: int | None = None
        while True:
            while not layout.is_settled:
                layout.advance()
                yield Step.DONE
            waiting = [row for row in layout.rows if row.is_waiting]
            # A row with more formulas than the shelf keeps would wait for ever.
            if not waiting or (num_before is not None and len(waiting) >= num_before):
                return
            num_before = len(waiting)
            for row in waiting:
                row.request_formulas()
            while not self._kit.look.formulas.is_idle:
                yield Step.WAITING
            layout.remeasure()

    def _place_caption(self, message: PaperMessage, layout: MessageLayout) -> None:
        """Place the line above a message, on the page of the first lines of the message."""
        flow = self._flow(message.caption, Type.SMALL)
        gap = self._kit.look.px(Space.XL)
        room = self._sheets.room - gap - flow.height - Space.XS
        fits = layout.actions_top <= room + _SPARE or layout.page_break(0, room) is not None
        if not fits and not self._is_fresh:
            self._next_page()
        if self._sheets.y:
            self._sheets.y += gap
        is_right = message.item.role is Role.USER
        self._place_text(flow, self._sheets.width - flow.natural_width if is_right else 0)
        self._sheets.y += Space.XS

    def _place(self, layout: MessageLayout, top: int, bottom: int) -> Iterator[Step]:
        """Place a part of a message, after its code has got its colours."""
        for row in layout.rows_between(top, bottom):
            while (result := row.advance()) is not IdleResult.DONE:
                if result is IdleResult.WAITING:
                    yield Step.WAITING
        with self._sheets.placed(QRectF(0, top, self._sheets.width, bottom - top)) as painter:
            if painter is not None:
                layout.paint(
                    MessagePaint(
                        painter=painter,
                        top=top,
                        bottom=bottom,
                        selected=None,
                        hovered=None,
                        confirmed=None,
                        pointed_at=False,
                        unfinished={},
                    )
                )
        self._is_fresh = False
        yield Step.DONE

    def _place_text(self, flow: TextFlow, left: float = 0) -> None:
        with self._sheets.placed(QRectF(0, 0, self._sheets.width, flow.height)) as painter:
            if painter is not None:
                flow.paint(painter, QPointF(left, 0))

    def _next_page(self) -> None:
        self._sheets.next_page(self._kit.look)
        self._is_fresh = True

    def _flow(self, text: str, style: TextStyle) -> TextFlow:
        colors = self._kit.look.colors
        ink = colors.text if style is Type.H1 else colors.secondary
        flow = TextFlow(self._kit.look, style, text, ink=ink)
        flow.wrap(self._sheets.width)
        return flow
