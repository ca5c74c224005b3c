"""The window driver with the real engine."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from typing_extensions import override

from app.bridge.garbage import GarbageSearch
from app.controllers.core import Core
from app.controllers.models import Catalog
from app.controllers.origin import SystemOrigin
from app.paths import make_paths
from app.settings import Settings, load_settings
from app.widgets.commands import CommandId
from engine.config import EngineConfig
from engine.engine import Engine
from engine.local_models import LocalModels
from engine.types import ConversationId
from tests.fakes.ask_store import PATIENCE_S
from tests.fakes.rig import make_core
from tests.fakes.window_driver import WindowDriver


def real_core(
    data_dir: Path,
    model: Path | None,
    settings: Settings,
    catalog: Catalog | None = None,
    *,
    debug: bool = False,
) -> Core:
    """Make the app's controllers with the real engine."""
    return make_core(
        data_dir,
        lambda on_event: Engine(EngineConfig(use_openblas=False), on_event),
        catalog=catalog or LocalModels(make_paths(data_dir)),
        origin=SystemOrigin(),
        settings=settings,
        model=model,
        debug=debug,
    )


class RealWindow(WindowDriver):
    """A window with the settings and conversations that an earlier one left in the folder."""

    patience_s: ClassVar[float] = PATIENCE_S

    def __init__(
        self, data_dir: Path, catalog: Catalog | None = None, *, debug: bool = False
    ) -> None:
        self._data_dir = data_dir
        self._catalog = catalog
        self._debug = debug

    def launch(self, model: Path | None = None) -> None:
        self._garbage = GarbageSearch(QApplication.instance())
        settings = load_settings(make_paths(self._data_dir).settings).settings
        core = real_core(self._data_dir, model, settings, self._catalog, debug=self._debug)
        self.open(core, SystemOrigin(), settings.appearance)

    @override
    def close(self) -> None:
        if self.is_open:
            super().close()
            self._garbage.close()

    def ask(self, text: str) -> ConversationId:
        """Send a message in a new conversation; the answer is not waited for."""
        self.window.commands[CommandId.NEW_CHAT].trigger()
        self.type(text)
        QTest.keyClick(self.edit, Qt.Key.Key_Return)
        return self.current

    @property
    def num_at_once(self) -> int:
        """Number of answers whose rate the conversation list shows."""
        library = self.core.library
        rates = [library.activity(one.conversation_id) for one in library.summaries]
        return sum("tok/s" in rate for rate in rates)
