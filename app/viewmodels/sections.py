"""Rows of the sidebar: pinned conversations, folders, and sections by date. No Qt, no I/O.

`arrange` sorts the conversations into these groups. `make_rows` turns them into rows, with a
heading above each section. The rows of a closed folder are left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from operator import attrgetter

from app.conversation.folder import Folder
from app.conversation.placement import FolderId
from app.conversation.tree import ConversationSummary
from app.settings import ChatOrder
from app.viewmodels.conversations import ConversationRow, FolderRow, ListHeading, Row
from app.words import folders as words, window
from engine.types import ConversationId

_NUMBER = re.compile(r"(\d+)")
_DIGITS = 18  # digits of a number that are compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """The conversations that are not archived, in the groups of the sidebar."""

    order: ChatOrder = ChatOrder.RECENT
    pinned: tuple[ConversationSummary, ...] = ()
    folders: tuple[tuple[Folder, tuple[ConversationSummary, ...]], ...] = ()
    others: tuple[ConversationSummary, ...] = ()

    @property
    def in_order(self) -> list[ConversationSummary]:
        """All conversations from the top of the sidebar, those in closed folders too."""
        filed = (one for _folder, chats in self.folders for one in chats)
        return [*self.pinned, *filed, *self.others]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListState:
    """The values that the rows show beside the stored conversations."""

    now: float  # Unix seconds
    # Texts at the right of the conversations whose answer is being written.
    activity: Mapping[ConversationId, str] = field(default_factory=dict[ConversationId, str])
    unseen: frozenset[ConversationId] = frozenset()
    closed: frozenset[str] = frozenset()  # ids of the closed folders


class RowMaker:
    """Makes the rows of the sidebar. A row that has not changed is the same object as before."""

    def __init__(self) -> None:
        # Rows by identity, and the summary of each conversation's row. A deleted conversation keeps
        # its row here, because it may be restored.
        self._made: dict[str, Row] = {}
        self._summaries: dict[ConversationId, ConversationSummary] = {}

    def rows(self, arranged: Arrangement, state: ListState) -> list[Row]:
        """Return the rows of the conversations that are not archived."""
        rows: list[Row] = []
        if arranged.pinned:
            rows.append(self._same(ListHeading(words.PINNED)))
            rows += self._of(arranged.pinned, state)
        if arranged.folders:
            rows.append(self._same(ListHeading(words.FOLDERS)))
        for folder, chats in arranged.folders:
            is_open = folder.folder_id not in state.closed
            rows.append(FolderRow(folder.folder_id, folder.name, folder.color, len(chats), is_open))
            if is_open:
                rows += self._of(chats, state, folder.folder_id)
        for heading, chats in _sections(arranged, state.now):
            rows.append(self._same(ListHeading(heading)))
            rows += self._of(chats, state)
        return rows

    def archived_rows(
        self, archived: Sequence[ConversationSummary], order: ChatOrder, state: ListState
    ) -> list[Row]:
        """Return the rows of the archived conversations, under one heading."""
        chats = sort_chats(archived, order)
        return [self._same(ListHeading(words.ARCHIVED_HEADING)), *self._of(chats, state)]

    def _of(
        self,
        summaries: Iterable[ConversationSummary],
        state: ListState,
        folder_id: FolderId | None = None,
    ) -> Iterator[Row]:
        """Yield the rows of conversations. Most are unchanged, which two comparisons show."""
        made, known = self._made, self._summaries
        moving = state.activity.keys() | state.unseen
        for summary in summaries:
            conversation_id = summary.conversation_id
            if known.get(conversation_id) is summary and conversation_id not in moving:
                row = made.get(conversation_id)
                if row is not None and _is_still(row, folder_id):
                    yield row
                    continue
            known[conversation_id] = summary
            yield self._same(
                ConversationRow(
                    conversation_id,
                    summary.title,
                    state.activity.get(conversation_id, ""),
                    conversation_id in state.unseen,
                    summary.keep_ready,
                    folder_id,
                    summary.placement.pinned,
                )
            )

    def _same(self, row: Row) -> Row:
        """Return the row, or the one that was made before if it is equal."""
        known = self._made.get(row.key)
        if known != row:
            self._made[row.key] = known = row
        assert known is not None
        return known


def _is_still(row: Row, folder_id: FolderId | None) -> bool:
    """Return True if a row shows no activity and is in this folder."""
    assert isinstance(row, ConversationRow)
    return row.folder_id == folder_id and not row.activity and not row.unseen


def arrange(
    summaries: Iterable[ConversationSummary], folders: Iterable[Folder], order: ChatOrder
) -> Arrangement:
    """Return the conversations in groups, each in the given order. Archived ones are left out.

    A pinned conversation is in no other group. The folders are sorted by name.
    """
    known = {folder.folder_id: folder for folder in folders}
    filed: dict[FolderId, list[ConversationSummary]] = {one: [] for one in known}
    pinned: list[ConversationSummary] = []
    others: list[ConversationSummary] = []
    for summary in sort_chats(summaries, order):
        place = summary.placement
        if place.archived:
            continue
        if place.pinned:
            pinned.append(summary)
        elif place.folder_id is not None and place.folder_id in known:
            filed[place.folder_id].append(summary)
        else:
            others.append(summary)
    by_name = sorted(known.values(), key=lambda one: (title_key(one.name), one.created_at))
    return Arrangement(
        order=order,
        pinned=tuple(pinned),
        folders=tuple((folder, tuple(filed[folder.folder_id])) for folder in by_name),
        others=tuple(others),
    )


def sort_chats(
    summaries: Iterable[ConversationSummary], order: ChatOrder
) -> list[ConversationSummary]:
    match order:
        case ChatOrder.RECENT:
            return sorted(summaries, key=attrgetter("updated_at"), reverse=True)
        case ChatOrder.CREATED:
            return sorted(summaries, key=attrgetter("created_at"), reverse=True)
        case ChatOrder.TITLE:
            return sorted(summaries, key=lambda one: (title_key(one.title), -one.updated_at))


def title_key(title: str) -> tuple[tuple[int, int, str], ...]:
    """Return a key that sorts titles without regard to case, and "Part 2" before "Part 10"."""
    parts = _NUMBER.split(title.casefold())
    # The pattern splits off ASCII and other decimal digits; isdecimal() is true for all of them.
    return tuple(
        (0, int(part[:_DIGITS]), "") if part.isdecimal() else (1, 0, part) for part in parts if part
    )


def heading_of(day: date, today: date) -> str:
    """Return the section heading for a day, such as "Yesterday"."""
    if day >= today:
        return window.TODAY
    if day == today - timedelta(days=1):
        return window.YESTERDAY
    if day >= today - timedelta(days=7):
        return window.PREVIOUS_7_DAYS
    return window.month(day.month, None if day.year == today.year else day.year)


def _sections(arranged: Arrangement, now: float) -> list[tuple[str, Sequence[ConversationSummary]]]:
    """Return the conversations in no other group under headings: by their day, or all together."""
    chats = arranged.others
    if arranged.order is ChatOrder.TITLE:
        return [(words.ALL_CHATS, chats)] if chats else []
    sections: list[tuple[str, list[ConversationSummary]]] = []
    today = _day(now)
    start = math.inf  # Unix time at which the present section begins
    is_created = arranged.order is ChatOrder.CREATED
    for summary in chats:
        seconds = summary.created_at if is_created else summary.updated_at
        # Most rows need this comparison only. Finding the day takes longer than all the rest.
        if seconds < start:
            day = _day(seconds)
            start = datetime.combine(_first_day(day, today), datetime.min.time()).timestamp()
            sections.append((heading_of(day, today), []))
        sections[-1][1].append(summary)
    return [*sections]


def _first_day(day: date, today: date) -> date:
    """Return the first day of the section of a day."""
    if day >= today:
        return today
    if day == today - timedelta(days=1):
        return day
    week = today - timedelta(days=7)
    return week if day >= week else day.replace(day=1)


def _day(seconds: float) -> date:
    return datetime.fromtimestamp(seconds).astimezone().date()
