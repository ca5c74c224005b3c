"""Duplicated, archived and filed chats on the real engine: the next turn feeds only new text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.conversation.folder import Folder
from app.conversation.placement import FolderId
from app.conversation.tree import Setup, shown_path
from app.widgets.commands import CommandId
from engine.usage import PromptPlan
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.real_window import RealWindow
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

pytestmark = pytest.mark.slow


@pytest.fixture(params=rest_in_soak(["llama", "qwen3_5"], "qwen3_5"))
def real(
    request: pytest.FixtureRequest, tiny_model: TinyModel, tmp_path: Path, qtbot: QtBot
) -> Iterator[RealWindow]:
    """Return a window with a chat of two turns. Its first answer has two versions."""
    with closing(RealWindow(tmp_path)) as real:
        real.launch(tiny_model(request.param, Template.KEEPING))
        # Without reading ahead, the plan of a turn shows all that had to be fed for it.
        real.core.preferences.change(read_ahead=False)
        # A model with random weights rarely ends a reply.
        real.core.chat.set_setup(real.current, Setup(max_tokens=6))
        ask(real, qtbot, "Tell me about radix trees")
        real.run(CommandId.REGENERATE)
        wait(real, qtbot)
        ask(real, qtbot, "And about rope?")
        yield real


def wait(real: RealWindow, qtbot: QtBot) -> None:
    qtbot.waitUntil(lambda: not real.core.turns.live)


def ask(real: RealWindow, qtbot: QtBot, text: str) -> PromptPlan:
    """Send a message in the shown chat; return where the prompt of its answer came from."""
    real.type(text)
    QTest.keyClick(real.edit, Qt.Key.Key_Return)
    wait(real, qtbot)
    generation = shown_path(real.core.desk.get(real.current))[-1].generation
    assert generation is not None
    assert generation.usage is not None
    return generation.usage.plan


def assert_only_new_text(plan: PromptPlan) -> None:
    assert plan.replayed == 0
    assert plan.restored > plan.read > 0


def test_turn_after_a_duplication_replays_nothing_in_both_chats(
    real: RealWindow, qtbot: QtBot
) -> None:
    original, texts = real.current, real.texts
    real.run(CommandId.DUPLICATE)
    real.wait_until(lambda: real.current != original)
    assert real.texts == texts
    assert_only_new_text(ask(real, qtbot, "Go on"))
    real.core.library.select(original)
    real.settle()
    assert_only_new_text(ask(real, qtbot, "Go on, too"))


def test_other_version_of_a_duplicate_replays_nothing(real: RealWindow, qtbot: QtBot) -> None:
    original = real.current
    real.run(CommandId.DUPLICATE)
    real.wait_until(lambda: real.current != original)
    first = real.core.desk.get(real.current).children[
        next(iter(real.core.desk.get(real.current).nodes))
    ][0]
    real.core.chat.show_branch(real.current, first)
    real.settle()
    assert len(real.texts) == 2
    assert_only_new_text(ask(real, qtbot, "Go on"))


def test_turn_after_archive_folder_and_deletion_replays_nothing(
    real: RealWindow, qtbot: QtBot
) -> None:
    chat, organiser = real.current, real.core.organiser
    folder = Folder(folder_id=FolderId(""), name="Work", system_prompt="Be exact.")
    organiser.move([chat], real.core.folders.create(folder).folder_id)
    organiser.archive([chat], archived=True)
    real.settle()
    assert real.current != chat
    organiser.archive([chat], archived=False)
    organiser.delete([chat])
    real.settle()
    real.core.undoing.undo()
    real.settle()
    assert real.current == chat
    assert_only_new_text(ask(real, qtbot, "Go on"))
