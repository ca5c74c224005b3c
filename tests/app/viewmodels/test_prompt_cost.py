from __future__ import annotations

from dataclasses import replace

from app.conversation.tree import set_system_prompt
from app.viewmodels.models import ModelPhase, ModelStatus
from app.viewmodels.prompt_cost import prompt_cost
from app.viewmodels.reading import ToRead
from engine.reading_pace import ReadingTime
from tests.app.viewmodels.test_items import EMPTY, finished, send
from tests.fakes.fake_engine import FACTS

READY = ModelStatus(
    phase=ModelPhase.READY, path="/models/a", facts=replace(FACTS, path="/models/a")
)
CHAT = finished(send(EMPTY, 1))  # 242 tokens, of which the next prompt may have fewer
UNCHANGED = "If you change it, the model reads the whole chat: about 120 tokens."


def test_unchanged_system_prompt_has_the_tokens_of_the_next_prompt() -> None:
    assert prompt_cost(CHAT, READY, 121, None) == UNCHANGED
    assert prompt_cost(CHAT, READY, 14_312, ToRead(9)).endswith("about 14,000 tokens.")
    assert prompt_cost(CHAT, READY, 99, None) == ""
    assert prompt_cost(CHAT, READY, None, None) == "", "not counted"


def test_empty_chat_costs_nothing() -> None:
    assert prompt_cost(EMPTY, READY, None, None) == ""
    assert prompt_cost(set_system_prompt(EMPTY, "Be brief."), READY, 900, ToRead(900)) == ""


def test_changed_system_prompt_has_the_tokens_that_are_left_to_read() -> None:
    changed = set_system_prompt(CHAT, "Be brief.")
    assert prompt_cost(changed, READY, 250, ToRead(250)) == (
        "Changed. The model will read the chat with your next message: about 250 tokens."
    )
    slow = ToRead(14_312, ReadingTime(36, 36, 36))
    assert prompt_cost(changed, READY, 14_312, slow).endswith("about 14,000 tokens, 36 s.")
    assert prompt_cost(changed, READY, 250, ToRead(2)) == "", "the chat has been read ahead"
    assert prompt_cost(changed, READY, None, None) == ""
    assert prompt_cost(set_system_prompt(changed, ""), READY, 121, None) == UNCHANGED


def test_cost_needs_a_loaded_model() -> None:
    assert prompt_cost(CHAT, ModelStatus(phase=ModelPhase.NONE), None, None) == ""
