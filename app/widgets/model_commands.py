"""The menu command that unloads the model. Main thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QObject

from app.controllers.core import Core
from app.widgets.commands import Actions, CommandId


class ModelCommands(QObject):
    """The command. It is off while an answer is running, which it would cut off."""

    def __init__(self, core: Core, parent: QObject) -> None:
        super().__init__(parent)
        self._core = core
        self._actions: Actions | None = None

    def slots(self) -> Mapping[CommandId, Callable[[], object]]:
        return {CommandId.UNLOAD: self._core.models.unload}

    def bind(self, actions: Actions) -> None:
        """Enable and disable the command from now on."""
        self._actions = actions
        self._core.models.status_changed.connect(self._refresh)
        self._core.turns.activity_changed.connect(self._refresh)
        self._refresh()

    def _refresh(self, *_: object) -> None:
        assert self._actions is not None
        core = self._core
        self._actions[CommandId.UNLOAD].setEnabled(core.models.can_unload and not core.turns.live)
