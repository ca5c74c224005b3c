"""Qt list model of the sidebar: headings, folders and conversations. Main thread.

sections.py makes the rows. To update the list, ConversationsModel inserts, moves and removes single
rows, so the selection and an open title editor stay. If more than MANY rows come, go or move, it
resets the list, which is faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from app.viewmodels.chat_state import ChatState
from app.viewmodels.document_lines import FolderMark
from app.words import folders, units, window as words
from engine.types import ConversationId

NO_PARENT = QModelIndex()
MANY = 200  # moved or added rows, or removed ranges, from which on the list is reset
MIME_TYPE = "application/x-rejoinder-chats"  # kind of dragged data: ids, one on each line


@dataclass(frozen=True, slots=True)
class ListHeading:
    """The heading of a section of the sidebar, such as "Yesterday". It cannot be selected."""

    text: str

    @property
    def key(self) -> str:
        """An identity that no other row of a list has."""
        return f"# {self.text}"


@dataclass(frozen=True, slots=True)
class FolderRow:
    """The row of a folder. A click shows or hides the rows of its conversations below it."""

    folder_id: FolderId
    name: str
    color: FolderColor
    count: int  # number of conversations in the folder
    is_open: bool

    @property
    def key(self) -> str:
        return f"/ {self.folder_id}"

    @property
    def spoken(self) -> str:
        return folders.spoken(name=self.name, count=self.count, is_open=self.is_open)


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One conversation in the list."""

    conversation_id: ConversationId
    title: str
    # Text at the right while an answer is written or waited for: "58 tok/s", "Answering", "Waiting"
    activity: str = ""
    unseen: bool = False  # True if the user has not opened the newest answer yet
    keep_ready: bool = False  # True if the user chose Keep in Memory for this conversation
    folder_id: FolderId | None = None  # folder below whose row this row is
    pinned: bool = False

    @property
    def key(self) -> str:
        return self.conversation_id

    @property
    def is_written(self) -> bool:
        """True if the activity is the rate of an answer."""
        return self.activity.endswith(units.RATE)

    @property
    def spoken(self) -> str:
        """Text for screen readers: the title and the states of the conversation."""
        notes = (
            words.ANSWERING if self.is_written else self.activity.lower(),
            words.NEW_ANSWER if self.unseen else "",
            folders.PINNED_STATE if self.pinned else "",
            words.KEPT_READY if self.keep_ready else "",
        )
        return ", ".join(part for part in (self.title, *notes) if part)

    @property
    def tip(self) -> str:
        """Text of the tooltip: the title, and the meaning of the mark at its right."""
        mark = words.NEW_ANSWER if self.unseen else words.KEPT_READY if self.keep_ready else ""
        return f"{self.title}\n{mark[:1].upper()}{mark[1:]}".rstrip()


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
        # Function that returns the state of a conversation's cached state; None if it is not known.
        self.state_of: Callable[[ConversationId], ChatState | None] = _unknown
        # Function that returns the mark of a folder's documents; None if it has none.
        self.mark_of: Callable[[FolderId], FolderMark | None] = _unmarked

    def set_rows(self, rows: list[Row]) -> None:
        """Replace the rows. Keep old rows that are still needed, so that an open editor stays.

        An unchanged row must be the same object as before: only the rows between the first and the
        last other object are compared.
        """
        old, start = self._rows, _num_same(self._rows, rows)
        num_after = _num_same(old[::-1], rows[::-1])
        num_after = min(num_after, len(old) - start, len(rows) - start)
        wanted = rows[start : len(rows) - num_after]
        self._replace_changed(start, len(old) - num_after, wanted)
        ids = set(map(id, wanted))
        part = old[start : len(old) - num_after]
        runs = _runs([start + at for at, row in enumerate(part) if id(row) not in ids])
        known = set(map(id, part))
        if len(runs) > MANY or sum(one not in known for one in ids) > MANY:
            self._reset(rows)
            return
        for first, last in reversed(runs):
            self.beginRemoveRows(NO_PARENT, first, last)
            del self._rows[first : last + 1]
            self.endRemoveRows()
        self._arrange(rows, start, start + len(wanted), known)

    def _arrange(self, rows: list[Row], start: int, end: int, known: set[int]) -> None:
        """Insert the rows from `start` to `end` that are not known, and move the others."""
        at, num_moves = start, 0
        while at < end:
            if at < len(self._rows) and self._rows[at] is rows[at]:
                at += 1
            elif id(rows[at]) not in known:
                stop = at
                while stop < end and id(rows[stop]) not in known:
                    stop += 1
                self.beginInsertRows(NO_PARENT, at, stop - 1)
                self._rows[at:at] = rows[at:stop]
                self.endInsertRows()
                at = stop
            elif num_moves < MANY:
                self._move(rows, at)
                num_moves += 1
            else:
                self._reset(rows)
                return

    def _reset(self, rows: list[Row]) -> None:
        self.beginResetModel()
        self._rows = list(rows)
        self.endResetModel()

    def _replace_changed(self, start: int, end: int, wanted: list[Row]) -> None:
        """Replace the old rows from `start` to `end` whose identity now has another value."""
        ids = set(map(id, wanted))
        stale = {
            row.key: at for at, row in enumerate(self._rows[start:end], start) if id(row) not in ids
        }
        known = set(map(id, self._rows[start:end]))
        for row in wanted:
            at = stale.get(row.key) if id(row) not in known else None
            if at is not None:
                before, self._rows[at] = self._rows[at], row
                if before != row:
                    self.dataChanged.emit(self.index(at), self.index(at))

    def _move(self, rows: list[Row], at: int) -> None:
        """Move one known row, so that the old row at index `at` and the wanted one come closer.

        If the next old row is the wanted one, the old row here belongs further down. Otherwise
        bring the wanted row up.
        """
        if at + 1 < len(self._rows) and self._rows[at + 1] is rows[at]:
            row = self._rows[at]
            below = next(to for to in range(at + 1, len(rows)) if rows[to] is row)
            # New rows that are inserted later do not count.
            known = set(map(id, self._rows))
            to = at + sum(id(one) in known for one in rows[at:below]) + 1
            self.beginMoveRows(NO_PARENT, at, at, NO_PARENT, to)
            self._rows.insert(to - 1, self._rows.pop(at))
            self.endMoveRows()
            return
        found = next(one for one in range(at, len(self._rows)) if self._rows[one] is rows[at])
        self.beginMoveRows(NO_PARENT, found, found, NO_PARENT, at)
        self._rows.insert(at, self._rows.pop(found))
        self.endMoveRows()

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

    def tip_of(self, row: ConversationRow, line: str = "") -> str:
        """Return the tooltip of a conversation: its title and mark, then where its state is.

        line: the state and the cost of the next message, if they were counted.
        """
        state = self.state_of(row.conversation_id)
        below = line or ("" if state is None else state.text)
        return f"{row.tip}\n{below}" if below else row.tip

    def _folder_tip(self, row: FolderRow) -> str:
        mark = self.mark_of(row.folder_id)
        return row.name if mark is None else f"{row.name}\n{mark.text}"

    def _spoken(self, row: FolderRow | ConversationRow) -> str:
        if isinstance(row, FolderRow):
            mark = self.mark_of(row.folder_id)
            return row.spoken if mark is None else f"{row.spoken}, {mark.text}"
        state = self.state_of(row.conversation_id)
        return row.spoken if state is None else f"{row.spoken}, {state.text.lower()}"

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
                if isinstance(row, ConversationRow):
                    return self.tip_of(row)
                return None if isinstance(row, ListHeading) else self._folder_tip(row)
            case Qt.ItemDataRole.AccessibleTextRole:
                return text if isinstance(row, ListHeading) else self._spoken(row)
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
    def supportedDragActions(self) -> Qt.DropAction:
        return Qt.DropAction.MoveAction

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


def _num_same(one: list[Row], other: list[Row]) -> int:
    """Return the number of rows at the start of two lists that are the same objects."""
    pairs = enumerate(zip(one, other, strict=False))
    shorter = min(len(one), len(other))
    return next((at for at, (mine, theirs) in pairs if mine is not theirs), shorter)


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Return the ranges of consecutive numbers in a sorted list, as (first, last)."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def _unmarked(_folder_id: FolderId) -> None:
    """Return None: no folder has a mark."""


def _unknown(_conversation_id: ConversationId) -> None:
    return None
