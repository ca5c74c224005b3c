"""The main window on the real engine, driven by a test.

A RealWindow is started on a data folder and a model folder. As in the app, settings and
conversations come from the data folder, the engine runs on its own thread, and garbage is collected
on the main thread only. After close() a test may call launch() again, as a user restarts the app.
The seeded random user (tests/person) is a subclass. streaming_app.py needs no window and uses only
`real_core`.
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from typing_extensions import override

from app.bridge.garbage import GarbageSearch
from app.controllers.catalog import Catalog
from app.controllers.core import Core
from app.controllers.origin import SystemOrigin
from app.conversation.preset import Preset
from app.conversation.tree import Setup
from app.paths import make_paths
from app.settings import Settings, load_settings
from app.store.place import DataPlace
from app.widgets.commands import CommandId
from engine.config import EngineConfig
from engine.hosts.hostfile import Hosts
from engine.hosts.switched_engine import SwitchedEngine
from engine.local_models import LocalModels
from engine.types import ConversationId
from tests.fakes.rig import make_core
from tests.fakes.window_driver import WindowDriver


def real_core(
    data_dir: Path,
    model: Path | None,
    settings: Settings,
    catalog: Catalog | None = None,
    *,
    debug: bool = False,
    hosts: Hosts | None = None,
) -> Core:
    """Make the app's controllers with the real engine, which runs on its own thread.

    With `hosts`, the engine runs in stages."""
    return make_core(
        data_dir,
        lambda on_event: SwitchedEngine(
            EngineConfig(
                use_openblas=False,
                disk_rest_s=0.0,
                picture_folder=DataPlace(data_dir).pictures.folder,
            ),
            on_event,
        ),
        catalog=catalog or LocalModels(make_paths(data_dir)),
        origin=SystemOrigin(),
        settings=settings,
        model=model,
        debug=debug,
        hosts=hosts,
    )


class RealWindow(WindowDriver):
    """A main window with the settings and conversations that are stored in `data_dir`."""

    def __init__(
        self,
        data_dir: Path,
        catalog: Catalog | None = None,
        *,
        debug: bool = False,
        hosts: Hosts | None = None,
    ) -> None:
        self._data_dir = data_dir
        self._catalog = catalog
        self._debug = debug
        self._hosts = hosts

    def launch(self, model: Path | None = None) -> None:
        """Open the window and load `model`, in stages if there are hosts.

        If `model` is None, load the model named in the settings, or else the best model found."""
        self._garbage = GarbageSearch(QApplication.instance())
        settings = load_settings(make_paths(self._data_dir).settings).settings
        core = real_core(
            self._data_dir, model, settings, self._catalog, debug=self._debug, hosts=self._hosts
        )
        self.open(core, SystemOrigin(), settings.appearance)

    @override
    def close(self) -> None:
        if self.is_open:
            super().close()
            self._garbage.close()

    def limit_answers(self, model: Path, setup: Setup) -> None:
        """Use a setup, for example with few tokens, in all new conversations with a model."""
        limited = Preset(name="short answers", setup=setup)
        self.core.presets.save_preset(limited)
        self.core.presets.choose(str(model), limited.name)
        self.settle()

    def ask(self, text: str) -> ConversationId:
        """Send a message in a new conversation and return its id. Do not wait for the answer."""
        self.window.commands[CommandId.NEW_CHAT].trigger()
        self.type(text)
        QTest.keyClick(self.edit, Qt.Key.Key_Return)
        return self.current

    @property
    def num_at_once(self) -> int:
        """Number of answers in progress: rows of the chat list that show tokens per second."""
        return sum("tok/s" in one.activity for one in self.core.turns.live.values())
