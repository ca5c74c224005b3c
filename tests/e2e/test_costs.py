"""Costs before acting, on the real engine: the line below the composer, and the dots in the list."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.controllers import chat_states, prompt_size
from app.conversation.tree import Setup, shown_path
from app.viewmodels.chat_state import ChatState
from app.viewmodels.cost import cost_line
from app.widgets.commands import CommandId
from engine.cache_figures import HeldChat
from engine.events import IdleWorking
from engine.types import ConversationId
from engine.usage import PromptPlan
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.real_window import RealWindow
from tests.fakes.tiny_model import Template

pytestmark = pytest.mark.slow


@pytest.fixture
def real(
    tiny_model: TinyModel, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RealWindow]:
    """Return a window with a chat of two messages. Nothing is read ahead."""
    monkeypatch.setattr(prompt_size, "COUNT_MS", 0)
    monkeypatch.setattr(chat_states, "LOOK_MS", 0)
    with closing(RealWindow(tmp_path)) as real:
        real.launch(tiny_model("qwen3_5", Template.THINKING))
        real.core.preferences.change(read_ahead=False)
        real.core.chat.set_setup(real.current, Setup(max_tokens=6))
        for text in ("Tell me about radix trees. " * 30, "And about rope?"):
            ask(real, qtbot, text)
        yield real


def ask(real: RealWindow, qtbot: QtBot, text: str) -> PromptPlan:
    """Send a message in the shown chat; return the plan of its answer."""
    real.edit.setPlainText(text)
    QTest.keyClick(real.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not real.core.turns.live)
    return last_plan(real)


def last_plan(real: RealWindow) -> PromptPlan:
    generation = shown_path(real.core.desk.get(real.current))[-1].generation
    assert generation is not None
    assert generation.usage is not None
    return generation.usage.plan


def test_line_below_the_composer_is_about_the_tokens_that_are_then_read(
    real: RealWindow, qtbot: QtBot
) -> None:
    sizes = real.core.prompt_sizes
    real.edit.setPlainText("What else is there about trees and ropes? " * 20)
    real.window.pane.draft.flush()
    qtbot.waitUntil(lambda: sizes.size is not None and sizes.size.plan is not None)
    to_read = sizes.to_read
    assert to_read is not None
    assert real.window.pane.composer.caption == cost_line(to_read)
    QTest.keyClick(real.edit, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: not real.core.turns.live)
    plan = last_plan(real)
    assert to_read.num_tokens == plan.read + plan.replayed
    assert to_read.num_prompt == plan.prompt_tokens


def test_dot_of_a_chat_follows_its_state(real: RealWindow, qtbot: QtBot) -> None:
    chat, states = real.current, real.core.chat_states

    def becomes(state: ChatState) -> None:
        qtbot.waitUntil(lambda: states.of(chat) is state)
        tip = real.window.sidebar.list.model().index(1, 0).data(Qt.ItemDataRole.ToolTipRole)
        assert tip.endswith(state.text)

    becomes(ChatState.MEMORY)
    real.core.memory_map.move_to_disk((chat,))
    becomes(ChatState.DISK)
    ask(real, qtbot, "And now?")
    becomes(ChatState.MEMORY)
    real.core.memory_map.forget((chat,))
    becomes(ChatState.UNREAD)
    ask(real, qtbot, "And now?")
    becomes(ChatState.MEMORY)
    real.window.commands[CommandId.UNLOAD].trigger()
    qtbot.waitUntil(lambda: states.of(chat) is None)


def test_dot_of_a_copy_is_that_of_the_chat_that_was_read(real: RealWindow, qtbot: QtBot) -> None:
    original, states = real.current, real.core.chat_states
    qtbot.waitUntil(lambda: states.of(original) is ChatState.MEMORY)
    real.core.preferences.change(read_ahead=True)
    real.window.commands[CommandId.DUPLICATE].trigger()
    qtbot.waitUntil(lambda: real.current != original)
    qtbot.waitUntil(lambda: states.of(real.current) is ChatState.MEMORY)
    assert real.window.sidebar.memory.text().startswith("2 chats in memory")
    assert ask(real, qtbot, "And now?").restored > 100


def test_dot_of_a_draft_is_not_that_of_its_part_that_was_read(
    real: RealWindow, qtbot: QtBot
) -> None:
    states = real.core.chat_states
    real.core.preferences.change(read_ahead=True)
    real.window.commands[CommandId.NEW_CHAT].trigger()
    draft = real.current
    real.edit.setPlainText("Tell me about radix trees and all their relatives. " * 400)
    real.window.pane.draft.flush()
    bridge = real.core.bridge
    with qtbot.waitSignal(bridge.idle_changed, check_params_cb=partial(_is_part, draft)):
        pass
    real.core.preferences.change(read_ahead=False)
    qtbot.waitUntil(lambda: any(one.conversation_id == draft for one in _chats(real)))
    assert states.of(draft) is ChatState.UNREAD


def _is_part(chat: ConversationId, event: object) -> bool:
    return (
        isinstance(event, IdleWorking)
        and event.conversation_id == chat
        and 0 < event.done < event.total
    )


def _chats(real: RealWindow) -> tuple[HeldChat, ...]:
    """Return the entries of the newest report that have state in memory."""
    report = real.core.memory_map.report
    return () if report is None else tuple(one for one in report.chats if one.memory_tokens)
