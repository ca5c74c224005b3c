"""The seeded user: actions on a real window, random choices, and the texts that must not be lost.

A Person is a RealWindow with methods for keys, mouse and clipboard. The actions in kinds/ are
functions that get a Person. Their choices come from a seeded `random`, so a seed repeats a run.
Every message contains a marker ("m17;"). `entrust` records the marker of a sent message, and
keeping.py looks for all recorded markers in the store after each restart.
"""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path
from random import Random

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from typing_extensions import override

from app.controllers.refusal import Refusal
from app.conversation.tree import Conversation
from app.viewmodels.models import ModelPhase
from app.widgets.commands import CommandId
from app.widgets.transcript.rows.row import RowAction
from app.words import dialogs, models as words
from engine.catalog.card import ModelCard
from engine.types import ConversationId
from tests.fakes.real_window import RealWindow
from tests.fakes.rig import FakeCatalog
from tests.fakes.sheets import find_sheet, press
from tests.fakes.transcript_stage import targets
from tests.person.words import some_text

MARKER = re.compile(r"m\d+;")  # marker in a message; each message has a different number

LEFT = Qt.MouseButton.LeftButton
CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


class Person(RealWindow):
    """A user of the window, and the markers of the messages that the app must keep."""

    def __init__(self, data_dir: Path, cards: tuple[ModelCard, ...], random: Random) -> None:
        super().__init__(data_dir, FakeCatalog(cards))
        self.random = random
        self.cards = cards
        # key: marker of a message; value: chat in which it was sent
        self.entrusted: dict[str, ConversationId] = {}
        self.export_dir = data_dir / "exported"
        self.export_dir.mkdir()
        self._numbers = count(1)

    # Methods that start and close the app.

    @override
    def launch(self, model: Path | None = None) -> None:
        super().launch(model)
        self.core.turns.refused.connect(self._on_refused)
        self.wait_until(lambda: self.core.models.status.phase is ModelPhase.READY)
        self.settle()

    @override
    def close(self) -> None:
        super().close()
        self.wait(1)

    # Properties of the window.

    @property
    def conversation(self) -> Conversation:
        return self.core.desk.get(self.current)

    @property
    def shown_texts(self) -> list[str]:
        """Texts of the messages as the transcript shows them, with line ends and NUL normalised."""
        return [
            text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")
            for text in self.texts
        ]

    @property
    def answers(self) -> bool:
        """True if the shown chat has an answer in progress."""
        return self.core.turns.live_in(self.current) is not None

    @property
    def listed(self) -> list[ConversationId]:
        return [one.conversation_id for one in self.core.library.listed.all]

    @property
    def clipboard(self) -> str:
        return QGuiApplication.clipboard().text()

    # Methods that use keys, mouse and clipboard.

    def some_text(self) -> str:
        return some_text(self.random, f"m{next(self._numbers)};")

    def stay_with_model(self) -> None:
        """Use the model in use if the window asks which one continues the shown chat."""
        if self.pane.model_question.isVisible():
            self.click(self.pane.model_question.second)

    def confirm_model(self, *, agrees: bool) -> None:
        """Answer the question before a change of the model that stops answers, if it is on show."""
        sheet = find_sheet(self.window)
        if sheet is not None:
            press(sheet, words.USE_NOW if agrees else dialogs.CANCEL)
            self.settle()

    def entrust(self, text: str) -> None:
        """Record the marker of a message that was sent. From now on the app must keep the message."""
        (marker,) = MARKER.findall(text)
        self.entrusted[marker] = self.current

    def discard_draft(self, text: str) -> None:
        """Drop the markers in a text removed from the composer, unless the chat contains them."""
        for marker in MARKER.findall(text):
            if not any(marker in node.content for node in self.conversation.nodes.values()):
                self.entrusted.pop(marker, None)

    def _on_refused(self, refusal: Refusal) -> None:
        """Drop the markers of an edit that is in its editor again, because a restart closes that."""
        for marker in MARKER.findall(refusal.edit.text if refusal.edit else ""):
            self.entrusted.pop(marker, None)

    def press(
        self, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
    ) -> None:
        """Send a key to the widget that has the focus."""
        widget = QApplication.focusWidget() or self.window
        QTest.keyClick(widget, key, modifiers)
        self.settle()

    def write(self, text: str) -> None:
        """Add a text to the composer, typed with Shift-Return for new lines, or pasted.

        A text is pasted if it has more than 100 characters or is not ASCII, because QTest has no
        keys for other characters.
        """
        self.edit.setFocus()
        if len(text) > 100 or not text.isascii():
            QGuiApplication.clipboard().setText(text)
            QTest.keyClick(self.edit, Qt.Key.Key_V, CTRL)
            return
        for number, line in enumerate(text.split("\n")):
            if number:
                QTest.keyClick(self.edit, Qt.Key.Key_Return, SHIFT)
            QTest.keyClicks(self.edit, line)

    def click(self, widget: QWidget, at: QPoint | None = None) -> None:
        QTest.mouseClick(widget, LEFT, pos=at or widget.rect().center())
        self.settle()

    def click_in_transcript(self, action: RowAction) -> bool:
        """Click a random visible button or link with this action. Return False if there is none."""
        view = self.pane.view
        found = list(targets(view, action)) if view.isVisible() else []
        if found:
            self.click(view.viewport(), self.random.choice(found))
        return bool(found)

    def try_to_run(self, command: CommandId) -> bool:
        """Trigger a menu command. Return False if the command is disabled."""
        can = self.window.commands[command].isEnabled()
        if can:
            self.run(command)
        return can

    # Methods that wait.

    @override
    def settle(self) -> None:
        super().settle()
        if QApplication.activeWindow() is None:
            self.window.activateWindow()  # a window manager does this when a dialog closes

    def wait_for_answers(self) -> None:
        self.wait_until(lambda: not self.core.turns.live)
        self.settle()
