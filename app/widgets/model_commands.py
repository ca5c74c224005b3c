"""The menu commands for models, and the window that they open. Main thread."""

from __future__ import annotations

from functools import cached_property

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget

from app.controllers.core import Core
from app.theme.palette import Theme
from app.viewmodels.cost import other_model_cost
from app.widgets.commands import Actions, CommandId, connect_actions
from app.widgets.dialogs import ask_for_folder
from app.widgets.folder_watch import FolderWatch
from app.widgets.memory_window import MemoryWindow
from app.widgets.model_picker import ModelPicker
from app.widgets.models_window import ModelsTab, ModelsWindow
from app.widgets.toolbar import Toolbar


class ModelCommands(QObject):
    """The commands. Unload is off while an answer is running, which it would cut off."""

    def __init__(
        self, theme: Theme, core: Core, toolbar: Toolbar, actions: Actions, window: QWidget
    ) -> None:
        super().__init__(window)
        self._theme = theme
        self._core = core
        self._toolbar = toolbar
        self._actions = actions
        self._window = window
        self._models: ModelsWindow | None = None  # created on first use
        self._folder_watch = FolderWatch(core.models, window)
        slots = {
            CommandId.CHOOSE_MODEL: self.choose_model,
            CommandId.GET_MODELS: self.get_models,
            CommandId.ADD_FOLDER: self._add_folder,
            CommandId.UNLOAD: core.models.unload,
            CommandId.MEMORY_MAP: lambda: self.memory.open(),  # noqa: PLW0108 (made on first use)
        }
        connect_actions(actions, slots)
        core.models.status_changed.connect(self._refresh)
        core.turns.activity_changed.connect(self._refresh)
        self._refresh()

    @cached_property
    def picker(self) -> ModelPicker:
        """The model picker, which is created when it is first opened."""
        picker = ModelPicker(self._theme, self._core.models, self._core.hub, self._window)
        picker.get_models_requested.connect(self.get_models)
        picker.add_folder_requested.connect(self._add_folder)
        self._folder_watch.add_list(picker)
        return picker

    @cached_property
    def memory(self) -> MemoryWindow:
        """The window about memory and storage, which is created when it is first opened."""
        return MemoryWindow(self._theme, self._core, self._window)

    def choose_model(self) -> None:
        models, num_tokens = self._core.models, self._core.prompt_sizes.num_tokens
        usable = sum(card.usable for card in models.cards)
        cost = other_model_cost(num_tokens, usable)
        self.picker.open_below(self._toolbar.model_button, cost)

    def get_models(self) -> None:
        self._open_models(None)

    def show_downloads(self) -> None:
        self._open_models(ModelsTab.DOWNLOADS)

    def _open_models(self, tab: ModelsTab | None) -> None:
        if self._models is None:
            self._models = ModelsWindow(self._core, self._window)
            self._folder_watch.add_list(self._models)
        self._models.open(tab)

    def _add_folder(self) -> None:
        ask_for_folder(self._window, self._core.folder_search.add)

    def _refresh(self, *_: object) -> None:
        can_unload = self._core.models.can_unload and not self._core.turns.live
        self._actions[CommandId.UNLOAD].setEnabled(can_unload)
