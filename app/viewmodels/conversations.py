"""The sidebar's list: conversations, newest first, under headings by date. Main thread."""

from __future__ import annotations

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
    """A section label; it can't be selected."""

    text: str


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One conversation. activity is what stands at its right while it is answering."""

    conversation_id: ConversationId
    title: str
    activity: str = ""
    unseen: bool = False
    keep_ready: bool = False

    @property
    def spoken(self) -> str:
        notes = (
            words.ANSWERING if self.activity else "",
            words.NEW_ANSWER if self.unseen else "",
            words.KEPT_READY if self.keep_ready else "",
        )
        return ", ".join(part for part in (self.title, *notes) if part)


Row = ListHeading | ConversationRow


def heading_of(day: date, today: date) -> str:
    """Which section a day belongs to."""
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
    """Summaries newest first, each section under its heading. now is Unix seconds."""
    today = _day(now)
    rows: list[Row] = []
    heading = ""
    for summary in summaries:
        section = heading_of(_day(summary.updated_at), today)
        if section != heading:
            heading = section
            rows.append(ListHeading(section))
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


def _day(seconds: float) -> date:
    return datetime.fromtimestamp(seconds).astimezone().date()


class ConversationsModel(QAbstractListModel):
    """Rows for a QListView. Editing a row asks for a new title; the list follows when it is stored."""

    rename_requested = Signal(object, str)  # ConversationId, title

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Row] = []

    def set_rows(self, rows: list[Row]) -> None:
        """Show these rows. Those that stay are moved: a title that is being edited goes on being edited."""
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
        for at, row in enumerate(rows):
            self._bring(row, at)

    def _bring(self, row: Row, at: int) -> None:
        """Make the row the one at this place; those above it are in place."""
        identity = _identity(row)
        places = range(at, len(self._rows))
        found = next((one for one in places if _identity(self._rows[one]) == identity), None)
        if found is None:
            self.beginInsertRows(NO_PARENT, at, at)
            self._rows.insert(at, row)
            self.endInsertRows()
            return
        if found != at:
            self.beginMoveRows(NO_PARENT, found, found, NO_PARENT, at)
            self._rows.insert(at, self._rows.pop(found))
            self.endMoveRows()
        if self._rows[at] != row:
            self._rows[at] = row
            self.dataChanged.emit(self.index(at), self.index(at))

    def set_activity(self, conversation_id: ConversationId, activity: str) -> None:
        """Say what happens in one conversation; called for every piece of an answer."""
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
