"""The whole window on a rig, and the hands that use it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.main import end
from app.settings import Appearance, Settings
from app.theme.palette import Theme
from app.viewmodels.conversations import ConversationRow, ConversationsModel
from app.viewmodels.models import ModelPhase
from app.viewmodels.transcript import TranscriptItem
from app.widgets.commands import CommandId
from app.widgets.conversation_list import ConversationList
from app.widgets.main_window import MainWindow
from app.widgets.transcript.rows.row import RowAction
from engine.types import ConversationId
from tests.fakes.rig import FakeCatalog, Rig
from tests.fakes.transcript_stage import find

Key = Qt.Key
CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


class Stage:
    """A window that is shown, and what a person does to it."""

    def __init__(
        self,
        data_dir: Path,
        qtbot: QtBot,
        *,
        settings: Settings | None = None,
        catalog: FakeCatalog | None = None,
        hold_load: bool = False,
    ) -> None:
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        self.qtbot = qtbot
        self.rig = Rig(data_dir, settings=settings, catalog=catalog)
        self.engine = self.rig.engine
        self.engine.hold_load = hold_load
        self.theme = Theme(app, Appearance.LIGHT)
        self.window = MainWindow(self.theme, self.rig.core, self.rig.origin)
        self.pane = self.window.pane
        self.composer = self.pane.composer
        self.edit = self.composer.edit
        self.window.show()
        self.window.activateWindow()
        self.rig.start()
        qtbot.waitUntil(lambda: self.rig.models.status.phase is not ModelPhase.SEARCHING)
        if not hold_load:
            qtbot.waitUntil(lambda: not self.rig.models.status.will_be_ready)

    def close(self) -> None:
        """Idempotent."""
        if self.engine.closed:
            return
        end(self.window, self.rig.core)
        self.window.deleteLater()
        self.theme.deleteLater()

    @property
    def current(self) -> ConversationId:
        return self.rig.library.current

    @property
    def list(self) -> ConversationList:
        return self.window.sidebar.list

    @property
    def items(self) -> tuple[TranscriptItem, ...]:
        return self.pane.transcript.items

    @property
    def texts(self) -> list[str]:
        return [item.text for item in self.items]

    @property
    def rows(self) -> list[str]:
        """The conversation list as it reads, headings in it."""
        model = self.list.model()
        return [model.data(model.index(at, 0)) for at in range(model.rowCount())]

    def type(self, text: str) -> None:
        QTest.keyClicks(self.edit, text)

    def send(self, text: str) -> None:
        """Type and press Return; wait until the engine has it, or it is known to wait."""
        self.type(text)
        QTest.keyClick(self.edit, Key.Key_Return)
        self.settle()

    def answer(self, text: str) -> None:
        self.engine.write(text)
        self.engine.finish()
        self.settle()

    def chat(self, question: str, reply: str) -> None:
        self.send(question)
        self.answer(reply)

    def settle(self) -> None:
        """Let what is on its way between threads arrive."""
        self.rig.stored(lambda store: store.summaries())
        self.qtbot.wait(1)

    def run(self, command: CommandId) -> None:
        action = self.window.commands[command]
        assert action.isEnabled(), command
        action.trigger()
        self.settle()

    def click(self, action: RowAction) -> None:
        """The first target in the transcript that does this."""
        view = self.pane.view
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=find(view, action))
        self.settle()

    def click_row(self, title: str) -> None:
        self.list.scrollTo(self._index(title))
        rect = self.list.visualRect(self._index(title))
        QTest.mouseClick(
            self.list.viewport(),
            Qt.MouseButton.LeftButton,
            pos=rect.topLeft() + QPoint(20, rect.height() // 2),
        )
        self.settle()

    def row(self, title: str) -> ConversationRow:
        model = self.list.model()
        assert isinstance(model, ConversationsModel)
        row = model.row_at(self._index(title))
        assert isinstance(row, ConversationRow)
        return row

    def _index(self, title: str) -> QModelIndex:
        return self.list.model().index(self.rows.index(title), 0)
