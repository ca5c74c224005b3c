"""Tiny models with Qwen's tokens and real templates: the tokens that a turn reads and replays.

template_table.py plays all templates and options; these tests play the few that run quickly.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from app.cli.client import load_model
from app.cli.player import ScriptPlayer
from app.cli.script import parse_step
from engine.config import EngineConfig
from engine.events import RequestFinished, Submit
from engine.types import ConversationId, ForcedReply, Message, Request, RequestId, Role
from engine.usage import PromptPlan
from tests.fakes.inline_engine import InlineClient
from tests.fakes.qwen import Qwen, build_qwen
from tests.oracle.real_chats import Lengths, Manner, RealChats, RealChatsTally, RealTurn, tally

pytestmark = pytest.mark.slow

NUM_TOKENS = 8_000  # of Qwen's vocabulary, the most common ones
LENGTHS = Lengths(thought=(20, 40), answer=(10, 30))
DEFAULT, OFF, KEPT = Manner(), Manner(thinking=False), Manner(keep_thinking=True)

OpenQwen = Callable[[Qwen], InlineClient]


@pytest.fixture(scope="module")
def open_qwen(tmp_path_factory: pytest.TempPathFactory) -> OpenQwen:
    """Return a function that opens an engine, in this thread, with a real tokenizer and template.

    All tests of the module share one engine for each Qwen version.
    """
    opened: dict[Qwen, InlineClient] = {}

    def get(qwen: Qwen) -> InlineClient:
        if qwen not in opened:
            config = EngineConfig(
                use_openblas=False, cache_budget_bytes=1 << 30, idle_work=False, saves_battery=False
            )
            opened[qwen] = InlineClient(config)
            model = build_qwen(qwen, tmp_path_factory.mktemp(qwen), NUM_TOKENS)
            load_model(opened[qwen], model, lambda _: None)
        return opened[qwen]

    return get


class Played:
    """Conversations with real templates, played on an engine round by round."""

    def __init__(self, client: InlineClient, manners: list[Manner]) -> None:
        assert client.core.model is not None
        self._client = client
        self._chats = RealChats(client.core.model.prompts, manners, LENGTHS, seed=3)
        self._player = ScriptPlayer(client, Path(), check=False)
        for step in self._chats.systems():
            self._play(step)

    def round(self) -> tuple[list[RealTurn], list[dict[str, Any]]]:
        turns = self._chats.round()
        return turns, [self._play(dict(turn.step))[0] for turn in turns]

    def idle(self) -> None:
        self._play({"op": "idle"})

    def _play(self, step: dict[str, Any]) -> list[dict[str, Any]]:
        reports = list(self._player.play(parse_step(json.dumps(step))))
        assert self._client.core.cache is not None
        self._client.core.cache.check_invariants()
        return [report.as_json() for report in reports]


def one_by_one(played: tuple[list[RealTurn], list[dict[str, Any]]]) -> Iterable[RealChatsTally]:
    """Return one tally for each conversation in a round."""
    return (tally([turn], [report]) for turn, report in zip(*played, strict=True))


def test_reply_with_dropped_thoughts_is_replayed_unless_engine_was_idle(
    open_qwen: OpenQwen,
) -> None:
    played = Played(open_qwen(Qwen.QWEN3_5), [DEFAULT, OFF])
    played.round()
    for hurried in one_by_one(played.round()):
        assert hurried.holds
        assert hurried.replayed > 0
    played.idle()
    for rested in one_by_one(played.round()):
        assert rested.is_exact
        assert rested.redo == 0


def test_reply_with_kept_thoughts_is_never_replayed(open_qwen: OpenQwen) -> None:
    played = Played(open_qwen(Qwen.QWEN3_6), [KEPT, DEFAULT])
    played.round()
    for _ in range(2):
        kept, dropped = one_by_one(played.round())
        assert kept.is_exact
        assert kept.redo == 0
        assert dropped.holds
        assert dropped.replayed > 0


class Agent:
    """A conversation that calls tools. Each tool result is sent in a separate request."""

    def __init__(self, client: InlineClient, *, keep_thinking: bool) -> None:
        self._client = client
        self._keep = keep_thinking
        self._name = f"tools {keep_thinking}"
        self.messages: list[Message] = []

    def step(self, role: Role, text: str, reply: ForcedReply) -> PromptPlan:
        self.messages.append(Message(role=role, content=text))
        request = Request(
            request_id=RequestId(f"{self._name} {len(self.messages)}"),
            conversation_id=ConversationId(self._name),
            messages=tuple(self.messages),
            new_messages=frozenset({len(self.messages) - 1}),
            keep_thinking=self._keep,
            forced=reply,
        )
        self._client.send(Submit(request, time.perf_counter()))
        while not isinstance(event := self._client.next_event(), RequestFinished):
            pass
        self.messages.append(
            Message(
                role=Role.ASSISTANT,
                content=event.content,
                reasoning=event.reasoning,
                reply=event.reply,
            )
        )
        return event.usage.plan

    def idle(self) -> None:
        self._client.set_idle_work(enabled=True)
        self._client.answer(self._client.await_idle())
        self._client.set_idle_work(enabled=False)


CALL = ForcedReply(text="<tool_call>weather Oslo</tool_call>", reasoning="I need the weather.")
COLD = ForcedReply(text="It is cold there.", reasoning="Below zero, so it is cold.")


@pytest.mark.parametrize("keep", [False, True])
def test_tool_loop_reads_only_the_tool_results(open_qwen: OpenQwen, *, keep: bool) -> None:
    agent = Agent(open_qwen(Qwen.QWEN3_6), keep_thinking=keep)
    start = agent.step(Role.USER, "How cold is it in Oslo, and in Rome?", CALL)
    for text, reply in (('{"celsius": -3.5}', CALL), ('{"celsius": 14, "wind": "calm"}', COLD)):
        plan = agent.step(Role.TOOL, text, reply)
        assert plan.replayed == 0
        assert plan.restored > start.prompt_tokens
    next_turn = agent.step(Role.USER, "Thanks. Which one is warmer?", COLD)
    if keep:
        assert next_turn.replayed == 0
    else:
        # The template drops all thoughts of the loop. So this prompt repeats only the prompt of the
        # first step, without its last two tokens, which open a thought.
        assert next_turn.restored == start.prompt_tokens - 2
    agent.idle()
    rested = agent.step(Role.USER, "And tomorrow?", COLD)
    assert rested.replayed == 0
    assert rested.restored > next_turn.prompt_tokens - 2
