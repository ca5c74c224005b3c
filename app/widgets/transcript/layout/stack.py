"""All messages of the visible branch on top of each other. Main thread.

A MessageStack has the layout of each message and a tree of their heights, so that finding the
message at a y takes O(log n) steps. Only the visible messages are laid out: lay_out_visible() makes
their heights exact, and advance() does so for the others in idle time. An Anchor finds a line of
text again after heights above it have changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from app.theme.tokens import Size, Space
from app.viewmodels.heights import HeightTree
from app.viewmodels.transcript import ItemStatus, TranscriptItem
from app.widgets.transcript.messages.answer import AnswerContent
from app.widgets.transcript.messages.body import Kit
from app.widgets.transcript.messages.layouts import MessageLayouts
from app.widgets.transcript.messages.message import MessageLayout
from app.widgets.transcript.messages.places import Place
from app.widgets.transcript.messages.user import UserContent
from engine.types import Channel, Role

TOP_MARGIN = Space.XL
BOTTOM_MARGIN = Space.XL
KEPT = 30  # messages above and below the view that keep their rows
KEPT_CONVERSATIONS = 5  # conversations whose layouts are kept after a switch
MAX_ROUNDS = 20  # rounds of layout; each can change heights and so move messages into view


@dataclass(frozen=True, slots=True)
class Anchor:
    """A point of a message that must keep its position on the screen.

    The point is the line of text at `place`, else the buttons or the top of the message.
    """

    key: str  # key of the message
    offset: int  # pixels from the point down to the top of the view
    place: Place | None = None
    at_actions: bool = False  # the point is the message's buttons


@dataclass(frozen=True, slots=True)
class KeptConversation:
    """The layouts of a conversation that is not shown, see MessageStack."""

    layouts: MessageLayouts
    tree: HeightTree
    index: dict[str, int]
    live: set[MessageLayout]


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscriptStatistics:
    """Counts for tests and benchmarks."""

    num_messages: int
    num_settled: int  # messages with an exact height
    num_parsed: int  # messages with rows
    num_layouts: int  # rows with a line layout
    is_idle: bool  # True if no idle work is left


class MessageStack:
    """The layouts of all messages of the visible branch, and where each message is."""

    def __init__(self, kit: Kit) -> None:
        self.layouts = MessageLayouts(kit, 0)
        self._kit = kit
        self._tree = HeightTree()
        self._index: dict[str, int] = {}  # index of each message, by its key
        self._live: set[MessageLayout] = set()  # layouts that may have rows
        self._kept: dict[str, KeptConversation] = {}  # by name, the most recent last
        self._name = ""  # name of the conversation that is shown
        self._near = 0  # index of the message that advance() started from
        self._near_settled = 0  # messages less than this far from _near are settled

    def __len__(self) -> int:
        return len(self.layouts)

    @property
    def items(self) -> list[TranscriptItem]:
        """Current items of all messages; read only."""
        return self.layouts.items

    @property
    def total(self) -> int:
        """Height of all messages with the margins."""
        return self._tree.total + BOTTOM_MARGIN if self.layouts else 0

    def open(self, items: Sequence[TranscriptItem], name: str) -> None:
        """Show another conversation; reuse its layouts if they were kept under this name."""
        self._keep_shown()
        self._name = name
        width = self.layouts.width
        new = KeptConversation(MessageLayouts(self._kit, width), HeightTree(), {}, set())
        left = self._kept.pop(name, new)
        self.layouts, self._tree, self._index = left.layouts, left.tree, left.index
        self._live = left.live
        self.resize(width)
        self.remeasure()
        if self.items != list(items):
            self.set_items(items)

    def set_items(self, items: Sequence[TranscriptItem]) -> None:
        """Replace the messages; keep the layouts of messages that are still present."""
        before = self.layouts.newest()
        self.layouts.set_items(items)
        for layout in set(before).difference(self.layouts.newest()):
            _set_newest(layout, None)
        self._rebuild_index()

    def update(self, index: int, item: TranscriptItem) -> None:
        """Replace the item of one message by a newer state."""
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
        """Set the width of the column. Messages out of view keep their old heights for now."""
        if width != self.layouts.width:
            is_first = self.layouts.width == 0
            self.layouts.resize(width)
            if is_first:
                self._rebuild_index()
            self.mark_unsettled()

    def rebuild_rows(self) -> None:
        """Drop all rows because the look has changed; the next layout makes new ones."""
        self._kept.clear()
        for layout in self.layouts.made():
            layout.rebuild_rows()
        self._rebuild_index()

    def remeasure(self) -> bool:
        """Mark rows with a new formula or line wrap as not measured; return False without one."""
        changed = [layout for layout in self._live if layout.remeasure()]
        self.mark_unsettled()
        return bool(changed)

    def open_whole(self, index: int) -> MessageLayout:
        """Unfold and parse a message as a whole, and return its layout."""
        layout = self.layouts[index]
        self._live.add(layout)
        layout.unfold()
        self.sync(index)
        self.mark_unsettled()
        return layout

    def index_of(self, key: str) -> int | None:
        return self._index.get(key)

    def find(self, key: str) -> MessageLayout | None:
        index = self._index.get(key)
        return None if index is None else self.layouts[index]

    def top(self, index: int) -> int:
        """Return the y of a message, below the gap above it."""
        return self._tree.top(index) + self._gap(index)

    def tops(self) -> list[int]:
        """Return the y of the gap above every message, and of the end of the last one."""
        return self._tree.tops()

    def at(self, y: float) -> int:
        """Return the index of the message nearest to y."""
        return self._tree.find(int(max(0, y)))

    def visible(self, top: int, height: int) -> Iterator[int]:
        if self.layouts:
            yield from range(self.at(top), self.at(top + height) + 1)

    def sync(self, index: int) -> bool:
        """Copy a layout's current height to the tree; return True if the height differs."""
        before, height = self._tree[index], self._gap(index) + self.layouts.height(index)
        self._tree.set(index, height)
        return height != before

    def lay_out_visible(self, wanted_top: Callable[[], int], height: int) -> None:
        """Lay out the messages that are visible at a scroll value.

        Args:
            wanted_top: Returns the scroll value. Called again in each round, since layout changes
                heights and so the value.
            height: The height of the view.
        """
        for _ in range(MAX_ROUNDS):
            if not self._settle_between(wanted_top(), height):
                break
        if self.layouts:
            self._release_far_from(self.at(wanted_top()))

    def advance(self, near: int) -> int | None:
        """Do a step of layout for the unsettled message nearest to an index.

        Returns:
            The index of that message, or None if all messages are settled.
        """
        if near != self._near:
            self._near, self._near_settled = near, 0
        for distance in range(self._near_settled, max(near, len(self.layouts) - near) + 1):
            for index in {near + distance, near - distance}:
                if 0 <= index < len(self.layouts) and not self.layouts[index].is_settled:
                    self._live.add(self.layouts[index])
                    self.layouts[index].advance()
                    self.sync(index)
                    self._near_settled = distance
                    if distance > KEPT:
                        self._release_far_from(near)
                    return index
        return None

    def mark_unsettled(self) -> None:
        """Let advance() examine all messages again, because a layout has changed."""
        self._near_settled = 0

    def anchor_at(self, y: int) -> Anchor | None:
        """Return an anchor for the line of text or the message at y."""
        if not self.layouts:
            return None
        index = self.at(y)
        layout, top = self.layouts[index], self.top(index)
        line = layout.places.line_at(y - top)
        if line is None:
            return Anchor(layout.item.key, y - top)
        return Anchor(layout.item.key, y - top - line.y, line.place)

    def y_of(self, anchor: Anchor) -> int | None:
        """Return the scroll value that puts an anchor in place, None without its message."""
        index = self._index.get(anchor.key)
        if index is None:
            return None
        layout, top = self.layouts[index], self.top(index)
        if anchor.at_actions:
            return top + layout.actions_top + anchor.offset
        if anchor.place is None:
            return top + anchor.offset
        line = layout.places.line_top(anchor.place)
        self.sync(index)
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
        """Keep the layouts of the conversation that is shown, and drop the oldest kept ones."""
        if self.items and self.items[-1].status is ItemStatus.STREAMING:
            self.set_items(self.items[:-1])  # text that arrives meanwhile does not reach the layout
        if self._name:
            self._kept[self._name] = KeptConversation(
                self.layouts, self._tree, self._index, self._live
            )
        if len(self._kept) > KEPT_CONVERSATIONS:
            del self._kept[next(iter(self._kept))]

    def _settle_between(self, top: int, height: int) -> bool:
        changed = False
        for index in self.visible(top, height):
            layout, y = self.layouts[index], self.top(index)
            self._live.add(layout)
            changed |= layout.lay_out_between(top - y, top + height - y)
            changed |= self.sync(index)
        return changed

    def _release_far_from(self, near: int) -> None:
        """Release the layouts more than KEPT messages away from an index, to bound memory."""
        for layout in list(self._live):
            index = self._index.get(layout.item.key)
            if index is None or abs(index - near) > KEPT:
                layout.release()
                if index is None or not layout.rows:
                    self._live.discard(layout)

    def _rebuild_index(self) -> None:
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
        if index == 0:
            return TOP_MARGIN
        is_turn = self.items[index].role is Role.USER
        wanted = Size.TURN_GAP if is_turn else Size.MESSAGE_GAP
        return self._kit.look.px(wanted - self.layouts.space_below(index - 1))


def _set_newest(layout: MessageLayout, newest: MessageLayout | None) -> None:
    """Mark a layout as the last message or not, and set the state line.

    The state line of an answer is painted in the gap above it, which belongs to the question's
    layout.
    """
    layout.is_newest = layout is newest
    if isinstance(layout.content, UserContent):
        layout.content.set_line(None if newest is None else newest.item.state_line)
