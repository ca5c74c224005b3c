"""Several answers on the real engine: the window reads the prompt once, and continues with any of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.conversation.tree import MessageNode, shown_path, versions
from app.widgets.commands import CommandId
from engine.usage import PromptPlan
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.real_window import RealWindow
from tests.fakes.tiny_model import Template


@pytest.fixture
def real(tiny_model: TinyModel, tmp_path: Path, qtbot: QtBot) -> Iterator[RealWindow]:
    with closing(RealWindow(tmp_path)) as real:
        real.launch(tiny_model("qwen3_5", Template.KEEPING))
        setup = real.core.desk.get(real.current).setup
        real.core.chat.set_setup(real.current, replace(setup, max_tokens=8, temperature=1.0))
        yield real


def wait_for_answers(real: RealWindow) -> None:
    real.wait_until(lambda: bool(real.core.turns.live))
    real.wait_until(lambda: not real.core.turns.live)


def plan_of(reply: MessageNode) -> PromptPlan:
    assert reply.generation is not None
    assert reply.generation.usage is not None
    return reply.generation.usage.plan


@pytest.mark.slow
def test_prompt_of_three_answers_is_read_once_and_the_next_question_replays_nothing(
    real: RealWindow,
) -> None:
    real.type("Tell me about radix trees and where they are of use")
    real.run(CommandId.ANSWERS_3)
    wait_for_answers(real)
    conversation = real.core.desk.get(real.current)
    replies = versions(conversation, shown_path(conversation)[-1].node_id)
    plans = [plan_of(conversation.nodes[one]) for one in replies]
    assert [one.read + one.replayed for one in plans] == [plans[0].prompt_tokens, 0, 0]

    answers = real.pane.reading.pane
    assert answers is not None
    answers.columns[2].use.click()
    real.type("And about rope?")
    QTest.keyClick(real.edit, Qt.Key.Key_Return)
    wait_for_answers(real)
    conversation = real.core.desk.get(real.current)
    plan = plan_of(shown_path(conversation)[-1])
    assert replies[2] in [one.node_id for one in shown_path(conversation)]
    assert plan.replayed == 0
    assert plan.restored > plans[0].prompt_tokens
