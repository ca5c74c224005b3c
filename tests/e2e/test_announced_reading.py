"""Announced numbers of tokens to read, compared with the engine's counters of the next turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.controllers import prompt_size, turns
from app.controllers.requests import make_request
from app.conversation.tree import MessageNode, shown_path
from app.viewmodels import reading
from app.widgets.commands import CommandId
from app.widgets.transcript.editor.editor import MessageEditor, TypedEdit
from app.words import previews
from engine.types import ForcedReply, Request
from engine.usage import PromptPlan
from tests.fakes.real_window import RealWindow
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import CONFIGS, TEMPLATES, Template, train_tokenizer, write_model

QUESTION = "The quick brown fox jumps over the lazy dog. " * 10
THOUGHT = "A list of numbers is what is wanted, in other words. " * 4
ANSWER = "Of course. One, two, three, and so on. " * 2
NEXT = "And then?"
# The prompt is counted up to the last word of a draft. So many tokens at most follow: the word, and the
# template's text that ends the message and begins the answer.
NUM_AFTER = 40
TEMPLATES_OF_THINKING = {
    "dropping": TEMPLATES[Template.THINKING],
    "keeping": TEMPLATES[Template.THINKING].replace(" and loop.index0 > ns.last", ""),
}
# Number of tokens after which a reply of 130 is stopped: within its thinking, or never.
STOPS = {"stopped": 60, "whole": None}


@dataclass(slots=True)
class Replies:
    """The replies of the model, in place of random ones."""

    stop_after: int | None = None

    def make_request(self, *args: Any, **options: Any) -> Request:
        request = make_request(*args, **options)
        forced = ForcedReply(text=ANSWER, reasoning=THOUGHT)
        return replace(request, forced=forced, stop_after=self.stop_after)


@pytest.fixture
def replies(monkeypatch: pytest.MonkeyPatch) -> Replies:
    replies = Replies()
    monkeypatch.setattr(turns, "make_request", replies.make_request)
    return replies


@pytest.fixture
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    template = TEMPLATES_OF_THINKING[getattr(request, "param", "dropping")]
    return write_model(tmp_path / "model", CONFIGS["qwen3_5"], train_tokenizer(), template)


@pytest.fixture
def real(
    model: Path, tmp_path: Path, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RealWindow]:
    """Return a window whose model announces all reading, and reads nothing ahead."""
    monkeypatch.setattr(prompt_size, "COUNT_MS", 0)
    monkeypatch.setattr(reading, "LONG_S", 0.0)
    monkeypatch.setattr(reading, "LONG_TOKENS", 0)
    monkeypatch.setattr(reading, "INSTANT_S", 0.0)
    with closing(RealWindow(tmp_path / "data")) as real:
        launch(real, model)
        yield real


def launch(real: RealWindow, model: Path) -> None:
    real.close()
    real.launch(model)
    real.core.preferences.change(read_ahead=False, keep_on_disk=False, inspector_visible=True)
    real.wait_until(lambda: real.core.models.status.facts is not None)
    real.settle()


def reply_of(real: RealWindow) -> MessageNode:
    return shown_path(real.core.desk.get(real.current))[-1]


def end_turn(real: RealWindow) -> PromptPlan:
    """Wait until the turn that was just started has ended."""
    real.wait_until(lambda: not real.core.turns.live)
    real.settle()
    generation = reply_of(real).generation
    assert generation is not None
    assert generation.usage is not None
    return generation.usage.plan


def send(real: RealWindow, text: str) -> PromptPlan:
    real.pane.composer.set_text(text)
    QTest.keyClick(real.edit, Qt.Key.Key_Return)
    return end_turn(real)


def announced(real: RealWindow, words: Callable[[], str], start: str) -> int:
    """Wait for a note that begins with given words. Return the number of tokens in it."""
    real.wait_until(lambda: words().startswith(start) and real.core.prompt_sizes.is_counted)
    found = re.search(r"([0-9,]+) tokens", words())
    assert found is not None, words()
    return int(found[1].replace(",", ""))


def is_true_of(num_announced: int, plan: PromptPlan) -> bool:
    """Return True if a number, rounded to two digits, is what the engine was fed for a turn."""
    fed = plan.replayed + plan.read
    return num_announced * 0.95 - 1 <= fed <= num_announced * 1.05 + NUM_AFTER


@pytest.mark.slow
@pytest.mark.parametrize("model", rest_in_soak(TEMPLATES_OF_THINKING, "dropping"), indirect=True)
@pytest.mark.parametrize("stop_after", rest_in_soak(STOPS, "whole"))
def test_cost_of_another_system_prompt_is_what_the_next_message_makes_the_model_read(
    real: RealWindow, replies: Replies, stop_after: str
) -> None:
    replies.stop_after = STOPS[stop_after]
    real.core.chat.set_system_prompt(real.current, "Be kind.")
    send(real, QUESTION)
    note = real.window.inspector.prompt_cost
    for system_prompt in ("Be brief.", "Write a list."):
        before = announced(real, note.text, "If you change it")
        real.core.chat.set_system_prompt(real.current, system_prompt)
        after = announced(real, note.text, "Changed.")
        plan = send(real, NEXT)
        assert is_true_of(before, plan)
        assert is_true_of(after, plan)


@pytest.mark.soak
@pytest.mark.slow
def test_announced_reading_of_a_draft_is_what_the_model_reads(
    real: RealWindow, model: Path, replies: Replies
) -> None:
    replies.stop_after = STOPS["stopped"]
    send(real, QUESTION)
    for _ in range(2):
        launch(real, model)  # which forgets the cached state
        real.pane.composer.set_text(NEXT)
        real.pane.draft.flush()
        num_tokens = announced(real, lambda: real.pane.composer.caption, "Reads")
        plan = send(real, NEXT)
        assert num_tokens == plan.read + plan.replayed


@pytest.mark.soak
@pytest.mark.slow
def test_question_about_another_model_has_the_tokens_that_it_reads(
    real: RealWindow, model: Path, replies: Replies
) -> None:
    replies.stop_after = STOPS["stopped"]
    send(real, QUESTION)
    launch(real, copytree(model, model.with_name("other")))
    line = real.pane.model_question
    num_tokens = announced(real, line.sentence.text, "This chat used")
    QTest.mouseClick(line.second, Qt.MouseButton.LeftButton)  # Stay
    again = announced(real, lambda: real.pane.composer.caption, "other will read this chat")
    assert again == num_tokens
    assert is_true_of(num_tokens, send(real, NEXT))


@pytest.mark.slow
def test_cost_in_the_editor_of_a_message_is_what_the_model_reads(
    real: RealWindow, model: Path, replies: Replies
) -> None:
    replies.stop_after = STOPS["stopped"]
    send(real, QUESTION)
    send(real, NEXT)
    launch(real, model)
    real.run(CommandId.EDIT_LAST)
    (editor,) = real.pane.view.findChildren(MessageEditor)
    editor.set_typed(TypedEdit("And what then?", 0, 0))
    num_tokens = announced(real, lambda: editor.cost, "Reads")
    editor.submitted.emit(editor.text)
    plan = end_turn(real)
    assert num_tokens == plan.read + plan.replayed


@pytest.mark.slow
def test_edit_that_is_sent_with_its_preview_reads_no_token_of_it(real: RealWindow) -> None:
    setup = real.core.desk.get(real.current).setup
    real.core.chat.set_setup(real.current, replace(setup, max_tokens=24, temperature=0.0))
    send(real, QUESTION)
    real.core.preferences.change(preview_edits=True)
    real.run(CommandId.EDIT_LAST)
    (editor,) = real.pane.view.findChildren(MessageEditor)
    editor.set_typed(TypedEdit("And what then?", 0, 0))
    real.wait_until(lambda: real.core.previews.shown.is_complete)
    assert real.core.previews.shown.line in (previews.THINKS, previews.BEGINS)
    assert announced_nothing(real, editor)
    editor.submitted.emit(editor.text)
    plan = end_turn(real)
    assert plan.num_fed <= 1  # the newest token of the preview


def announced_nothing(real: RealWindow, editor: MessageEditor) -> bool:
    """Wait until the cost in the editor is that sending reads nothing."""
    real.wait_until(
        lambda: not editor.cost.startswith("Reads") and real.core.prompt_sizes.is_counted
    )
    return "tokens" not in editor.cost
