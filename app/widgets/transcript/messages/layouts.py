"""The messages of a conversation, each laid out when it is first asked for. Main thread.

Of a long conversation only the end is looked at: the other messages cost their item and an estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from app.viewmodels.transcript import TranscriptItem
from app.widgets.transcript.messages.answer import AnswerContent
from app.widgets.transcript.messages.body import Kit
from app.widgets.transcript.messages.content import MessageContent
from app.widgets.transcript.messages.estimates import estimate_height, space_below
from app.widgets.transcript.messages.message import MessageLayout
from app.widgets.transcript.messages.user import UserContent
from engine.types import Role


class MessageLayouts:
    """A sequence of layouts. items are the messages as they are shown; read only."""

    def __init__(self, kit: Kit, width: int) -> None:
        self.items: list[TranscriptItem] = []
        self.width = width
        self._kit = kit
        self._made: list[MessageLayout | None] = []

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> MessageLayout:
        layout = self._made[index]
        if layout is None:
            content = _make_content(self._kit, self.items[index])
            layout = self._made[index] = MessageLayout(self._kit, content)
            layout.resize(self.width)
        return layout

    def __iter__(self) -> Iterator[MessageLayout]:
        """All of them, made now where they are not."""
        return (self[index] for index in range(len(self)))

    def made(self) -> Iterator[MessageLayout]:
        """Only those that have been asked for."""
        return (layout for layout in self._made if layout is not None)

    def newest(self) -> list[MessageLayout]:
        """The last two, with what is between a question and its answer."""
        return [self[index] for index in range(max(0, len(self) - 2), len(self))]

    def set_items(self, items: Sequence[TranscriptItem]) -> None:
        """Have these messages; layouts of messages that stay are kept."""
        known = {layout.item.key: layout for layout in self.made()}
        self.items = list(items)
        self._made = [known.get(item.key) for item in items]
        for index, layout in enumerate(self._made):
            if layout is not None:
                self.update(index, items[index])

    def update(self, index: int, item: TranscriptItem) -> None:
        """Show other values of one message."""
        layout = self[index]
        layout.update(item)
        self.items[index] = layout.item  # the text of an answer that goes on is its own

    def resize(self, width: int) -> None:
        self.width = width
        for layout in self.made():
            layout.resize(width)

    def height(self, index: int) -> int:
        """The height of a message as far as it is known."""
        layout = self._made[index]
        if layout is not None:
            return layout.height
        return estimate_height(self._kit.look, self.items[index], max(1, self.width))

    def space_below(self, index: int) -> int:
        return space_below(self.items[index])


def _make_content(kit: Kit, item: TranscriptItem) -> MessageContent:
    return UserContent(kit, item) if item.role is Role.USER else AnswerContent(kit, item)
