"""The scroll position of the transcript. Main thread only.

Heights above the view change often: estimates become exact, formulas are typeset, answers grow. To
keep the visible text in place, a ScrollAnchor remembers the line at the top of the view as an
Anchor, lays out the visible messages, and scrolls to the new position of that line. While the view
follows a streamed answer or the end of the transcript, a ScrollFollower (scroll.py) chooses the
scroll position, and the anchor is not used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QAbstractScrollArea

from app.theme.tokens import Size
from app.viewmodels.transcript import ItemStatus, ScrollPosition, TranscriptItem
from app.widgets.transcript.layout.scroll import NEAR_END, Follow, ScrollFollower
from app.widgets.transcript.layout.selection import Caret
from app.widgets.transcript.layout.stack import Anchor, MessageStack
from app.widgets.transcript.messages.body import RowKit
from app.widgets.transcript.messages.places import Spot
from engine.types import Role

LINE_STEP = 40  # pixels to scroll for an arrow key or for one notch of the mouse wheel


class ScrollAnchor:
    """Moves the scroll bar so that the visible text stays in place when heights change."""

    def __init__(self, area: QAbstractScrollArea, stack: MessageStack, kit: RowKit) -> None:
        self.moving = False  # True while update_bar(), not the user, moves the scroll bar
        self._area = area
        self._bar = area.verticalScrollBar()
        self._stack = stack
        self._kit = kit
        self._follower = ScrollFollower()
        # Point of a message that keeps its place on the screen; None while a ScrollFollower
        # scrolls.
        self._anchor: Anchor | None = None
        self._shown: Anchor | None = None  # point at the top of the view after the last layout
        self._bar.setSingleStep(LINE_STEP)

    @property
    def top(self) -> int:
        """Scroll position: the y coordinate in the MessageStack at the top edge of the view."""
        return self._bar.value()

    @property
    def column_left(self) -> int:
        """The x coordinate of the text column. It is the same with and without a scroll bar."""
        return max(0, (self._area.width() - self.column_width) // 2)

    @property
    def column_width(self) -> int:
        return self._kit.look.column(self._area.width())

    @property
    def distance_to_end(self) -> int:
        return self._end - self.top

    def open(self, position: ScrollPosition | None) -> None:
        """Prepare for another conversation.

        The view starts at `position`, or at the end if `position` is None.
        """
        self._follower = ScrollFollower()
        self._anchor = None
        if position is not None and self._stack.index_of(position.key) is not None:
            self._follower.released()
            self._anchor = Anchor(position.key, position.offset)

    def opened(self) -> bool:
        """Follow new text if the newly opened conversation is shown near its end.

        Call this method after the first layout of another conversation. Return True if the view
        must scroll to reach the end.
        """
        distance, answer_top = self.distance_to_end, self._answer_top()
        if distance < NEAR_END:
            # An answer that began above the view is followed at its end: its first line is past.
            if answer_top is not None and answer_top < self.top:
                self._follower.jumped()
            else:
                self._follower.sent()
        return 0 < distance < NEAR_END

    def replace(self, items: Sequence[TranscriptItem]) -> None:
        """Replace the items of the stack, and choose the scroll position for the new items.

        After a new turn, the view follows the answer. After a switch between versions, the version
        buttons stay in place.
        """
        before = self._stack.items
        switch = self._version_switch(items)
        self._stack.set_items(items)
        if _was_sent(before, items):
            self._follower.sent()
        elif switch is not None:
            self.hold()
            self._anchor = switch

    def resized(self) -> None:
        """Keep the end in view if it was there. Call this before the layout at a new view height.

        A card above the composer, for example, takes height from the view. While an answer is being
        written, the follower decides.
        """
        distance = self._bar.maximum() - self._bar.value()
        is_followed = self._follower.mode is not Follow.NOTHING
        if distance < NEAR_END and not is_followed and self._answer_top() is None:
            self._follower.sent()

    def hold(self) -> None:
        """Stop the automatic scrolling, so that the visible text stays in place."""
        self._follower.released()

    def jump(self) -> None:
        """Scroll to the end at the next layout, and keep the end in view."""
        self._follower.jumped()

    def to_start(self) -> None:
        """Scroll to the first message at the next layout."""
        self.hold()
        if len(self._stack):
            self._anchor = Anchor(self._stack.items[0].key, -self._stack.top(0))

    def reveal(self, caret: Caret) -> None:
        """Scroll a line of text to a third of the view's height, unless it is already visible.

        The last 2 * LINE_STEP pixels of the view count as hidden, because the jump button may cover
        them.
        """
        key = self._stack.items[caret.message].key
        y = self._stack.y_of(Anchor(key, 0, caret.place))
        self.hold()
        if y is not None and not self.top <= y <= self.top + self._height - 2 * LINE_STEP:
            self._anchor = Anchor(key, -self._height // 3, caret.place)

    def reveal_editor(self, message: int, height: int) -> None:
        """Scroll until the editor of a message is visible from its top to its height.

        If it is higher than the view, its top is at the top of the view.
        """
        above = max(0, self._height - height)
        self.hold()
        if not self.top <= self._stack.top(message) <= self.top + above:
            key = self._stack.items[message].key
            self._anchor = Anchor(key, -min(above, self._height // 3))

    def scrolled(self, before: int) -> None:
        """Update the follower and the anchor after the user has scrolled.

        `before` is the scroll value before the user scrolled. The visible text moves by exactly the
        scrolled distance, even if heights above it change.
        """
        self._follower.scrolled(before, self.top, self._end)
        if self._anchor is not None:
            offset = self._anchor.offset + self.top - before
            self._anchor = replace(self._anchor, offset=offset)

    def position(self) -> ScrollPosition | None:
        """Return the scroll position to restore later, or None for the end.

        The end may be elsewhere then: a card above the composer takes height from the view. An
        answer that is being written has no end yet.
        """
        is_at_end = self.distance_to_end < NEAR_END and self._answer_top() is None
        if not len(self._stack) or is_at_end:
            return None
        index = self._stack.at(self.top)
        key = self._stack.items[index].key
        return ScrollPosition(key, self.top - self._stack.top(index))

    def scroll_by(self, pixels: int) -> None:
        """Scroll by a number of pixels; a positive number scrolls down."""
        self._bar.setValue(self._bar.value() + pixels)

    def scroll_page(self, pages: int) -> None:
        self.scroll_by(pages * self._bar.pageStep())

    def spot_at(self, point: QPointF) -> Spot | None:
        """Convert a point of the viewport to coordinates of the nearest message."""
        if not len(self._stack):
            return None
        y = point.y() + self.top
        index = self._stack.at(y)
        return Spot(index, point.x() - self.column_left, y - self._stack.top(index))

    def distance_outside(self, point: QPointF) -> float:
        """Return the signed distance of a point from the viewport.

        The distance is negative above the viewport, positive below the viewport, and 0 inside.
        """
        return min(0.0, point.y()) + max(0.0, point.y() - self._height)

    def changed_from(self, index: int) -> int:
        """Return the viewport's y from which a message must be repainted downwards."""
        changed = self._stack.layouts[index].take_changed_top()
        if changed is None:
            return self._height
        return max(0, min(self._height, self._stack.top(index) + changed - self.top))

    def lay_out_visible(self, *, parses: bool = True) -> int | None:
        """Lay out the visible messages and scroll so that the anchor stays in place.

        Args:
            parses: False to leave text that has no rows yet to the idle work.

        Returns:
            Number of pixels by which the visible text moved on the screen. None if the message at
            the top of the view was removed.
        """
        shown = self._shown
        self._stack.lay_out_visible(self._wanted_top, self._height, parses=parses)
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
        """Maximum value of the scroll bar."""
        return max(0, self._stack.total - self._height)

    def _wanted_top(self) -> int:
        current, end = self.top, self._end
        wanted = self._follower.wanted(current=current, end=end, answer_top=self._answer_top())
        if wanted is None and self._anchor is not None:
            wanted = self._stack.y_of(self._anchor)
        return max(0, min(current if wanted is None else wanted, end))

    def _answer_top(self) -> int | None:
        """Return the scroll value with the streamed answer's first line at the top, or None."""
        last = len(self._stack) - 1
        if last < 0 or self._stack.items[last].status is not ItemStatus.STREAMING:
            return None
        # an answer without a question above it has no gap
        return max(0, self._stack.top(last) - self._kit.look.px(Size.MESSAGE_GAP))

    def _version_switch(self, items: Sequence[TranscriptItem]) -> Anchor | None:
        """Return an anchor at the version buttons if the user has switched to another version.

        The buttons are those of the first message that has changed. Return None if the buttons are
        not visible.
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
