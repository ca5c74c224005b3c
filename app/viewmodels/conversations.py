"""Qt list model of the sidebar: conversations, newest first, in sections by date. Main thread.

make_rows() turns stored summaries into rows. To update the list, ConversationsModel inserts, moves
and removes single rows. It does not reset the list while old and new rows overlap, so the selection
and an open title editor stay.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)
from typing_extensions import override

from app.conversation.tree import ConversationSummary
from app.words import window as words
from engine.types import ConversationId

NO_PARENT = QModelIndex()


@dataclass(frozen=True, slots=True)
class ListHeading:
    """The heading of a section of the sidebar, such as "Yesterday". It cannot be selected."""

    text: str


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One conversation in the list."""

    conversation_id: ConversationId
    title: str
    activity: str = ""  # text at the right while an answer is written, such as "58 tok/s"
    unseen: bool = False  # True if the user has not opened the newest answer yet
    keep_ready: bool = False  # True if the user chose Keep in Memory for this conversation

    @property
    def spoken(self) -> str:
        """Text for screen readers: the title and the states of the conversation."""
        notes = (
            words.ANSWERING if self.activity else "",
            words.NEW_ANSWER if self.unseen else "",
            words.KEPT_READY if self.keep_ready else "",
        )
        return ", ".join(part for part in (self.title, *notes) if part)


Row = ListHeading | ConversationRow


def heading_of(day: date, today: date) -> str:
    """Return the section heading for a day, such as "Yesterday"."""
    if day >= today:
        return words.TODAY
    if day == today - timedelta(days=1):
        return words.YESTERDAY
    if day >= today - timedelta(days=7):
        return words.PREVIOUS_7_DAYS
    return words.month(day.month, None if day.year == today.year else day.year)


def make_rows(
    summaries: Sequence[ConversationSummary],
    activity: Callable[[ConversationId], str],
    unseen: frozenset[ConversationId],
    now: float,
) -> list[Row]:
    """Make the rows of the list: the heading of each section, then its conversations.

    `summaries` must be sorted, newest first. `now` is the Unix time in seconds.
    """
    today = _day(now)
    rows: list[Row] = []
    start = math.inf  # Unix time at which the present section begins
    for summary in summaries:
        # Most rows need this comparison only. Finding the day takes longer than all the rest.
        if summary.updated_at < start:
            day = _day(summary.updated_at)
            start = datetime.combine(_first_day(day, today), datetime.min.time()).timestamp()
            rows.append(ListHeading(heading_of(day, today)))
        rows.append(
            ConversationRow(
                summary.conversation_id,
                summary.title,
                activity(summary.conversation_id),
                summary.conversation_id in unseen,
                summary.keep_ready,
            )
        )
    return rows


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


class ConversationsModel(QAbstractListModel):
    """A QListView model with the rows of the sidebar.

    When the user edits a title, the model only emits rename_requested. The row changes later: the
    controller stores the title and calls set_rows().
    """

    rename_requested = Signal(object, str)  # arguments: ConversationId, new title

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Row] = []

    def set_rows(self, rows: list[Row]) -> None:
        """Replace the rows. Keep old rows that are still needed, so that an open editor stays."""
        wanted = {_identity(row) for row in rows}
        if wanted.isdisjoint(_identity(row) for row in self._rows):
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()
            return
        for at in reversed(range(len(self._rows))):
            if _identity(self._rows[at]) not in wanted:
                self.beginRemoveRows(NO_PARENT, at, at)
                del self._rows[at]
                self.endRemoveRows()
        known = {_identity(row) for row in self._rows}
        at = 0
        while at < len(rows):
            end = at
            while end < len(rows) and _identity(rows[end]) not in known:
                end += 1
            if end > at:
                self.beginInsertRows(NO_PARENT, at, end - 1)
                self._rows[at:at] = rows[at:end]
                self.endInsertRows()
                at = end
            else:
                if self._rows[at] != rows[at]:
                    self._bring(rows[at], at)
                at += 1

    def _bring(self, row: Row, at: int) -> None:
        """Move a known row to index `at`, and update it.

        The rows before `at` must already be in their final places.
        """
        identity = _identity(row)
        places = range(at, len(self._rows))
        found = next(one for one in places if _identity(self._rows[one]) == identity)
        if found != at:
            self.beginMoveRows(NO_PARENT, found, found, NO_PARENT, at)
            self._rows.insert(at, self._rows.pop(found))
            self.endMoveRows()
        if self._rows[at] != row:
            self._rows[at] = row
            self.dataChanged.emit(self.index(at), self.index(at))

    def set_activity(self, conversation_id: ConversationId, activity: str) -> None:
        """Set the activity text of a conversation. Emit dataChanged only if the text has changed.

        This method is called for every text delta of an answer.
        """
        index = self.index_of(conversation_id)
        row = self._rows[index.row()] if index.isValid() else None
        if isinstance(row, ConversationRow) and row.activity != activity:
            self._rows[index.row()] = replace(row, activity=activity)
            self.dataChanged.emit(index, index)

    def row_at(self, index: QModelIndex | QPersistentModelIndex) -> Row:
        return self._rows[index.row()]

    def index_of(self, conversation_id: ConversationId | None) -> QModelIndex:
        for at, row in enumerate(self._rows):
            if isinstance(row, ConversationRow) and row.conversation_id == conversation_id:
                return self.index(at)
        return QModelIndex()

    @override
    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = NO_PARENT) -> int:
        return 0 if parent.isValid() else len(self._rows)

    @override
    def data(
        self,
        index: QModelIndex | QPersistentModelIndex,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> object:
        row = self._rows[index.row()]
        text = row.text if isinstance(row, ListHeading) else row.title
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return text
            case Qt.ItemDataRole.ToolTipRole:
                return text if isinstance(row, ConversationRow) else None
            case Qt.ItemDataRole.AccessibleTextRole:
                return text if isinstance(row, ListHeading) else row.spoken
            case _:
                return None

    @override
    def setData(
        self,
        index: QModelIndex | QPersistentModelIndex,
        value: object,
        role: int = Qt.ItemDataRole.EditRole,
    ) -> bool:
        row = self._rows[index.row()]
        if role != Qt.ItemDataRole.EditRole or not isinstance(row, ConversationRow):
            return False
        self.rename_requested.emit(row.conversation_id, str(value))
        return True

    @override
    def flags(self, index: QModelIndex | QPersistentModelIndex) -> Qt.ItemFlag:
        if not index.isValid() or isinstance(self._rows[index.row()], ListHeading):
            return Qt.ItemFlag.NoItemFlags
        flag = Qt.ItemFlag
        return (
            flag.ItemIsSelectable
            | flag.ItemIsEnabled
            | flag.ItemIsEditable
            | flag.ItemNeverHasChildren
        )


def _identity(row: Row) -> str:
    return row.text if isinstance(row, ListHeading) else row.conversation_id
