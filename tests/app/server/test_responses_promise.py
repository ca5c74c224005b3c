"""Clients of the Responses API, which keep items, get every token restored that was read before."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from engine.types import ForcedReply
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.served_model import ServedModel, served_model
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

PATH = "/v1/responses"
RULES = "Write a short story about a small boat. " * 6
LOOK: dict[str, Any] = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
}
LOOKING = (
    "I look.\n\n<tool_call>\n<function=look>\n<parameter=word>\nfox\n</parameter>\n</function>"
    "\n</tool_call>"
)
BOAT = ForcedReply(text="A boat.")


class ItemAgent:
    """A client that sends back the items of all answers, as Codex does."""

    def __init__(self, served: ServedModel, *, streams: bool, keeps_reasoning: bool) -> None:
        self._served = served
        self._streams = streams
        self._keeps_reasoning = keeps_reasoning
        rules = [{"type": "input_text", "text": RULES}]
        self.items: list[dict[str, Any]] = [
            {"type": "message", "role": "developer", "content": rules}
        ]

    def ask(self, text: str, reply: ForcedReply | None) -> None:
        """Ask a question. reply: the reply of the model; None: the model draws one."""
        if reply is not None:
            self._served.replies.append(reply)
        content = [{"type": "input_text", "text": text}]
        self.send({"type": "message", "role": "user", "content": content}, max_output_tokens=12)

    def send(self, item: dict[str, Any], **body: Any) -> None:
        self.items.append(item)
        answer = self._served.post(
            PATH, input=self.items, temperature=1.0, stream=self._streams, **body
        )
        response = answer.events[-1][1]["response"] if self._streams else answer.body
        for item in response["output"]:
            if self._keeps_reasoning or item["type"] != "reasoning":
                self.items.append(item)
        self._served.await_idle()


@pytest.mark.parametrize(
    ("template", "keeps_reasoning", "streams"),
    rest_in_soak(
        product([Template.KEEPING, Template.THINKING], [False, True], [False, True]),
        (Template.KEEPING, True, False),
        (Template.THINKING, False, False),
        (Template.THINKING, True, True),
    ),
)
@pytest.mark.parametrize("name", rest_in_soak(["qwen3_5", "lfm2", "llama"], "qwen3_5"))
def test_turns_edits_and_branches_feed_no_known_token(
    tiny_model: TinyModel, name: str, template: Template, *, keeps_reasoning: bool, streams: bool
) -> None:
    # A reply of the thinking template is forced: a random one never ends its reasoning.
    reply = replace(BOAT, reasoning="Well.") if template is Template.THINKING else None
    with served_model(tiny_model(name, template)) as served:
        agent = ItemAgent(served, streams=streams, keeps_reasoning=keeps_reasoning)
        starts: list[int] = []  # numbers of items before the turns

        def ask(text: str) -> None:
            agent.ask(text, reply)
            assert served.redo() == 0

        for turn in range(4):
            starts.append(len(agent.items))
            ask(f"What is number {turn} like?")
        for turn in (3, 1):
            kept = list(agent.items)
            agent.items = kept[: starts[turn]]
            ask(f"In other words, number {turn}, please.")
            agent.items = kept
        ask("And then?")

        assert len({one.conversation_id for one in served.requests}) == 1
        replies = [one.reply for one in served.requests[-1].messages if one.role == "assistant"]
        assert len(replies) == 4
        assert None not in replies


@pytest.mark.slow
@pytest.mark.parametrize("streams", [False, True])
def test_calls_and_their_results_feed_no_known_token(
    calling: ServedModel, *, streams: bool
) -> None:
    tools = [{"type": "namespace", "name": "book", "tools": [LOOK]}]
    agent = ItemAgent(calling, streams=streams, keeps_reasoning=False)

    def send(item: dict[str, Any], reply: str) -> None:
        calling.replies.append(ForcedReply(text=reply))
        agent.send(item, tools=tools, reasoning={"effort": "none"})
        assert calling.redo() == 0

    send({"role": "user", "content": f"{streams}: what is a fox?"}, LOOKING)
    message, call = agent.items[-2:]
    assert message["content"][0]["text"] == "I look."
    assert (call["namespace"], call["name"]) == ("book", "look")
    assert json.loads(call["arguments"]) == {"word": "fox"}
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "Red."}
    before = list(agent.items)
    send(result, "It is red.")
    send({"role": "user", "content": "Sure?"}, LOOKING)
    agent.items = before
    send({**result, "output": "Another animal."}, "It is another one.")

    (own,) = [one for one in calling.requests[-1].messages if one.role == "assistant"]
    assert own.reply is not None
    assert calling.requests[-1].messages[-1].tool_name == "look"
    assert calling.finished[-1].usage.plan.restored > 0
