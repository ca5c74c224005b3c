"""The main window on a fake engine, for tests of widgets and of whole user actions.

A Stage is a WindowDriver that is open when its constructor returns. A test calls user actions
(`send`, `click`, `run`) and emits answers of the model (`answer`, `engine.write`). It then checks
the window (`texts`, `items`, `rows`) or the store (`stored`). Controllers and store are real; they
come from rig.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtTest import QTest

from app.settings import Settings
from app.viewmodels.conversations import ConversationRow, ConversationsModel
from app.viewmodels.models import ModelPhase
from app.widgets.conversation_list import ConversationList
from app.widgets.transcript.rows.row import RowAction
from tests.fakes.fake_engine import FACTS
from tests.fakes.rig import FakeCatalog, Rig
from tests.fakes.transcript_stage import targets
from tests.fakes.window_driver import WindowDriver

Key = Qt.Key
CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


class Stage(WindowDriver):
    """An open main window on a FakeEngine."""

    def __init__(
        self,
        data_dir: Path,
        *,
        settings: Settings | None = None,
        catalog: FakeCatalog | None = None,
        hold_load: bool = False,
        size: tuple[int, int] | None = None,
        sees: bool = False,
    ) -> None:
        """Open the window.

        Args:
            data_dir: the folder of the data.
            settings: the settings; None for the defaults.
            catalog: the models on this computer; None for one.
            hold_load: True if the model is loaded by `engine.finish_load()`.
            size: width and height of the window in pixels; None for the usual size.
            sees: True if the model sees pictures.
        """
        settings = settings or Settings()
        self.rig = Rig(data_dir, settings=settings, catalog=catalog)
        self.engine = self.rig.engine
        self.engine.hold_load = hold_load
        self.engine.facts = replace(FACTS, sees=sees)
        self.open(self.rig.core, self.rig.origin, settings.appearance, size)
        self.composer = self.pane.composer
        self.wait_until(lambda: self.rig.models.status.phase is not ModelPhase.SEARCHING)
        if not hold_load:
            self.wait_until(lambda: not self.rig.models.status.will_be_ready)

    @property
    def list(self) -> ConversationList:
        return self.window.sidebar.list

    @property
    def rows(self) -> list[str]:
        """Section headings and chat titles in the conversation list, from the top."""
        model = self.list.model()
        return [model.data(model.index(at, 0)) for at in range(model.rowCount())]

    def send(self, text: str) -> None:
        """Type a message and press Return. Wait until it is submitted to the engine or queued."""
        self.type(text)
        QTest.keyClick(self.edit, Key.Key_Return)
        self.settle()

    def answer(self, text: str) -> None:
        """Finish the running request with the reply `text`. Wait for the effects."""
        self.engine.write(text)
        self.engine.finish()
        self.settle()

    def chat(self, question: str, reply: str) -> None:
        """Send a question and answer it."""
        self.send(question)
        self.answer(reply)

    def click(self, action: RowAction) -> None:
        """Click the first target in the transcript with this action."""
        view = self.pane.view
        point = next(targets(view, action))
        QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
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
