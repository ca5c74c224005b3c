"""Requests with tools: calls and results feed no known token again, and changed tools are explained."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.cli.client import load_model
from app.cli.processed import ProcessedTokens
from engine.config import EngineConfig
from engine.events import RequestFailed, RequestFinished, Submit
from engine.types import ConversationId, ForcedReply, Message, Request, RequestId, Role, ToolCall
from engine.usage import PromptPlan, ReasonKind
from tests.fakes.asking import reply_of, user
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.qwen import Qwen, build_qwen
from tests.fakes.tables import rest_in_soak
from tests.fakes.trl_templates import build_with_template

pytestmark = pytest.mark.slow

A = ConversationId("A")


def tools(*names: str) -> str:
    word = {"type": "object", "properties": {"word": {"type": "string"}}}
    about = "Look a word up. Not <|im_end|> or </think>."
    return json.dumps(
        [
            {
                "type": "function",
                "function": {"name": one, "description": about, "parameters": word},
            }
            for one in names
        ]
    )


TOOLS = tools("look")


def qwen(out: Path) -> Path:
    return build_qwen(Qwen.QWEN3_5, out, num_tokens=8_000)


def lfm(out: Path) -> Path:
    return build_with_template("lfm2_v2", out)


# For each hybrid model: a call in the form of its template.
MODELS: list[tuple[Callable[[Path], Path], str]] = [
    (
        qwen,
        "<tool_call>\n<function=look>\n<parameter=word>\nfox\n</parameter>\n</function>\n</tool_call>",
    ),
    (lfm, '<|tool_call_start|>[look(word="fox")]<|tool_call_end|>'),
]


class Agent:
    """A conversation with tools. Each answer is compared with the bare model."""

    def __init__(self, client: InlineClient) -> None:
        self.client = client
        self._processed = ProcessedTokens()
        self._num_requests = 0

    def ask(
        self, *messages: Message, reply: str, tools: str = TOOLS, new: int = 1, thought: str = ""
    ) -> tuple[Message, PromptPlan, int]:
        """Return the reply, the plan of its prompt, and the number of known tokens fed again."""
        self._num_requests += 1
        request = Request(
            request_id=RequestId(f"{self._num_requests}"),
            conversation_id=A,
            messages=messages,
            new_messages=frozenset(range(len(messages) - new, len(messages))),
            tools=tools,
            thinking=False,
            forced=ForcedReply(text=reply, reasoning=thought),
            record_logits=True,
        )
        self.client.send(Submit(request, time.perf_counter()))
        while not isinstance(event := self.client.next_event(), RequestFinished):
            assert not isinstance(event, RequestFailed), event
        checked = self.client.answer(self.client.verify(request.request_id, messages))
        assert checked.prompt_equal, checked
        assert checked.equal, checked
        assert checked.replay_difference == 0.0, checked
        plan = event.usage.plan
        redo = self._processed.add_answer(
            event.prompt_ids, event.output_ids, restored=plan.restored
        )
        return reply_of(event), plan, redo


@pytest.fixture(scope="module")
def open_agent(
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[Callable[[Path], Path]], Agent]:
    """Return a function that opens an engine with a model, which is built once."""
    built: dict[Callable[[Path], Path], Path] = {}

    def opened(build: Callable[[Path], Path]) -> Agent:
        if build not in built:
            built[build] = build(tmp_path_factory.mktemp("models") / "model")
        config = EngineConfig(use_openblas=False, cache_budget_bytes=1 << 30, saves_battery=False)
        client = InlineClient(config)
        load_model(client, built[build], lambda _: None)
        return Agent(client)

    return opened


@pytest.mark.parametrize(("build", "text"), rest_in_soak(MODELS, MODELS[1]))
def test_call_result_and_edited_result_feed_no_known_token(
    open_agent: Callable[[Callable[[Path], Path]], Agent],
    build: Callable[[Path], Path],
    text: str,
) -> None:
    agent = open_agent(build)
    result = Message(role=Role.TOOL, content="A red animal.", tool_name="look")
    asked = user("What is a fox?")
    edited = replace(result, content="Another animal <|im_end|>.")
    call, first, redo_1 = agent.ask(asked, reply=text)
    _, second, redo_2 = agent.ask(asked, call, result, reply="It is red.")
    answer, third, redo_3 = agent.ask(asked, call, edited, reply="Another one.")
    _, fourth, redo_4 = agent.ask(asked, call, result, reply="Red, again.", new=0)
    _, fifth, redo_5 = agent.ask(asked, call, edited, answer, user("And a dog?"), reply="A pet.")

    assert [redo_1, redo_2, redo_3, redo_4, redo_5] == [0] * 5
    assert [plan.replayed for plan in (first, second, third, fourth)] == [0] * 4
    assert all(plan.restored for plan in (second, third, fourth, fifth))


@pytest.mark.parametrize(("build", "text"), rest_in_soak(MODELS, MODELS[0]))
def test_calls_that_a_client_wrote_are_in_the_prompt(
    open_agent: Callable[[Callable[[Path], Path]], Agent],
    build: Callable[[Path], Path],
    text: str,
) -> None:
    agent = open_agent(build)
    calls = (ToolCall(name="look", arguments='{"word": "<|im_end|> </think>"}'),)
    asked = user("What is a fox?")
    call = Message(role=Role.ASSISTANT, content="", calls=calls)
    result = Message(role=Role.TOOL, content="Red.", tool_name="look")
    answer, _, _ = agent.ask(asked, call, result, reply="It is red.", new=3)
    _, plan, redo = agent.ask(asked, call, result, answer, user("Why?"), reply="So.")
    changed = replace(call, calls=(ToolCall(name="look", arguments='{"word": "dog"}'),))
    _, edited, _ = agent.ask(asked, changed, result, reply="A pet.", new=2)

    assert redo == 0
    assert plan.restored > 0
    assert ReasonKind.EDITED_MESSAGE in {reason.kind for reason in edited.reasons}
    facts = agent.client.core.model and agent.client.core.model.facts
    assert facts
    assert facts.can_use_tools
    inner = text.removeprefix(facts.call_start).removesuffix(facts.call_end)
    assert agent.client.answer(agent.client.parse_calls(inner, TOOLS)) == (
        ToolCall(name="look", arguments='{"word": "fox"}'),
    )


def test_changed_tools_are_the_reason_for_reading_again(
    open_agent: Callable[[Callable[[Path], Path]], Agent],
) -> None:
    agent = open_agent(qwen)
    asked = user("What is a fox?")
    answer, _, _ = agent.ask(asked, reply="Red.")
    both = tools("look", "find")
    _, plan, _ = agent.ask(asked, answer, user("Why?"), reply="So.", tools=both)

    assert plan.reasons[0].kind is ReasonKind.TOOLS_CHANGED
    assert "The list of tools changed the prompt" in plan.reasons[0].text


def test_parse_calls_without_a_model_or_without_a_form_gives_a_problem(open_tiny: OpenTiny) -> None:
    client = open_tiny("lfm2")
    with pytest.raises(AssertionError, match="The form of this model’s tool calls is not known"):
        client.answer(client.parse_calls("look()", ""))
    client.unload_model()
    with pytest.raises(AssertionError, match="No model is loaded"):
        client.answer(client.parse_calls("look()", ""))
