"""Costs in tooltips and menus: what an action would make the model read. Main thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject

from app.controllers.core import Core
from app.conversation.tree import NodeId, Setup
from app.widgets.thinking_chip import ThinkingChip
from app.widgets.transcript.rows.row import RowAction
from app.widgets.transcript.view import TranscriptView

# What to add to the number of a version, for the two buttons beside it.
_STEPS = {RowAction.PREVIOUS_VERSION: -1, RowAction.NEXT_VERSION: 1}

Tell = Callable[[str], object]


class CostTips(QObject):
    """Asks for the cost of the action whose tooltip is shown."""

    def __init__(self, core: Core, view: TranscriptView, thinking: ThinkingChip) -> None:
        super().__init__(view)
        self._core = core
        self._costs = core.action_costs
        view.tip_shown.connect(self._add_to_button)
        thinking.opened.connect(self._add_to_menu)

    def _add_to_button(self, key: str, action: RowAction, add: Tell) -> None:
        """Add the cost of a button of a message to its tooltip, if the action has a cost."""
        current, node_id = self._core.library.current, NodeId(key)
        if action is RowAction.REGENERATE:
            self._costs.of_regenerate(current, node_id, add)
        elif action in _STEPS:
            self._costs.of_neighbour(current, node_id, _STEPS[action], add)

    def _add_to_menu(self, setups: Sequence[tuple[Setup, Tell]]) -> None:
        """Add the costs of other options to a menu, one after the other."""
        if not setups:
            return
        (setup, add), *others = setups

        def go_on(cost: str) -> None:
            add(cost)
            self._add_to_menu(others)

        self._costs.of_setup(self._core.library.current, setup, go_on)
