"""Where the transcript is scrolled to, and why. Main thread.

Joins stack, follower and scroll bar: whatever changes its height, what the reader looks at stays
where it is, or the end is followed.
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

LINE_STEP = 40  # pixels of an arrow key or a notch of the wheel


class Placement:
    """Keeps scroll bar, range and reading position in step with the stack."""

    def __init__(self, area: QAbstractScrollArea, stack: MessageStack, kit: Kit) -> None:
        self.moving = False  # the scroll bar moves because of us, not of the reader
        self._area = area
        self._bar = area.verticalScrollBar()
        self._stack = stack
        self._kit = kit
        self._follower = Follower()
        self._anchor: Anchor | None = None  # what the top of the view shows
        self._shown: Anchor | None = None  # what the top of the view showed when it was settled
        self._bar.setSingleStep(LINE_STEP)

    @property
    def top(self) -> int:
        """The scroll value."""
        return self._bar.value()

    @property
    def column_left(self) -> int:
        """The x of the reading column. The scroll bar may come and go: it moves nothing."""
        return max(0, (self._area.width() - self.column_width) // 2)

    @property
    def column_width(self) -> int:
        return self._kit.look.column(self._area.width())

    @property
    def distance_to_end(self) -> int:
        return self._end - self.top

    def open(self, position: ScrollPosition | None) -> None:
        """Another conversation is shown: start where it was left, or at its end."""
        self._follower = Follower()
        self._anchor = None
        if position is not None and self._stack.index_of(position.key) is not None:
            self._follower.released()
            self._anchor = Anchor(position.key, position.offset)

    def opened(self) -> bool:
        """The first settling is done: who was left at the end follows it again. True if it is ahead."""
        distance = self.distance_to_end
        if distance < NEAR_END:
            self._follower.sent()
        return 0 < distance < NEAR_END

    def replace(self, items: Sequence[TranscriptItem]) -> None:
        """Other items take the place of the ones in the stack."""
        before = self._stack.items
        switch = self._version_switch(items)
        self._stack.set_items(items)
        if _was_sent(before, items):
            self._follower.sent()
        elif switch is not None:
            self.hold()
            self._anchor = switch

    def hold(self) -> None:
        """What is visible stays where it is."""
        self._follower.released()

    def jump(self) -> None:
        """The reader wants to see the end."""
        self._follower.jumped()

    def to_start(self) -> None:
        """The reader wants to see the beginning, however high what is above turns out to be."""
        self.hold()
        if len(self._stack):
            self._anchor = Anchor(self._stack.items[0].key, -self._stack.top(0))

    def reveal(self, caret: Caret) -> None:
        """Bring a line of text into view, unless it is: a third from the top.

        Something may lie over the last ones.
        """
        key = self._stack.items[caret.message].key
        y = self._stack.y_of(Anchor(key, 0, caret.place))
        self.hold()
        if y is not None and not self.top <= y <= self.top + self._height - 2 * LINE_STEP:
            self._anchor = Anchor(key, -self._height // 3, caret.place)

    def scrolled(self, before: int) -> None:
        """The reader has scrolled from there to where the bar is.

        What was visible moves by just that, whatever turns out to be above it.
        """
        self._follower.scrolled(before, self.top, self._end)
        if self._anchor is not None:
            offset = self._anchor.offset + self.top - before
            self._anchor = replace(self._anchor, offset=offset)

    def position(self) -> ScrollPosition | None:
        """Return where the reader is; None if there is nothing to read."""
        if not len(self._stack):
            return None
        index = self._stack.at(self.top)
        key = self._stack.items[index].key
        return ScrollPosition(key, self.top - self._stack.top(index))

    def scroll_by(self, pixels: int) -> None:
        """Scroll as a reader would."""
        self._bar.setValue(self._bar.value() + pixels)

    def scroll_page(self, pages: int) -> None:
        self.scroll_by(pages * self._bar.pageStep())

    def spot_at(self, point: QPointF) -> Spot | None:
        """Return the message nearest to a point of the viewport."""
        if not len(self._stack):
            return None
        y = point.y() + self.top
        index = self._stack.at(y)
        return Spot(index, point.x() - self.column_left, y - self._stack.top(index))

    def distance_outside(self, point: QPointF) -> float:
        """Return how far a point is above (negative) or below the viewport."""
        return min(0.0, point.y()) + max(0.0, point.y() - self._height)

    def changed_from(self, index: int) -> int:
        """Return the y in the viewport from which on a message has to be painted again."""
        changed = self._stack.layouts[index].take_changed_top()
        if changed is None:
            return self._height
        return max(0, min(self._height, self._stack.top(index) + changed - self.top))

    def lay_out_visible(self) -> int | None:
        """Make what is visible exact and put it where it belongs.

        Returns by how much what was at the top has moved on the screen; None if it is gone.
        """
        shown = self._shown
        self._stack.lay_out_visible(self._wanted_top, self._height)
        self.update_bar()
        self._follower.settled(current=self.top, end=self._end, answer_top=self._answer_top())
        moved = None if shown is None else self._stack.y_of(shown)
        self._anchor = self._shown = self._stack.anchor_at(self.top)
        return None if moved is None else moved - self.top

    def update_bar(self) -> None:
        """Take over heights that have changed out of sight."""
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
        """The greatest scroll value."""
        return max(0, self._stack.total - self._height)

    def _wanted_top(self) -> int:
        current, end = self.top, self._end
        wanted = self._follower.wanted(current=current, end=end, answer_top=self._answer_top())
        if wanted is None and self._anchor is not None:
            wanted = self._stack.y_of(self._anchor)
        return max(0, min(current if wanted is None else wanted, end))

    def _answer_top(self) -> int | None:
        """Return the scroll value that shows the answer being written from its first line."""
        last = len(self._stack) - 1
        if last < 0 or self._stack.items[last].status is not ItemStatus.STREAMING:
            return None
        return self._stack.top(last) - self._kit.look.px(Size.MESSAGE_GAP)

    def _version_switch(self, items: Sequence[TranscriptItem]) -> Anchor | None:
        """Return where the version switch is, if the first message that differs shows one."""
        for index, (shown, item) in enumerate(zip(self._stack.items, items, strict=False)):
            if shown.key != item.key:
                y = self._stack.top(index) + self._stack.layouts[index].actions_top - self.top
                is_visible = shown.version.count > 1 and 0 <= y < self._height
                return Anchor(item.key, -y, at_actions=True) if is_visible else None
        return None


def _was_sent(before: Sequence[TranscriptItem], after: Sequence[TranscriptItem]) -> bool:
    """Whether a message was sent or an answer begun: the last one is new, not just switched to."""
    if not after or after[-1].key in {item.key for item in before}:
        return False
    return after[-1].status is ItemStatus.STREAMING or (
        after[-1].role is Role.USER and len(after) > len(before)
    )
