"""The messages of a conversation and their layouts. Main thread only.

A layout is made when it is first needed, because users mostly read the end of a long conversation.
A message that was never near the view has only an item and an estimated height.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.viewmodels.transcript import TranscriptItem
from app.widgets.transcript.messages.answer import AnswerContent
from app.widgets.transcript.messages.body import RowKit
from app.widgets.transcript.messages.content import MessageContent
from app.widgets.transcript.messages.estimates import estimate_height, space_below
from app.widgets.transcript.messages.message import MessageLayout
from app.widgets.transcript.messages.user import UserContent
from engine.types import Role


class MessageLayouts:
    """The sequence of the message layouts of a conversation. Makes each layout on first access."""

    def __init__(self, kit: RowKit, width: int) -> None:
        # Current items of all messages; callers must not change the list.
        self.items: list[TranscriptItem] = []
        self.width = width  # width of the column in pixels
        self._kit = kit
        self._made: list[MessageLayout | None] = []

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> MessageLayout:
        layout = self._made[index]
        if layout is None:
            layout = self._made[index] = make_layout(self._kit, self.items[index])
            layout.resize(self.width)
        return layout

    def __iter__(self) -> Iterator[MessageLayout]:
        """Yield the layouts of all messages. Make layouts that do not exist yet."""
        return (self[index] for index in range(len(self)))

    def made(self) -> Iterator[MessageLayout]:
        """Yield the layouts that exist already."""
        return (layout for layout in self._made if layout is not None)

    def newest(self) -> list[MessageLayout]:
        """Return the layouts of the last two messages: a question and its answer."""
        return [self[index] for index in range(max(0, len(self) - 2), len(self))]

    def set_items(self, items: Sequence[TranscriptItem]) -> None:
        """Replace the messages; keep the layouts of messages that are still present."""
        known = {layout.item.key: layout for layout in self.made()}
        self.items = list(items)
        self._made = [known.get(item.key) for item in items]
        for index, layout in enumerate(self._made):
            if layout is not None:
                self.update(index, items[index])

    def update(self, index: int, item: TranscriptItem) -> None:
        """Replace one item with a newer item of the same message."""
        layout = self[index]
        layout.update(item)
        # Read the item back from the layout: while an answer is streamed, the layout adds the
        # streamed text.
        self.items[index] = layout.item

    def resize(self, width: int) -> None:
        self.width = width
        for layout in self.made():
            layout.resize(width)

    def height(self, index: int) -> int:
        """Return the height of a message. It is an estimate if the message has no layout."""
        layout = self._made[index]
        if layout is not None:
            return layout.height
        return estimate_height(self._kit.look, self.items[index], max(1, self.width))

    def space_below(self, index: int) -> int:
        return space_below(self.items[index])


def make_layout(kit: RowKit, item: TranscriptItem) -> MessageLayout:
    """Make the layout of a message. Its width is 0."""
    is_user = item.role is Role.USER
    content: MessageContent = UserContent(kit, item) if is_user else AnswerContent(kit, item)
    return MessageLayout(kit, content)
