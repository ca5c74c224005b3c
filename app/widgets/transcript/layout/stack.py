"""All messages of the visible branch, stacked vertically. Main thread only.

TranscriptView owns one MessageStack. It has the layout of each message and a HeightTree with one
height per message, so that finding the message at a y coordinate takes O(log n) steps. The height
of a message in the tree includes the gap above the message. An Anchor identifies a line of text, so
that the line can be found again after heights above it have changed.

A message that was never measured has an estimated height. When items, text or the width change,
TranscriptView changes the stack. Then Placement calls lay_out_visible(), which measures the rows in
view and updates the tree. Later IdleWork calls advance() until all messages are measured. Until
then, the heights in the tree may be old for messages outside the view.

Code that changes a MessageLayout directly must then call mark_unsettled() and make the view lay out
again. Otherwise advance() may skip the changed message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from app.theme.tokens import Size, Space
from app.viewmodels.heights import HeightTree
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.transcript.messages.answer import AnswerContent
from app.widgets.transcript.messages.body import MARKS_AT_ONCE, RowKit
from app.widgets.transcript.messages.layouts import MessageLayouts
from app.widgets.transcript.messages.message import MessageLayout
from app.widgets.transcript.messages.places import Place
from app.widgets.transcript.messages.user import UserContent
from engine.types import Channel, Role

TOP_MARGIN = Space.XL
# A toast above a card covers this margin, and no button of the last message.
BOTTOM_MARGIN = Size.TOAST + Space.S
KEPT = 30  # number of messages above and below the view that keep their rows
KEPT_CONVERSATIONS = 5  # number of conversations that keep their layouts while they are not shown
# Maximum number of layout rounds in one call. Each round can change heights and so bring other
# messages into view, which need another round.
MAX_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Anchor:
    """A point of a message that must keep its position on the screen.

    If at_actions is True, the point is the top of the message's buttons. Placement makes such an
    anchor when the user switches to another version. If at_actions is False, the point is the line
    of text at `place`, or the top of the message if `place` is None.
    """

    key: str  # key of the message
    offset: int  # y of the view's top edge minus y of the point, in pixels
    place: Place | None = None
    at_actions: bool = False  # True if the point is the message's buttons


@dataclass(frozen=True, slots=True)
class KeptConversation:
    """The message layouts of a conversation that is not shown at the moment.

    The window may be resized in the meantime, so MessageStack.open() sets the current width.
    """

    layouts: MessageLayouts
    tree: HeightTree
    index: dict[str, int]  # index of each message, by message key
    live: set[MessageLayout]  # layouts that may have rows


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptStatistics:
    """Statistics of the layout work, for tests and benchmarks."""

    num_messages: int
    num_settled: int  # number of messages with an exact height
    num_parsed: int  # number of messages that have rows
    num_layouts: int  # number of rows that have a line layout
    is_idle: bool  # True if no measuring, colouring or typesetting is left to do


class MessageStack:
    """The layouts of all messages of the visible branch, and the position of each message."""

    def __init__(self, kit: RowKit) -> None:
        self.layouts = MessageLayouts(kit, 0)
        self.bottom_margin: int = BOTTOM_MARGIN
        self._kit = kit
        # For each message, the height of the gap above it plus the height of its layout.
        self._tree = HeightTree()
        self._index: dict[str, int] = {}  # index of each message, by message key
        self._live: set[MessageLayout] = set()  # layouts that may have rows
        # Layouts of other conversations, by name; the most recently shown conversation is last.
        self._kept: dict[str, KeptConversation] = {}
        self._name = ""  # id of the shown conversation; "" if its layouts are not kept for later
        self._near = 0  # argument `near` of the last call of advance()
        # All messages at a smaller distance from _near than this have exact heights.
        self._near_settled = 0

    def __len__(self) -> int:
        return len(self.layouts)

    @property
    def items(self) -> list[TranscriptItem]:
        """Current items of all messages. Callers must not change the list."""
        return self.layouts.items

    @property
    def total(self) -> int:
        """Height of all messages plus the margins above and below."""
        return self._tree.total + self.bottom_margin if self.layouts else 0

    def open(self, items: Sequence[TranscriptItem], name: str) -> None:
        """Show another conversation. Reuse layouts that were kept under `name`, if any.

        `name` is the id of the conversation. If it is "", the layouts are dropped when the next
        conversation is shown.
        """
        self._keep_shown()
        self._name = name
        width = self.layouts.width
        new = KeptConversation(MessageLayouts(self._kit, width), HeightTree(), {}, set())
        left = self._kept.pop(name, new)
        self.layouts, self._tree, self._index = left.layouts, left.tree, left.index
        self._live = left.live
        self.resize(width)
        # Measure rows again if their formulas were typeset while the kept layouts were not shown.
        self.remeasure()
        if self.items != list(items):
            self.set_items(items)

    def set_items(self, items: Sequence[TranscriptItem]) -> None:
        """Replace the items. A message that is still present keeps its layout."""
        before = self.layouts.newest()
        self.layouts.set_items(items)
        for layout in set(before).difference(self.layouts.newest()):
            _set_newest(layout, None)
        self._rebuild_index()

    def update(self, index: int, item: TranscriptItem) -> None:
        """Replace one item with a newer item of the same message."""
        self.layouts.update(index, item)
        self._mark_newest()
        self.mark_unsettled()

    def append_delta(self, key: str, channel: Channel, text: str) -> bool:
        """Append streamed text to an answer; return False if the answer is not in the stack."""
        layout = self.find(key)
        if layout is None or not isinstance(layout.content, AnswerContent):
            return False
        layout.content.append_delta(channel, text)
        self.mark_unsettled()
        return True

    def resize(self, width: int) -> None:
        """Set the width of the column. Messages outside the view keep their old heights for now.

        lay_out_visible() and advance() compute the new heights.
        """
        if width != self.layouts.width:
            # At the first resize, replace the heights: they were estimated for a width of 0.
            is_first = self.layouts.width == 0
            self.layouts.resize(width)
            if is_first:
                self._rebuild_index()
            self.mark_unsettled()

    def rebuild_rows(self) -> None:
        """Drop all rows, because the theme or zoom has changed. The next layout makes new rows."""
        self._kept.clear()
        for layout in self.layouts.made():
            layout.rebuild_rows()
        self._rebuild_index()

    def remeasure(self) -> bool:
        """Mark rows for measuring whose formula was typeset or whose line wrapping was switched.

        Return True if at least one row was marked.
        """
        changed = [layout for layout in self._live if layout.remeasure()]
        self.mark_unsettled()
        return bool(changed)

    def open_whole(self, index: int) -> MessageLayout:
        """Unfold a message, parse its whole text, and return its layout.

        MatchFinder calls this method before it shows a match. The caller must then make the view
        lay out again.
        """
        layout = self.layouts[index]
        self._live.add(layout)
        layout.unfold()
        self._sync_height(index)
        self.mark_unsettled()
        return layout

    def index_of(self, key: str) -> int | None:
        return self._index.get(key)

    def find(self, key: str) -> MessageLayout | None:
        index = self._index.get(key)
        return None if index is None else self.layouts[index]

    def top(self, index: int) -> int:
        """Return the y coordinate of the top edge of a message, not of the gap above it."""
        return self._tree.top(index) + self._gap(index)

    def tops(self) -> list[int]:
        """Return the y of the gap above each message and, as last value, the stack's end."""
        return self._tree.tops()

    def at(self, y: float) -> int:
        """Return the index of the message nearest to y."""
        return self._tree.find(int(max(0, y)))

    def visible(self, top: int, height: int) -> Iterator[int]:
        """Yield the indices of the messages between y = top and y = top + height."""
        if self.layouts:
            yield from range(self.at(top), self.at(top + height) + 1)

    def _sync_height(self, index: int) -> bool:
        """Copy the height of a layout to the tree. Return True if the height in the tree changed.

        Call this after each layout step of a message.
        """
        before, height = self._tree[index], self._gap(index) + self.layouts.height(index)
        self._tree.set(index, height)
        return height != before

    def lay_out_visible(self, wanted_top: Callable[[], int], height: int, *, parses: bool) -> None:
        """Lay out the messages that are visible at a scroll value, and update their heights.

        Only the rows in view are measured. Rows of messages far from the view are dropped.

        Args:
            wanted_top: Function that returns the scroll value. It is called in each layout round,
                because new heights can change the scroll value.
            height: The height of the view.
            parses: True to also parse text that has no rows yet, within the time of one frame.
        """
        self._kit.allowance = MARKS_AT_ONCE if parses else 0
        for _ in range(MAX_ROUNDS):
            if not self._settle_between(wanted_top(), height):
                break
        if self.layouts:
            self._release_far_from(self.at(wanted_top()))

    def advance(self, near: int) -> int | None:
        """Do one layout step for the message nearest to index `near` whose height is not exact.

        IdleWork calls this method repeatedly. Messages far from the view are measured too, but
        their rows are dropped as soon as their heights are exact.

        Returns:
            The index of that message, or None if all heights are exact.
        """
        if near != self._near:
            self._near, self._near_settled = near, 0
        for distance in range(self._near_settled, max(near, len(self.layouts) - near) + 1):
            for index in {near + distance, near - distance}:
                if 0 <= index < len(self.layouts) and not self.layouts[index].is_settled:
                    self._live.add(self.layouts[index])
                    self.layouts[index].advance()
                    self._sync_height(index)
                    self._near_settled = distance
                    if distance > KEPT:
                        self._release_far_from(near)
                    return index
        return None

    def mark_unsettled(self) -> None:
        """Make advance() look at all messages again for heights that are not exact.

        Call this method after changing a MessageLayout directly. The other methods of this class
        call mark_unsettled() themselves.
        """
        self._near_settled = 0

    def anchor_at(self, y: int) -> Anchor | None:
        """Return an anchor for the line of text at y, or for the message if y is not in a line."""
        if not self.layouts:
            return None
        index = self.at(y)
        layout, top = self.layouts[index], self.top(index)
        line = layout.places.line_at(y - top)
        if line is None:
            return Anchor(layout.item.key, y - top)
        return Anchor(layout.item.key, y - top - line.y, line.place)

    def y_of(self, anchor: Anchor) -> int | None:
        """Return the scroll value for an anchor, or None if the message no longer exists."""
        index = self._index.get(anchor.key)
        if index is None:
            return None
        layout, top = self.layouts[index], self.top(index)
        if anchor.at_actions:
            return top + layout.actions_top + anchor.offset
        if anchor.place is None:
            return top + anchor.offset
        line = layout.places.line_top(anchor.place)
        self._sync_height(index)  # line_top() may have changed the height
        return top + anchor.offset if line is None else top + line + anchor.offset

    def statistics(self, *, is_idle: bool) -> TranscriptStatistics:
        return TranscriptStatistics(
            num_messages=len(self.layouts),
            num_settled=sum(layout.is_settled for layout in self.layouts.made()),
            num_parsed=sum(bool(layout.rows) for layout in self.layouts.made()),
            num_layouts=len(self._kit.cache),
            is_idle=is_idle,
        )

    def _keep_shown(self) -> None:
        """Keep the layouts of the shown conversation for later.

        If the layouts of more than KEPT_CONVERSATIONS conversations are kept, drop the oldest ones.
        """
        if self.items and self.items[-1].status is ItemStatus.STREAMING:
            # A hidden answer gets no streamed text, so do not keep the layout of a streaming
            # answer.
            self.set_items(self.items[:-1])
        if self._name:
            self._kept[self._name] = KeptConversation(
                self.layouts, self._tree, self._index, self._live
            )
        if len(self._kept) > KEPT_CONVERSATIONS:
            del self._kept[next(iter(self._kept))]

    def _settle_between(self, top: int, height: int) -> bool:
        """Lay out the messages between two y coordinates. Return True if a row or height changed.

        If the result is True, call the method again, because other messages may be visible now.
        """
        changed = False
        for index in self.visible(top, height):
            layout, y = self.layouts[index], self.top(index)
            self._live.add(layout)
            changed |= layout.lay_out_between(top - y, top + height - y)
            changed |= self._sync_height(index)
        return changed

    def _release_far_from(self, near: int) -> None:
        """Release layouts more than KEPT messages away from index `near`, to limit memory use."""
        for layout in list(self._live):
            index = self._index.get(layout.item.key)
            if index is None or abs(index - near) > KEPT:
                layout.release()
                if index is None or not layout.rows:
                    self._live.discard(layout)

    def _rebuild_index(self) -> None:
        """Build the index by key and the tree of heights again from the layouts."""
        self.mark_unsettled()
        self._index = {item.key: at for at, item in enumerate(self.items)}
        self._mark_newest()
        self._tree = HeightTree(
            self._gap(at) + self.layouts.height(at) for at in range(len(self.layouts))
        )

    def _mark_newest(self) -> None:
        for layout in self.layouts.newest():
            _set_newest(layout, self.layouts[-1])

    def _gap(self, index: int) -> int:
        """Return the height of the gap above a message, as counted in the tree.

        The layout of the message above already ends with space_below() empty pixels or, below a
        question, with the row of buttons. This method returns the rest of the wanted distance. The
        result depends only on the roles of both messages and on the zoom. If one of these changes,
        the tree is built again.
        """
        if index == 0:
            return TOP_MARGIN
        is_turn = self.items[index].role is Role.USER
        wanted = Size.TURN_GAP if is_turn else Size.MESSAGE_GAP
        return self._kit.look.px(wanted - self.layouts.space_below(index - 1))


def _set_newest(layout: MessageLayout, newest: MessageLayout | None) -> None:
    """Set `is_newest` of a layout, and the state line of the newest answer.

    The state line is painted in the gap above the answer, which belongs to the layout of the user's
    message, or at the end of an answer that waits to be continued.
    """
    layout.is_newest = layout is newest
    if isinstance(layout.content, AnswerContent):
        layout.content.set_line(layout.item.line_below if layout.is_newest else None)
    if isinstance(layout.content, UserContent):
        layout.content.set_line(None if newest is None else newest.item.line_above)
