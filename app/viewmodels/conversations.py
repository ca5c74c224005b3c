"""Qt list model of the sidebar: headings, folders and conversations. Main thread.

sections.py makes the rows. To update the list, ConversationsModel inserts, moves and removes single
rows, so the selection and an open title editor stay. If more than MANY rows come, go or move, it
resets the list, which is faster.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from PySide6.QtCore import (
    QAbstractListModel,
    QMimeData,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)
from typing_extensions import override

from app.conversation.folder import FolderColor
from app.conversation.placement import FolderId
from app.words import folders, window as words
from engine.types import ConversationId

NO_PARENT = QModelIndex()
MANY = 200  # added, removed and moved rows from which on the list is reset
MIME_TYPE = "application/x-rejoinder-chats"  # kind of dragged data: ids, one on each line


@dataclass(frozen=True, slots=True)
class ListHeading:
    """The heading of a section of the sidebar, such as "Yesterday". It cannot be selected."""

    text: str


@dataclass(frozen=True, slots=True)
class FolderRow:
    """The row of a folder. A click shows or hides the rows of its conversations below it."""

    folder_id: FolderId
    name: str
    color: FolderColor
    count: int  # number of conversations in the folder
    is_open: bool

    @property
    def spoken(self) -> str:
        return folders.spoken(name=self.name, count=self.count, is_open=self.is_open)


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One conversation in the list."""

    conversation_id: ConversationId
    title: str
    activity: str = ""  # text at the right while an answer is written, such as "58 tok/s"
    unseen: bool = False  # True if the user has not opened the newest answer yet
    keep_ready: bool = False  # True if the user chose Keep in Memory for this conversation
    folder_id: FolderId | None = None  # folder below whose row this row is
    pinned: bool = False

    @property
    def spoken(self) -> str:
        """Text for screen readers: the title and the states of the conversation."""
        notes = (
            words.ANSWERING if self.activity else "",
            words.NEW_ANSWER if self.unseen else "",
            folders.PINNED_STATE if self.pinned else "",
            words.KEPT_READY if self.keep_ready else "",
        )
        return ", ".join(part for part in (self.title, *notes) if part)


Row = ListHeading | FolderRow | ConversationRow


class ConversationsModel(QAbstractListModel):
    """A QListView model with the rows of the sidebar.

    When the user edits a title, the model only emits rename_requested. The row changes later: the
    controller stores the title and calls set_rows().
    """

    rename_requested = Signal(object, str)  # arguments: ConversationId, new title
    folder_rename_requested = Signal(object, str)  # arguments: FolderId, new name

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Row] = []

    def set_rows(self, rows: list[Row]) -> None:
        """Replace the rows. Keep old rows that are still needed, so that an open editor stays."""
        if len(rows) == len(self._rows):
            changed = [at for at, row in enumerate(rows) if row is not self._rows[at]]
            if all(_identity(rows[at]) == _identity(self._rows[at]) for at in changed):
                self._update(rows, changed)
                return
        if _num_changes(self._rows, rows) > MANY:
            self.beginResetModel()
            self._rows = rows
            self.endResetModel()
            return
        self._remove_all_but({_identity(row) for row in rows})
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
                if self._rows[at] is not rows[at]:
                    self._bring(rows[at], at)
                at += 1

    def _update(self, rows: list[Row], changed: Iterable[int]) -> None:
        """Replace the rows at some indices, whose identities stay the same."""
        for at in changed:
            if self._rows[at] != rows[at]:
                self._rows[at] = rows[at]
                self.dataChanged.emit(self.index(at), self.index(at))

    def _remove_all_but(self, wanted: set[str]) -> None:
        for at in reversed(range(len(self._rows))):
            if _identity(self._rows[at]) not in wanted:
                self.beginRemoveRows(NO_PARENT, at, at)
                del self._rows[at]
                self.endRemoveRows()

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
        text = row_text(row)
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.EditRole:
                return text
            case Qt.ItemDataRole.ToolTipRole:
                return None if isinstance(row, ListHeading) else text
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
        if role != Qt.ItemDataRole.EditRole:
            return False
        if isinstance(row, ConversationRow):
            self.rename_requested.emit(row.conversation_id, str(value))
        elif isinstance(row, FolderRow):
            self.folder_rename_requested.emit(row.folder_id, str(value))
        return not isinstance(row, ListHeading)

    @override
    def flags(self, index: QModelIndex | QPersistentModelIndex) -> Qt.ItemFlag:
        flag = Qt.ItemFlag
        row = self._rows[index.row()] if index.isValid() else None
        if row is None or isinstance(row, ListHeading):
            return flag.NoItemFlags
        shared = flag.ItemIsEnabled | flag.ItemIsEditable | flag.ItemNeverHasChildren
        if isinstance(row, FolderRow):
            return shared
        return shared | flag.ItemIsSelectable | flag.ItemIsDragEnabled

    @override
    def mimeData(self, indexes: Iterable[QModelIndex]) -> QMimeData:
        """Return the ids of dragged conversations, and their titles as text for other apps."""
        rows = [self._rows[index.row()] for index in indexes]
        dragged = [row for row in rows if isinstance(row, ConversationRow)]
        data = QMimeData()
        data.setData(MIME_TYPE, "\n".join(row.conversation_id for row in dragged).encode())
        data.setText("\n".join(row.title for row in dragged))
        return data

    @override
    def mimeTypes(self) -> list[str]:
        return [MIME_TYPE]


def row_text(row: Row) -> str:
    match row:
        case ListHeading():
            return row.text
        case FolderRow():
            return row.name
        case ConversationRow():
            return row.title


def dragged_chats(data: QMimeData) -> list[ConversationId]:
    """Return the ids of the conversations in dragged data."""
    text = bytes(data.data(MIME_TYPE).data()).decode()
    return [ConversationId(one) for one in text.split("\n") if one]


def _identity(row: Row) -> str:
    match row:
        case ListHeading():
            return f"# {row.text}"
        case FolderRow():
            return f"/ {row.folder_id}"
        case ConversationRow():
            return row.conversation_id


def _num_changes(before: list[Row], after: list[Row]) -> int:
    """Return about how many rows must come, go or move to turn one list into the other."""
    old, new = [_identity(row) for row in before], [_identity(row) for row in after]
    old_set, new_set = set(old), set(new)
    kept_old = [one for one in old if one in new_set]
    kept_new = [one for one in new if one in old_set]
    moved = sum(was != now for was, now in zip(kept_old, kept_new, strict=True))
    # A single row that moves far shifts the rows between. These are no changes.
    if moved > MANY and _is_one_move(kept_old, kept_new):
        moved = 1
    return len(old_set ^ new_set) + moved


def _is_one_move(old: list[str], new: list[str]) -> bool:
    """Return True if the lists are equal without one entry."""
    first = next(at for at, one in enumerate(old) if one != new[at])
    for moved in (old[first], new[first]):
        if [one for one in old if one != moved] == [one for one in new if one != moved]:
            return True
    return False
