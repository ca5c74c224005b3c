"""The real window on the real engine, and hands that write in its conversations."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.bridge.garbage import GarbageSearch
from app.controllers.core import Core, Seams
from app.controllers.models import Catalog
from app.controllers.origin import SystemOrigin
from app.main import end
from app.paths import make_paths
from app.settings import load_settings
from app.store.conversations import open_store
from app.theme.palette import Theme
from app.widgets.commands import CommandId
from app.widgets.main_window import MainWindow
from engine.config import EngineConfig
from engine.engine import Engine
from engine.local_models import LocalModels
from engine.types import ConversationId


@dataclass(frozen=True, slots=True)
class RealWindow:
    """A window that is shown."""

    core: Core
    window: MainWindow

    def ask(self, text: str) -> ConversationId:
        """In a new conversation; the answer is not waited for."""
        self.window.commands[CommandId.NEW_CHAT].trigger()
        QTest.keyClicks(self.window.pane.composer.edit, text)
        QTest.keyClick(self.window.pane.composer.edit, Qt.Key.Key_Return)
        return self.core.library.current

    @property
    def num_at_once(self) -> int:
        """Answers of which the list says how fast they are written."""
        library = self.core.library
        rates = [library.activity(one.conversation_id) for one in library.summaries]
        return sum("tok/s" in rate for rate in rates)


@contextmanager
def open_real_window(
    data_dir: Path, model: Path | None = None, catalog: Catalog | None = None
) -> Generator[RealWindow]:
    """On the settings and conversations that an earlier window left in the folder."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    garbage = GarbageSearch(app)
    origin = SystemOrigin()
    config = EngineConfig(use_openblas=False)
    settings_path = data_dir / "settings.json"
    settings = load_settings(settings_path).settings
    core = Core(
        Seams(
            make_engine=lambda on_event: Engine(config, on_event),
            open_store=lambda: open_store(data_dir / "conversations.db", now=origin.now()),
            catalog=catalog or LocalModels(make_paths(data_dir)),
            origin=origin,
            settings=settings,
            settings_path=settings_path,
            model=model,
        )
    )
    theme = Theme(app, settings.appearance)
    window = MainWindow(theme, core, origin)
    core.open()
    window.show()
    window.activateWindow()
    core.start()
    try:
        yield RealWindow(core, window)
    finally:
        end(window, core)
        garbage.close()
        window.deleteLater()
        theme.deleteLater()
