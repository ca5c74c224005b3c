"""The chat-tree benchmark on the engine: no step may replay more than the reply before it.

A step after idle work may replay nothing. In no case may a step have a redo: a known token that is
fed again without need.
"""

from __future__ import annotations

import pytest

from app.cli.tree.measure import StepCost, measure
from app.cli.tree.own import OwnEngine
from app.cli.tree.scenario import Replies, chat_tree
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.texts import chat_tokenizer
from tests.fakes.tiny_model import Template

SCENARIO = chat_tree("x", turns=4, size=0.002)
# Maximum number of template tokens between the text of a reply and the text of the next message.
TEMPLATE_TOKENS = 8


def make_engine(client: InlineClient, replies: Replies, *, idle: bool) -> OwnEngine:
    assert client.core.model is not None
    return OwnEngine(client, client.core.model.facts, SCENARIO, replies, awaits_idle=idle)


def play(open_tiny: OpenTiny, *, idle: bool) -> list[StepCost]:
    client = open_tiny("lfm2", Template.THINKING, idle_work=idle)
    engine = make_engine(client, Replies.SCRIPTED, idle=idle)
    return list(measure(engine, SCENARIO, cold_times=0))


def stripped_replies() -> dict[str, int]:
    """Return the largest number of tokens that each step may replay. The key is the step's name.

    The number is the length of the visible reply before the step's message, plus template tokens.
    """
    encode = chat_tokenizer().encode_text
    return {
        step.name: len(encode(SCENARIO.history(step)[-1].reply.text)) + TEMPLATE_TOKENS
        for step in SCENARIO.steps
        if step.after is not None
    }


# tests/oracle has a shorter chat whose thoughts are replayed, and scripts of branches without redo.
@pytest.mark.soak
def test_chat_tree_without_idle_work_replays_at_most_the_visible_reply(open_tiny: OpenTiny) -> None:
    costs = play(open_tiny, idle=False)

    stripped = stripped_replies()
    for cost in costs:
        assert cost.redo == 0, cost
        assert (cost.replayed or 0) <= stripped.get(cost.step, 0), cost
    assert any(cost.replayed for cost in costs)


@pytest.mark.slow
def test_chat_tree_after_idle_work_replays_nothing(open_tiny: OpenTiny) -> None:
    costs = play(open_tiny, idle=True)

    assert {(cost.redo, cost.replayed) for cost in costs} == {(0, 0)}


@pytest.mark.slow
def test_cold_prompt_of_benchmark_leaves_the_cache_unchanged(open_tiny: OpenTiny) -> None:
    client = open_tiny("lfm2", Template.THINKING)
    engine = make_engine(client, Replies.OWN, idle=False)
    first, second = SCENARIO.steps[:2]
    engine.play(first)
    assert engine.play(second).redo == 0
    assert client.core.cache is not None
    before = client.core.cache.statistics()

    assert engine.cold_ttft_ms(second, "nonce") > 0

    after = client.core.cache.statistics()
    assert (after.num_nodes, after.total_bytes) == (before.num_nodes, before.total_bytes)
