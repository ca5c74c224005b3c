"""The window about the memory and disk space of chats: a map, a table, actions. Main thread."""

from __future__ import annotations

from enum import Enum, auto

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QStackedWidget, QVBoxLayout, QWidget
from typing_extensions import override

from app.controllers.core import Core
from app.conversation.placement import FolderId
from app.settings import MEMORY_GB
from app.theme.palette import Theme
from app.theme.tokens import Size, Space
from app.viewmodels.memory_map import (
    MapRow,
    MapState,
    budget_text,
    map_rows,
    selection_line,
    summary,
)
from app.widgets.announcer import announce
from app.widgets.button import Button
from app.widgets.focus_order import set_tab_order
from app.widgets.line_height import Sentences
from app.widgets.memory_table import MemoryTable
from app.widgets.message_sheet import ask_before
from app.widgets.own_windows import OwnWindow
from app.widgets.segments import Segments
from app.widgets.slider import Slider
from app.widgets.treemap import Treemap
from app.widgets.window_size import keep_on_screen, within_screen
from app.words import commands, memory_map as words, settings, window as window_words
from engine.types import ConversationId

# The positions of the slider. The automatic limit is the highest one.
_LIMITS = (*sorted(filter(None, MEMORY_GB)), 0)
_GB = 10**9


class MemoryView(Enum):
    """The two views of the same values."""

    MAP = auto()
    TABLE = auto()


class MemoryWindow(OwnWindow):
    """The window. It is not modal. It is created once, and closing only hides it."""

    def __init__(self, theme: Theme, core: Core, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self.setObjectName("memory")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setWindowTitle(words.TITLE)
        self._core = core
        self._main = parent
        self._zoom = 0.0  # factor of the text for which the window was sized
        self._rows: list[MapRow] = []
        self._selected: frozenset[str] = frozenset()
        self._pointed = ""  # key of the part under the pointer
        self._result = ""  # sentence about the newest action, until the selection changes
        tabs: dict[object, str] = {MemoryView.MAP: words.MAP, MemoryView.TABLE: words.TABLE}
        self.tabs = Segments(words.TITLE, tabs, self, are_tabs=True)
        self.summary = Sentences(self)
        self.map = Treemap(theme, self)
        self.table = MemoryTable(theme, self)
        self.empty = Sentences(self)
        self.views = QStackedWidget(self)
        self.line = Sentences(self)
        self.keep = Button(commands.KEEP_READY, self)
        self.move_button = Button(words.MOVE, self)
        self.forget = Button(words.FORGET, self)
        self.open_button = Button(words.OPEN, self)
        self.note = Sentences(self, "small", words.NOTE)
        self._limit_label = QLabel(settings.MEMORY_LIMIT, self)
        self.slider = Slider(self)
        self.budget = Sentences(self)
        self._build()
        self._connect()

    def open(self) -> None:
        """Show the window, and bring it to the front."""
        self.show()
        self.raise_()
        self.activateWindow()

    @property
    def rows(self) -> list[MapRow]:
        return self._rows

    # Layout

    def _build(self) -> None:
        self.note.setProperty("tone", "secondary")
        self.empty.setProperty("tone", "secondary")
        self.empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        for view in (self.map, self.table, self.empty):
            self.views.addWidget(view)
        self.slider.setRange(0, len(_LIMITS) - 1)
        self.slider.setPageStep(1)
        # A lower limit evicts chats at once, so it is not set while the handle is on its way.
        self.slider.setTracking(False)
        self.slider.setAccessibleName(settings.MEMORY_LIMIT)
        self._limit_label.setBuddy(self.slider)
        top = QHBoxLayout()
        top.addStretch()
        top.addWidget(self.tabs)
        top.addStretch()
        buttons = QHBoxLayout()
        buttons.setSpacing(Space.S)
        for button in (self.open_button, self.keep, self.move_button, self.forget):
            buttons.addWidget(button)
        buttons.addStretch()
        budget = QHBoxLayout()
        budget.setSpacing(Space.M)
        budget.addWidget(self._limit_label)
        budget.addWidget(self.slider, 1)
        budget.addWidget(self.budget, 2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(Space.XL, Space.L, Space.XL, Space.L)
        layout.setSpacing(Space.M)
        layout.addLayout(top)
        layout.addWidget(self.summary)
        layout.addWidget(self.views, 1)
        layout.addWidget(self.line)
        layout.addLayout(buttons)
        layout.addWidget(self.note)
        layout.addLayout(budget)
        set_tab_order(
            self.tabs, self.map, self.table, self.open_button, self.keep, self.move_button,
            self.forget, self.slider,
        )  # fmt: skip
        self.tabs.show_value(MemoryView.MAP)

    def _connect(self) -> None:
        core = self._core
        self.tabs.chosen.connect(self._show_view)
        for view in (self.map, self.table):
            view.chosen.connect(self._select)
            view.opened.connect(self._open_chat)
        self.map.pointed.connect(self._point)
        self.open_button.clicked.connect(lambda: self._open_chat(next(iter(self._selected))))
        self.keep.clicked.connect(self._keep)
        self.move_button.clicked.connect(self._move)
        self.forget.clicked.connect(self._ask_to_forget)
        self.slider.sliderMoved.connect(self._preview)
        self.slider.valueChanged.connect(self._set_limit)
        core.memory_map.changed.connect(self._refresh_if_visible)
        core.memory_map.moved.connect(self._on_moved)
        core.library.list_changed.connect(self._refresh_if_visible)
        core.models.status_changed.connect(self._refresh_if_visible)
        core.preferences.changed.connect(self._fit_text)
        core.preferences.changed.connect(self._refresh_if_visible)
        self._fit_text()

    def _fit_text(self) -> None:
        """Make the window large enough for the present size of the text."""
        zoom = max(1.0, self._core.preferences.value.text_zoom / 100)
        if zoom == self._zoom:
            return
        self._zoom = zoom
        self.setMinimumSize(
            within_screen(self, QSize(round(Size.SETTINGS_WIDTH * zoom), Size.WINDOW_MIN_HEIGHT))
        )
        self.resize(within_screen(self, QSize(Size.MODELS_WIDTH, Size.MODELS_HEIGHT) * zoom))
        keep_on_screen(self)

    # Values

    def refresh(self) -> None:
        """Show the newest report."""
        report = self._core.memory_map.report
        self._rows = [] if report is None else map_rows(report, self._title_of, self._folder_of)
        self._selected &= {row.key for row in self._rows if row.is_chat}
        if not self._rows:
            self._result = ""  # the model of the chats was unloaded or lost
        self.summary.setText("" if report is None else summary(report))
        self.empty.setText(
            words.NO_MODEL if self._core.models.status.facts is None else words.EMPTY
        )
        self._show_view()
        self._refresh_actions()
        self._refresh_limit()

    def _refresh_if_visible(self, *_: object) -> None:
        if self.isVisible():
            self.refresh()

    def _title_of(self, conversation_id: ConversationId) -> str | None:
        found = self._core.library.listed.get(conversation_id)
        return None if found is None else found.title or window_words.NEW_TITLE

    def _folder_of(self, folder_id: FolderId) -> str | None:
        folder = self._core.folders.get(folder_id)
        return None if folder is None else folder.name

    def _show_view(self, *_: object) -> None:
        is_map = self.tabs.buttons[MemoryView.MAP].isChecked()
        shown = self.map if is_map else self.table
        shown.show_rows(self._rows, self._selected)  # the other view takes time too
        self.views.setCurrentWidget(shown if self._rows else self.empty)

    @property
    def _chosen(self) -> list[MapRow]:
        return [row for row in self._rows if row.key in self._selected]

    def _refresh_actions(self) -> None:
        chosen = self._chosen
        can_move = self._core.preferences.value.keep_on_disk
        self.open_button.setEnabled(len(chosen) == 1 and chosen[0].is_listed)
        self.keep.setEnabled(bool(chosen) and all(row.is_listed for row in chosen))
        is_kept = bool(chosen) and all(row.is_kept for row in chosen)
        self.keep.setText(words.END_KEEP if is_kept else commands.KEEP_READY)
        self.move_button.setEnabled(can_move and any(row.memory_bytes for row in chosen))
        self.move_button.setToolTip("" if can_move else words.NO_DISK)
        is_active = any(row.state is MapState.ACTIVE for row in chosen)
        self.forget.setEnabled(bool(chosen) and not is_active)
        pointed = [row for row in self._rows if row.key == self._pointed]
        self.line.setText(selection_line(pointed) or self._result or selection_line(chosen))

    def _refresh_limit(self) -> None:
        limit = self._core.preferences.value.memory_gb
        if self.slider.isSliderDown():
            return
        self.slider.setValue(_LIMITS.index(limit))
        report = self._core.memory_map.report
        budget = 0 if report is None else report.budget_bytes
        # The report may be older than a lower limit.
        self._show_limit(limit, min(budget, limit * _GB) if limit else budget)

    def _show_limit(self, limit_gb: int, budget_bytes: int) -> None:
        facts = self._core.models.status.facts
        token_bytes = 0 if facts is None else facts.kv_bytes_per_token
        snapshot_bytes = 0 if facts is None else facts.snapshot_bytes
        text = budget_text(limit_gb, budget_bytes, token_bytes, snapshot_bytes)
        self.budget.setText(text)
        self.slider.setAccessibleDescription(text)

    # Actions

    def _select(self, keys: frozenset[str]) -> None:
        self._selected, self._result = keys, ""
        self._show_view()
        self._refresh_actions()

    def _point(self, key: str) -> None:
        self._pointed = key
        self._refresh_actions()

    def _preview(self, position: int) -> None:
        self._show_limit(_LIMITS[position], _LIMITS[position] * _GB)

    def _set_limit(self, position: int) -> None:
        self._core.preferences.change(memory_gb=_LIMITS[position])
        self._core.memory_map.ask()

    def _open_chat(self, key: str) -> None:
        conversation_id = ConversationId(key)
        if conversation_id in self._core.library.listed:
            self._core.library.select(conversation_id)
            self._main.raise_()
            self._main.activateWindow()

    def _keep(self) -> None:
        """Keep the selected chats in memory, or no longer if all of them are kept."""
        chosen = self._chosen
        keep = not all(row.is_kept for row in chosen)
        for row in chosen:
            self._core.organiser.keep_ready(ConversationId(row.key), keep)
        self._core.memory_map.ask()

    def _move(self) -> None:
        chosen = [row for row in self._chosen if row.memory_bytes]
        self._core.memory_map.move_to_disk([ConversationId(row.key) for row in chosen])
        self._say(words.moving(chosen[0].title, len(chosen)))

    def _on_moved(self, conversation_ids: tuple[ConversationId, ...]) -> None:
        """Tell which of the chats are on disk now, and which are still in memory."""
        rows = [row for row in self._rows if row.key in conversation_ids]
        kept = [row for row in rows if row.memory_bytes]
        said = kept or rows
        if said:
            say = words.not_moved if kept else words.moved
            self._say(say(said[0].title, len(said)))
        else:  # the chats were forgotten meanwhile
            self._select(self._selected)

    def _say(self, sentence: str) -> None:
        self._result = sentence
        self._refresh_actions()
        announce(self, sentence)

    def _ask_to_forget(self) -> None:
        """Ask before state is dropped, because it can take minutes to make again."""
        chosen = self._chosen
        keys = [ConversationId(row.key) for row in chosen]
        question = words.forget_question(chosen[0].title, len(chosen))
        memory_map = self._core.memory_map
        ask_before(
            self, question, words.FORGET_NOTE, words.FORGET_VERB, lambda: memory_map.forget(keys)
        )

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._core.memory_map.watch(shown=True)
        self.refresh()

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._core.memory_map.watch(shown=False)
