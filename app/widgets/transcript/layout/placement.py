"""The scroll position of the transcript. Main thread.

Heights above the view change all the time: estimates become exact, formulas are typeset, answers
grow. To keep the visible text in place, a Placement remembers the line at the top of the view as an
Anchor, lays out the visible messages, and scrolls to where the anchor is afterwards. While a
Follower (scroll.py) follows an answer or the end, it decides the scroll value instead of the
anchor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QAbstractScrollArea

from app.theme.tokens import Size
from app.viewmodels.transcript import ItemStatus, ScrollPosition, TranscriptItem
from app.widgets.transcript.layout.scroll import NEAR_END, Follower
from app.widgets.transcript.layout.selection import Caret
from app.widgets.transcript.layout.stack import Anchor, MessageStack
from app.widgets.transcript.messages.body import Kit
from app.widgets.transcript.messages.places import Spot
from engine.types import Role

LINE_STEP = 40  # pixels scrolled by an arrow key or a notch of the wheel


class Placement:
    """The scroll bar of the transcript, updated whenever heights change."""

    def __init__(self, area: QAbstractScrollArea, stack: MessageStack, kit: Kit) -> None:
        self.moving = False  # True while update_bar() moves the scroll bar, not the user
        self._area = area
        self._bar = area.verticalScrollBar()
        self._stack = stack
        self._kit = kit
        self._follower = Follower()
        self._anchor: Anchor | None = None  # text that the top of the view must show
        self._shown: Anchor | None = None  # text at the top of the view after the last layout
        self._bar.setSingleStep(LINE_STEP)

    @property
    def top(self) -> int:
        """Current scroll value: the y of the stack at the top of the view."""
        return self._bar.value()

    @property
    def column_left(self) -> int:
        """The x of the column; the same whether or not the scroll bar is visible."""
        return max(0, (self._area.width() - self.column_width) // 2)

    @property
    def column_width(self) -> int:
        return self._kit.look.column(self._area.width())

    @property
    def distance_to_end(self) -> int:
        return self._end - self.top

    def open(self, position: ScrollPosition | None) -> None:
        """Reset for another conversation: start at a position, or at the end without one."""
        self._follower = Follower()
        self._anchor = None
        if position is not None and self._stack.index_of(position.key) is not None:
            self._follower.released()
            self._anchor = Anchor(position.key, position.offset)

    def opened(self) -> bool:
        """Follow the end if the first layout ended near it; return True if a scroll is needed.

        Call after the first layout of another conversation.
        """
        distance = self.distance_to_end
        if distance < NEAR_END:
            self._follower.sent()
        return 0 < distance < NEAR_END

    def replace(self, items: Sequence[TranscriptItem]) -> None:
        """Replace the items of the stack, and choose the position that fits the change.

        A new turn is followed. A switch between versions keeps the buttons of the switch in place.
        """
        before = self._stack.items
        switch = self._version_switch(items)
        self._stack.set_items(items)
        if _was_sent(before, items):
            self._follower.sent()
        elif switch is not None:
            self.hold()
            self._anchor = switch

    def hold(self) -> None:
        """Stop following: keep the visible text in place."""
        self._follower.released()

    def jump(self) -> None:
        """Scroll to the end at the next layout, and follow it."""
        self._follower.jumped()

    def to_start(self) -> None:
        """Scroll to the first message at the next layout, whatever the heights turn out to be."""
        self.hold()
        if len(self._stack):
            self._anchor = Anchor(self._stack.items[0].key, -self._stack.top(0))

    def reveal(self, caret: Caret) -> None:
        """Scroll a line of text to a third of the view's height, unless it is in view already.

        The last two line steps of the view do not count: the jump button may cover them.
        """
        key = self._stack.items[caret.message].key
        y = self._stack.y_of(Anchor(key, 0, caret.place))
        self.hold()
        if y is not None and not self.top <= y <= self.top + self._height - 2 * LINE_STEP:
            self._anchor = Anchor(key, -self._height // 3, caret.place)

    def scrolled(self, before: int) -> None:
        """Update follower and anchor after the user has scrolled; before is the old scroll value.

        The visible text moves by exactly that distance, even if heights above it change.
        """
        self._follower.scrolled(before, self.top, self._end)
        if self._anchor is not None:
            offset = self._anchor.offset + self.top - before
            self._anchor = replace(self._anchor, offset=offset)

    def position(self) -> ScrollPosition | None:
        """Return the position to restore later, or None in an empty conversation."""
        if not len(self._stack):
            return None
        index = self._stack.at(self.top)
        key = self._stack.items[index].key
        return ScrollPosition(key, self.top - self._stack.top(index))

    def scroll_by(self, pixels: int) -> None:
        """Scroll by a distance, as the wheel does."""
        self._bar.setValue(self._bar.value() + pixels)

    def scroll_page(self, pages: int) -> None:
        self.scroll_by(pages * self._bar.pageStep())

    def spot_at(self, point: QPointF) -> Spot | None:
        """Return a point of the viewport in coordinates of the nearest message."""
        if not len(self._stack):
            return None
        y = point.y() + self.top
        index = self._stack.at(y)
        return Spot(index, point.x() - self.column_left, y - self._stack.top(index))

    def distance_outside(self, point: QPointF) -> float:
        """Return the distance of a point above (negative) or below the viewport, 0 inside."""
        return min(0.0, point.y()) + max(0.0, point.y() - self._height)

    def changed_from(self, index: int) -> int:
        """Return the y in the viewport below which a message must be repainted."""
        changed = self._stack.layouts[index].take_changed_top()
        if changed is None:
            return self._height
        return max(0, min(self._height, self._stack.top(index) + changed - self.top))

    def lay_out_visible(self) -> int | None:
        """Lay out the visible messages and scroll so that the anchor is in place.

        Returns:
            Pixels by which the text that was at the top moved on the screen, or None if its
            message no longer exists.
        """
        shown = self._shown
        self._stack.lay_out_visible(self._wanted_top, self._height)
        self.update_bar()
        self._follower.settled(current=self.top, end=self._end, answer_top=self._answer_top())
        moved = None if shown is None else self._stack.y_of(shown)
        self._anchor = self._shown = self._stack.anchor_at(self.top)
        return None if moved is None else moved - self.top

    def update_bar(self) -> None:
        """Update the range and value of the scroll bar after heights have changed."""
        wanted = self._wanted_top()
        self.moving = True
        self._bar.setPageStep(max(1, self._height - 2 * LINE_STEP))
        self._bar.setRange(0, self._end)
        self._bar.setValue(wanted)
        self.moving = False

    @property
    def _height(self) -> int:
        return self._area.viewport().height()

    @property
    def _end(self) -> int:
        """Maximum scroll value."""
        return max(0, self._stack.total - self._height)

    def _wanted_top(self) -> int:
        current, end = self.top, self._end
        wanted = self._follower.wanted(current=current, end=end, answer_top=self._answer_top())
        if wanted is None and self._anchor is not None:
            wanted = self._stack.y_of(self._anchor)
        return max(0, min(current if wanted is None else wanted, end))

    def _answer_top(self) -> int | None:
        """Return the scroll value with the first line of a streaming last answer at the top."""
        last = len(self._stack) - 1
        if last < 0 or self._stack.items[last].status is not ItemStatus.STREAMING:
            return None
        return self._stack.top(last) - self._kit.look.px(Size.MESSAGE_GAP)

    def _version_switch(self, items: Sequence[TranscriptItem]) -> Anchor | None:
        """Return an anchor at the version buttons, if a switch of versions made the change.

        The anchor is None if the buttons of the first message that differs are not visible.
        """
        for index, (shown, item) in enumerate(zip(self._stack.items, items, strict=False)):
            if shown.key != item.key:
                y = self._stack.top(index) + self._stack.layouts[index].actions_top - self.top
                is_visible = shown.version.count > 1 and 0 <= y < self._height
                return Anchor(item.key, -y, at_actions=True) if is_visible else None
        return None


def _was_sent(before: Sequence[TranscriptItem], after: Sequence[TranscriptItem]) -> bool:
    """Return True if a message was sent or an answer started, False for a switch of versions."""
    if not after or after[-1].key in {item.key for item in before}:
        return False
    return after[-1].status is ItemStatus.STREAMING or (
        after[-1].role is Role.USER and len(after) > len(before)
    )
