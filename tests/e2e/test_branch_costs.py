"""The costs in the branch map, on the real engine: they equal what the next turn restores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.conversation.tree import NodeId, Setup, shown_path
from app.viewmodels import branch_cost
from app.viewmodels.branch_cost import BranchState
from app.widgets.branch_map.window import BranchMapWindow
from app.widgets.commands import CommandId
from engine.usage import PromptPlan
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.real_window import RealWindow
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

pytestmark = [
    pytest.mark.slow,
    pytest.mark.qt_log_ignore("does not support raise", extend=True),
]


@pytest.fixture(params=rest_in_soak(["llama", "qwen3_5"], "qwen3_5"))
def real(
    request: pytest.FixtureRequest, tiny_model: TinyModel, tmp_path: Path, qtbot: QtBot
) -> Iterator[RealWindow]:
    """Return a window with a chat of two turns. The second answer has two versions."""
    with closing(RealWindow(tmp_path)) as real:
        real.launch(tiny_model(request.param, Template.KEEPING))
        real.core.preferences.change(read_ahead=False)
        real.core.chat.set_setup(real.current, Setup(max_tokens=6))
        for text in ("Tell me about radix trees", "And about rope? " * 20):
            ask(real, qtbot, text)
        real.window.commands[CommandId.REGENERATE].trigger()
        qtbot.waitUntil(lambda: not real.core.turns.live)
        yield real


def ask(real: RealWindow, qtbot: QtBot, text: str) -> PromptPlan:
    """Send a message in the shown chat; return the plan of its answer."""
    real.edit.setPlainText(text)
    QTest.keyClick(real.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not real.core.turns.live)
    generation = shown_path(real.core.desk.get(real.current))[-1].generation
    assert generation is not None
    assert generation.usage is not None
    return generation.usage.plan


def opened(real: RealWindow, qtbot: QtBot) -> BranchMapWindow:
    """Open the map and wait for the costs of both branches."""
    real.window.commands[CommandId.BRANCH_MAP].trigger()
    window = real.window.findChild(BranchMapWindow)
    assert window is not None
    window.resize(1600, 900)
    qtbot.waitUntil(lambda: len(window.map.marks.costs) == 2)
    return window


def hidden_end(window: BranchMapWindow) -> NodeId:
    (end,) = window.map.branches.ends - window.map.branches.shown
    return end


def test_branches_in_memory_are_instant_and_the_next_turn_restores_them(
    real: RealWindow, qtbot: QtBot
) -> None:
    window = opened(real, qtbot)
    states = [cost.state for cost in window.map.marks.costs.values()]
    assert states == [BranchState.MEMORY] * 2
    end = hidden_end(window)
    counted = real.core.branch_costs.counted[end]

    window.map.set_current(end)
    window.show_button.click()

    assert ask(real, qtbot, "Go on").restored == counted.num_cached


def test_branch_without_state_costs_what_the_next_turn_reads_again(
    real: RealWindow, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branch_cost, "FEW_TOKENS", 1)
    real.core.bridge.engine.forget(real.current)
    window = opened(real, qtbot)
    end = hidden_end(window)
    cost, counted = window.map.marks.costs[end], real.core.branch_costs.counted[end]
    num_read = counted.num_tokens - counted.num_cached
    assert cost.state is BranchState.UNREAD
    assert cost.text.startswith(f"Reads {num_read} tokens")
    assert num_read > 50

    window.map.set_current(end)
    window.show_button.click()
    plan = ask(real, qtbot, "Go on")

    assert plan.restored == counted.num_cached
    assert 0 < plan.replayed + plan.read - num_read < 30, "the rest is the new message"
