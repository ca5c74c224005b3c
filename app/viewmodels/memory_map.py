"""Memory and disk space of chats as rows of a table and as areas of a map. No Qt, no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from app.conversation.folder import documents_of
from app.conversation.placement import FolderId
from app.server.known_chats import SERVER_PREFIX
from app.viewmodels import figures
from app.viewmodels.chat_state import ChatState, chat_state
from app.words import memory_map as words, units
from engine.cache_figures import HeldChat, HeldChats
from engine.types import ConversationId

_CHAT_TOKENS = 8_000  # length of the chats in which the budget is expressed
_CHAT_SNAPSHOTS = 4  # snapshots that such a chat keeps, if its model needs any
# Least share of the map's area that a part gets, so that it can be seen and clicked.
_LEAST_SHARE = 0.001
_GB = 10**9


class MapState(Enum):
    """Places of the state of a chat."""

    ACTIVE = auto()  # it is being read or answered
    MEMORY = auto()
    DISK = auto()
    UNREAD = auto()  # the loaded model has to read most of the chat
    OTHER = auto()  # a part that is no chat


_STATES = {
    ChatState.MEMORY: MapState.MEMORY,
    ChatState.DISK: MapState.DISK,
    ChatState.UNREAD: MapState.UNREAD,
}
_TEXTS = {state: of_chat.text for of_chat, state in _STATES.items()}
# States that the bytes in memory and on disk do not tell
_SPOKEN = (MapState.ACTIVE, MapState.UNREAD)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapRow:
    """One part of the memory and disk space: a chat, or what belongs to no single chat."""

    key: str  # id of the conversation, or a name that no conversation has
    title: str
    num_tokens: int = 0
    memory_bytes: int = 0
    disk_bytes: int = 0
    state: MapState = MapState.OTHER
    is_chat: bool = False
    is_listed: bool = False  # True if the chat is in the list of chats, so it can be opened
    is_kept: bool = False  # True if the user keeps the chat in memory

    @property
    def nbytes(self) -> int:
        return self.memory_bytes + self.disk_bytes

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts of the columns of the table."""
        tokens = figures.count(self.num_tokens) if self.num_tokens else words.NOTHING
        memory, disk = _size(self.memory_bytes), _size(self.disk_bytes)
        return self.title, tokens, memory or words.NOTHING, disk or words.NOTHING, self.state_text

    @property
    def state_text(self) -> str:
        if not self.is_chat:
            return ""
        if self.state is MapState.MEMORY and self.is_kept:
            return words.KEPT
        return words.ACTIVE if self.state is MapState.ACTIVE else _TEXTS[self.state]

    @property
    def texts(self) -> tuple[str, ...]:
        """The lines of the part in the map, below its title."""
        sizes = words.sizes(memory=_size(self.memory_bytes), disk=_size(self.disk_bytes))
        return tuple(text for text in (self.state_text, self.tokens_text, sizes) if text)

    @property
    def tokens_text(self) -> str:
        return units.tokens(self.num_tokens) if self.num_tokens else ""

    @property
    def line(self) -> str:
        """The sentence about this part."""
        return words.described(
            title=self.title,
            tokens=self.tokens_text,
            memory=_size(self.memory_bytes),
            disk=_size(self.disk_bytes),
            state=self.state_text.lower() if self.is_kept or self.state in _SPOKEN else "",
        )


def map_rows(
    report: HeldChats,
    title_of: Callable[[ConversationId], str | None],
    folder_of: Callable[[FolderId], str | None],
) -> list[MapRow]:
    """Return the parts of the report, the largest first. Their bytes in sum are the report's.

    Args:
        report: the report.
        title_of: returns the title of a chat in the list, and None for every other chat.
        folder_of: returns the name of a folder; None if it is gone.
    """
    rows = [_chat_row(chat, title_of(chat.conversation_id), folder_of) for chat in report.chats]
    others = (
        ("shared", words.SHARED, report.shared_bytes, report.shared_disk_bytes),
        ("unused", words.UNUSED, report.unused_bytes, report.unused_disk_bytes),
        ("models", words.OTHER_MODELS, 0, report.other_disk_bytes),
    )
    rows += [
        MapRow(key=key, title=title, memory_bytes=memory, disk_bytes=disk)
        for key, title, memory, disk in others
        if memory or disk
    ]
    return sorted(rows, key=lambda row: (-row.nbytes, row.key))


def _chat_row(
    chat: HeldChat, title: str | None, folder_of: Callable[[FolderId], str | None]
) -> MapRow:
    place = chat_state(chat)
    is_in_memory = place is ChatState.MEMORY
    return MapRow(
        key=chat.conversation_id,
        title=_unlisted(chat.conversation_id, folder_of) if title is None else title,
        num_tokens=chat.memory_tokens
        if is_in_memory
        else max(chat.memory_tokens, chat.disk_tokens),
        memory_bytes=chat.memory_bytes,
        disk_bytes=chat.disk_bytes,
        state=MapState.ACTIVE if chat.is_in_use else _STATES[place],
        is_chat=True,
        is_listed=title is not None,
        is_kept=chat.is_pinned,
    )


def _unlisted(conversation_id: ConversationId, folder_of: Callable[[FolderId], str | None]) -> str:
    folder_id = documents_of(conversation_id)
    if folder_id is not None:
        return words.documents(folder_of(folder_id) or "")
    is_program = conversation_id.startswith(SERVER_PREFIX)
    return words.PROGRAM if is_program else words.UNLISTED


def summary(report: HeldChats) -> str:
    """Return the sentence about the whole; empty while no model has memory for chats."""
    if not report.budget_bytes:
        return ""
    return words.summary(
        model=_size(report.model_bytes),
        memory=_size(report.total_bytes),
        budget=_size(report.budget_bytes),
        disk=_size(report.disk_bytes) if report.is_disk_open else None,
    )


def selection_line(rows: Sequence[MapRow]) -> str:
    """Return the sentence about the selected parts."""
    if len(rows) == 1:
        return rows[0].line
    memory = _size(sum(row.memory_bytes for row in rows))
    disk = _size(sum(row.disk_bytes for row in rows))
    return words.selected(len(rows), memory=memory, disk=disk) if rows else ""


def budget_text(limit_gb: int, budget_bytes: int, token_bytes: int, snapshot_bytes: int) -> str:
    """Return the memory for chats in words.

    Args:
        limit_gb: the setting; 0: automatic.
        budget_bytes: what the engine allows now, which may be less; 0 without a model.
        token_bytes: K/V of one token.
        snapshot_bytes: one snapshot; 0 if the model needs none.
    """
    chat_bytes = _CHAT_TOKENS * token_bytes + _CHAT_SNAPSHOTS * snapshot_bytes
    limit = units.gigabytes(limit_gb * _GB) if limit_gb else words.automatic(_size(budget_bytes))
    if not budget_bytes or not chat_bytes:
        return limit
    return words.budget(limit=limit, num_chats=figures.about(budget_bytes // chat_bytes))


def _size(num_bytes: int) -> str:
    return figures.file_size(num_bytes) if num_bytes else ""


@dataclass(frozen=True, slots=True)
class Area:
    """A rectangle of the map."""

    x: float
    y: float
    width: float
    height: float


def areas(sizes: Sequence[int], whole: Area) -> list[Area]:
    """Divide a rectangle into areas in proportion to the sizes, as nearly square as possible.

    The sizes are in descending order. This is the squarified treemap of Bruls, Huizing and van
    Wijk.
    """
    total = sum(sizes)
    if not total or whole.width <= 0 or whole.height <= 0:
        return []
    shown = [max(size, total * _LEAST_SHARE) for size in sizes]
    scale = whole.width * whole.height / sum(shown)
    left = [size * scale for size in shown]
    found: list[Area] = []
    at, rest = 0, whole
    while at < len(left):
        side = max(1e-9, min(rest.width, rest.height))
        end, area = at + 1, left[at]
        worst = _worst(left[at], left[at], area, side)
        while end < len(left):
            wider = area + left[end]
            worse = _worst(left[at], left[end], wider, side)
            if worse > worst:
                break
            end, area, worst = end + 1, wider, worse
        row, rest = _row(left[at:end], area, rest)
        found += row
        at = end
    return found


def _worst(largest: float, smallest: float, area: float, side: float) -> float:
    """Return the highest ratio of the sides in a row of areas along a side."""
    return max(side * side * largest / (area * area), area * area / (side * side * smallest))


def _row(sizes: Sequence[float], area: float, rest: Area) -> tuple[list[Area], Area]:
    """Return the areas of a row along the shorter side, and the rest of the rectangle."""
    found: list[Area] = []
    if rest.width >= rest.height:
        width, y = area / max(1e-9, rest.height), rest.y
        for size in sizes:
            found.append(Area(rest.x, y, width, size / max(1e-9, width)))
            y += found[-1].height
        return found, Area(rest.x + width, rest.y, max(0.0, rest.width - width), rest.height)
    height, x = area / max(1e-9, rest.width), rest.x
    for size in sizes:
        found.append(Area(x, rest.y, size / max(1e-9, height), height))
        x += found[-1].width
    return found, Area(rest.x, rest.y + height, rest.width, max(0.0, rest.height - height))
