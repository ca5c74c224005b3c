"""The menu command Show Branch Map, and the link between the map and the costs. Main thread."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.conversation.tree import NodeId
from app.theme.palette import Theme
from app.widgets.branch_map.window import BranchMapWindow
from app.widgets.chat_pane import ChatPane
from app.widgets.commands import Actions, CommandId, connect_actions


class BranchCommands(QObject):
    """Opens the branch map. ChatCommands enables the command."""

    def __init__(
        self, theme: Theme, core: Core, pane: ChatPane, actions: Actions, window: QWidget
    ) -> None:
        super().__init__(window)
        self._theme = theme
        self._core = core
        self._pane = pane
        self._main = window
        self._window: BranchMapWindow | None = None  # created on first use
        connect_actions(actions, {CommandId.BRANCH_MAP: self._open})

    def _open(self) -> None:
        if self._window is None:
            core, pane = self._core, self._pane
            self._window = BranchMapWindow(self._theme, core, pane, self._main)
            pane.view.verticalScrollBar().valueChanged.connect(self._window.note_place)
            self._window.ends_seen.connect(self._want_costs)
            core.branch_costs.changed.connect(self._show_costs)
        self._window.open()

    def _want_costs(self, ends: list[NodeId]) -> None:
        self._core.branch_costs.want(self._core.library.current, ends)

    def _show_costs(self) -> None:
        assert self._window is not None
        self._window.show_costs(self._core.branch_costs.costs)
