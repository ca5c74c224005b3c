"""The status of the model in use and the rows of the model picker, as the window shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt
from typing_extensions import override

from app.conversation.text import FILE_NAME_LEN, one_line
from app.hub.values import Download, DownloadState
from app.viewmodels import figures
from app.viewmodels.phases import (
    Importing,
    Loading,
    Phase,
    Planned,
    Preparing,
    Reading,
    Stopping,
    Waiting,
)
from app.words import (
    hub as hub_words,
    models as words,
    several,
    state as state_words,
    window as window_words,
)
from engine.catalog.card import ModelCard
from engine.events import ModelFacts
from engine.model_titles import model_title
from engine.problem import Problem

NO_PARENT = QModelIndex()


class ModelPhase(StrEnum):
    """The phases from the search for a model until it is loaded or has failed to load.

    The stages of loading have the values of the engine's LoadStage.
    """

    SEARCHING = "searching"  # the app searches the model folders
    UNPACKING = "unpacking"  # the app makes the starter model's folder
    NONE = "none"  # no usable model was found; ModelStatus.problem has the reason
    IMPORTING = "importing"  # the engine imports its libraries
    CLOSING = "closing"  # the engine ends its work with the model before, and unloads it
    CONNECTING = "connecting"  # the Macs that hold the model together start and connect
    LOADING = "loading"  # the engine loads the weights
    CHECKING = "checking"  # the weights are loaded; the engine tests the model
    READY = "ready"
    FAILED = "failed"  # the model could not be loaded; ModelStatus.problem has the reason
    # The folder of the model is gone: removed, or on a disk that is not connected. The model is
    # loaded if its folder comes back.
    GONE = "gone"


WILL_BE_READY = frozenset(
    {
        ModelPhase.SEARCHING,
        ModelPhase.UNPACKING,
        ModelPhase.IMPORTING,
        ModelPhase.CLOSING,
        ModelPhase.CONNECTING,
        ModelPhase.LOADING,
        ModelPhase.CHECKING,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """The status of the model that is in use or being loaded."""

    phase: ModelPhase
    path: str = ""
    name: str = ""
    before: str = ""  # name of the model that is unloaded in the phase CLOSING
    fraction: float = 0.0  # progress of the phase, 0 to 1
    loaded_bytes: int = 0  # size in bytes of the weights loaded so far
    total_bytes: int = 0  # size in bytes of all weights
    # True if the engine unloaded the model of phase READY. The next request loads it again.
    is_unloaded: bool = False
    num_machines: int = 0  # number of Macs that hold the model together; 0: the app itself does
    facts: ModelFacts | None = None  # None until the model is loaded
    problem: Problem | None = None  # the reason why there is no model or it could not be loaded

    @property
    def will_be_ready(self) -> bool:
        return self.phase in WILL_BE_READY


# Status texts of the phases without a number.
_WORDS = {
    ModelPhase.SEARCHING: words.LOOKING,
    ModelPhase.IMPORTING: words.STARTING,
    ModelPhase.CONNECTING: words.CONNECTING,
    ModelPhase.CHECKING: words.CHECKING,
}


def state_word(status: ModelStatus) -> str:
    """Return the status text for the sidebar, where it is shown under the model's name."""
    match status.phase:
        case ModelPhase.UNPACKING:
            return words.preparing(figures.percent(status.fraction))
        case ModelPhase.CLOSING:
            return window_words.LOADING
        case ModelPhase.LOADING:
            return words.loading(figures.percent(status.fraction))
        case ModelPhase.READY:
            ready = words.UNLOADED if status.is_unloaded else words.READY
            return several.ready_on(status.num_machines) if status.num_machines > 1 else ready
        case _:
            return _WORDS.get(status.phase, words.NOT_LOADED)


def work_word(phases: Sequence[Phase]) -> str:
    """Return the status text while answers are written, read for, stopped or waited for; else "".

    A chat that waits for the model has no text here: state_word() tells about the model.
    """
    planned = [one for one in phases if isinstance(one, Planned)]
    num_writing = sum(one.is_read for one in planned)
    if num_writing:
        return words.answering(num_writing)
    reading = next((one for one in phases if isinstance(one, Reading)), None)
    if reading is not None or planned:
        share = 0.0 if reading is None else reading.done / max(1, reading.total)
        return words.reading(figures.percent(share))
    if any(isinstance(one, Stopping) for one in phases):
        return state_words.STOPPING
    is_waiting = any(isinstance(one, Waiting) for one in phases)
    return state_words.waiting(0) if is_waiting else ""


def waiting_phase(status: ModelStatus) -> Phase:
    """Return the phase to show above an answer that waits for the model."""
    match status.phase:
        case ModelPhase.SEARCHING | ModelPhase.CONNECTING:
            return Preparing(_WORDS[status.phase])
        case ModelPhase.UNPACKING:
            return Preparing(words.preparing_demo(figures.percent(status.fraction)))
        case ModelPhase.CLOSING:
            return Waiting(0, state_words.waiting_to_close(status.before))
        case ModelPhase.LOADING:
            return Loading(
                name=status.name,
                fraction=status.fraction,
                loaded_bytes=status.loaded_bytes,
                total_bytes=status.total_bytes,
            )
        case ModelPhase.CHECKING:
            return Preparing(words.checking(status.name))
        case _:
            return Importing()


def seeing_model(cards: tuple[ModelCard, ...]) -> ModelCard | None:
    """Return the largest model on this computer that sees pictures and can be used, or None."""
    fit = (card for card in cards if card.usable and card.sees)
    return max(fit, key=lambda card: card.num_parameters, default=None)


def describe(card: ModelCard) -> str:
    """Return a model's description for the picker, such as "9B · 4-bit · 5.2 GB · Text only"."""
    parts: list[str] = []
    if card.num_parameters > 0:
        parts.append(figures.parameters(card.num_parameters))
    if card.bits > 0 and (card.usable or card.num_parameters > 0):
        parts.append(words.bits(f"{card.bits:.2g}"))
    if card.size_bytes > 0:
        parts.append(figures.file_size(card.size_bytes))
    if card.sees:
        parts.append(words.SEES)
    elif card.text_only:
        parts.append(words.TEXT_ONLY)
    return " · ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class PickerRow:
    """One model in the picker."""

    path: Path
    name: str
    description: str  # the second line: parameters, bits, size, kind
    source: str  # "Hugging Face", "LM Studio" or a folder
    state: str = ""  # text at the right, such as "Loaded"; empty if the model is not in use
    fraction: float | None = None  # progress of loading, 0 to 1; None if no progress bar is shown
    sentence: str = ""  # the reason why the model cannot be used, or a note about the model
    usable: bool = True

    @property
    def spoken(self) -> str:
        """Text for screen readers: all texts of the row."""
        parts = (self.name, self.description, self.source, self.state, self.sentence)
        return ", ".join(part for part in parts if part)


def picker_rows(
    cards: tuple[ModelCard, ...], status: ModelStatus, downloads: tuple[Download, ...] = ()
) -> tuple[PickerRow, ...]:
    """Make the rows of the picker: usable models first, then unusable ones with the reason.

    What has arrived of a download is one of the models, and is shown as a download.
    """
    arriving = {one.repo_id: one for one in downloads if one.state is not DownloadState.DONE}
    rows: list[PickerRow] = []
    for card in sorted(cards, key=lambda card: not card.usable):
        download = None if card.usable else arriving.get(repository_of(card.path))
        rows.append(_row(card, status) if download is None else _arriving_row(card, download))
    return tuple(rows)


def _arriving_row(card: ModelCard, download: Download) -> PickerRow:
    is_running = download.state is DownloadState.RUNNING
    percent = figures.percent(download.fraction)
    return PickerRow(
        path=card.path,
        name=card.title,
        description="",
        source=card.source.value,
        state=words.downloading(percent) if is_running else hub_words.STATES[download.state.value],
        fraction=download.fraction,
        usable=False,
    )


def _row(card: ModelCard, status: ModelStatus) -> PickerRow:
    problem = card.problem
    state, fraction = "", None
    if status.path == str(card.path):
        is_loaded = status.phase is ModelPhase.READY and not status.is_unloaded
        state = words.LOADED if is_loaded else state_word(status)
        fraction = status.fraction if status.will_be_ready else None
        problem = problem or status.problem
    sentence = words.DEMO_NOTE if card.is_starter else ""
    return PickerRow(
        path=card.path,
        name=card.title,
        description=describe(card),
        source=card.source.value,
        state=state,
        fraction=fraction,
        sentence=sentence if problem is None else f"{problem.title} {problem.cause}",
        usable=card.usable,
    )


def repository_of(folder: Path) -> str:
    """Return the id of the repository that a folder of the Hub's cache belongs to, or ""."""
    if folder.parent.name != "snapshots":
        return ""
    kind, _, name = folder.parent.parent.name.partition("--")
    return name.replace("--", "/", 1) if kind == "models" else ""


def model_name(folder: Path) -> str:
    """Return a name for the model that a folder held, without looking at the disk."""
    return model_title(one_line(repository_of(folder) or folder.name, FILE_NAME_LEN))


def only_demo(cards: tuple[ModelCard, ...]) -> bool:
    """Return True if there is no usable model, or only the demo model."""
    return not any(card.usable and not card.is_starter for card in cards)


def shown_name(status: ModelStatus, cards: tuple[ModelCard, ...]) -> str:
    """Return the model's name for the toolbar button and the sidebar."""
    for card in cards:
        if str(card.path) == status.path:
            return card.title
    return status.name or words.NO_MODEL


class PickerModel(QAbstractListModel):
    """A QListView model with the rows of the model picker."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: tuple[PickerRow, ...] = ()

    def set_rows(self, rows: tuple[PickerRow, ...]) -> None:
        """Replace the rows. If the models and their order are unchanged, do not reset the list."""
        if [row.path for row in rows] == [row.path for row in self._rows]:
            self._rows = rows
            if rows:
                self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def row_at(self, index: QModelIndex | QPersistentModelIndex) -> PickerRow:
        return self._rows[index.row()]

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
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return row.name
            case Qt.ItemDataRole.AccessibleTextRole:
                return row.spoken
            case Qt.ItemDataRole.ToolTipRole:
                return str(row.path)
            case _:
                return None

    @override
    def flags(self, index: QModelIndex | QPersistentModelIndex) -> Qt.ItemFlag:
        if not index.isValid() or not self._rows[index.row()].usable:
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemIsEnabled
