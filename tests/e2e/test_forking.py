"""Forks and edited answers on the real engine: the next turn feeds only new text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.conversation.tree import Setup, shown_path
from app.widgets.message_edit import MessageEdit
from app.widgets.transcript.rows.row import RowAction
from engine.usage import PromptPlan
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.real_window import RealWindow
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template
from tests.fakes.transcript_stage import targets

pytestmark = pytest.mark.slow
CTRL = Qt.KeyboardModifier.ControlModifier


@pytest.fixture(params=rest_in_soak(["llama", "qwen3_5"], "qwen3_5"))
def real(
    request: pytest.FixtureRequest, tiny_model: TinyModel, tmp_path: Path, qtbot: QtBot
) -> Iterator[RealWindow]:
    """Return a window with a chat of two turns."""
    with closing(RealWindow(tmp_path)) as real:
        real.launch(tiny_model(request.param, Template.KEEPING))
        # Without reading ahead, the plan of a turn shows all that had to be fed for it.
        real.core.preferences.change(read_ahead=False)
        real.core.chat.set_setup(real.current, Setup(max_tokens=6))
        for text in ("Tell me about radix trees", "And about rope?"):
            ask(real, qtbot, text)
        yield real


def ask(real: RealWindow, qtbot: QtBot, text: str) -> PromptPlan:
    """Send a message in the shown chat; return where the prompt of its answer came from."""
    real.type(text)
    QTest.keyClick(real.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not real.core.turns.live)
    generation = shown_path(real.core.desk.get(real.current))[-1].generation
    assert generation is not None
    assert generation.usage is not None
    return generation.usage.plan


def click(real: RealWindow, action: RowAction) -> None:
    """Click the lowest visible button with this action."""
    view = real.pane.view
    view.jump_to_latest()
    real.wait_until(lambda: any(targets(view, action)))
    *_, point = targets(view, action)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point)
    real.settle()


def test_turn_after_a_fork_replays_nothing(real: RealWindow, qtbot: QtBot) -> None:
    original, texts = real.current, real.texts
    click(real, RowAction.FORK)
    assert real.current != original
    assert real.texts == texts
    plan = ask(real, qtbot, "Go on")
    assert plan.replayed == 0
    assert plan.restored > plan.read > 0


def test_edited_answer_is_read_as_it_stands(real: RealWindow, qtbot: QtBot) -> None:
    before = real.texts
    click(real, RowAction.EDIT_ANSWER)
    (field,) = [one for one in real.pane.view.findChildren(MessageEdit) if one.isVisible()]
    assert len(field.toPlainText()) == len(before[-1])  # Qt shows U+00A0 as a plain space
    QGuiApplication.clipboard().setText("A rope is a balanced tree.")
    QTest.keyClick(field, Qt.Key.Key_A, CTRL)
    QTest.keyClick(field, Qt.Key.Key_V, CTRL)
    QTest.keyClick(field, Qt.Key.Key_Return, CTRL)
    real.settle()
    assert real.texts == [*before[:-1], "A rope is a balanced tree."]
    assert real.items[-1].version.count == 2
    plan = ask(real, qtbot, "Go on")
    assert plan.replayed == 0
    assert plan.restored > plan.read > 0
    assert shown_path(real.core.desk.get(real.current))[-3].content == "A rope is a balanced tree."
