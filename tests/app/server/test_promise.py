"""Clients that send no id of a chat get every token restored that was read before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine.types import ForcedReply
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.served_model import ServedModel, served_model
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

PATH = "/v1/chat/completions"
SYSTEM = {"role": "system", "content": "Write a short story about a small boat. " * 6}
TEMPLATES = [Template.KEEPING, Template.THINKING]
BOAT, SLEEP = ForcedReply(text="A boat."), ForcedReply(text="It sleeps.")


class Agent:
    """A client that keeps its own messages, as text."""

    def __init__(self, served: ServedModel, *messages: dict[str, Any]) -> None:
        self.served = served
        self.messages = list(messages)

    def ask(self, text: str, reply: ForcedReply | None = None) -> str:
        """Ask a question. reply: the reply of the model; None: the model draws one."""
        if reply is not None:
            self.served.replies.append(reply)
        self.messages.append({"role": "user", "content": text})
        answer = self.served.post(PATH, messages=self.messages, max_tokens=12, temperature=1.0)
        message = answer.body["choices"][0]["message"]
        self.messages.append(message)
        self.served.await_idle()
        return message["content"] or ""

    def back_to(self, turn: int) -> None:
        """Forget the turns from a turn on."""
        first = 1 + 2 * turn
        self.messages = self.messages[:first]


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("name", rest_in_soak(["qwen3_5", "lfm2", "llama"], "qwen3_5"))
def test_edits_branches_and_regenerated_answers_feed_no_known_token(
    tiny_model: TinyModel, name: str, template: Template
) -> None:
    # A reply of the thinking template is forced: a random one never ends its reasoning.
    reply = replace(BOAT, reasoning="Well.") if template is Template.THINKING else None
    with served_model(tiny_model(name, template)) as served:
        agent = Agent(served, SYSTEM)

        def ask(text: str) -> None:
            agent.ask(text, reply)
            assert served.redo() == 0

        for turn in range(4):
            ask(f"What is number {turn} like?")
        for turn in (3, 1, 0, 3):
            kept = list(agent.messages)
            agent.back_to(turn)
            ask(f"In other words, number {turn}, please.")
            agent.messages = kept
        agent.back_to(3)
        ask("What is number 3 like?")
        ask("And then?")

        assert len({one.conversation_id for one in served.requests}) == 2  # another first question


def test_reply_with_other_ids_than_its_text_is_found(tiny_model: TinyModel) -> None:
    """The encoder would give other ids for most drawn replies. The drawn ids are used."""
    with served_model(tiny_model("qwen3_5", Template.KEEPING)) as served:
        agent = Agent(served, SYSTEM)
        agent.ask("What is it like?")
        drawn = served.finished[-1]
        agent.ask("And then?")

        prompt = served.finished[-1].prompt_ids
        length = len(drawn.prompt_ids)
        ids = drawn.reply.token_ids
        assert prompt[length : length + len(ids) - 1] == ids[:-1]


def test_side_request_takes_a_chat_of_its_own(tiny_model: TinyModel) -> None:
    with served_model(tiny_model("qwen3_5", Template.KEEPING)) as served:
        main = Agent(served, SYSTEM)
        main.ask("What is it like?", BOAT)
        side = Agent(served, {"role": "system", "content": "Write a title."})
        side.ask("What is it like?", BOAT)
        main.ask("And then?", SLEEP)

        ids = [one.conversation_id for one in served.requests]
        assert ids[0] == ids[2] != ids[1]
        assert served.finished[-1].usage.plan.replayed == 0


def test_reasoning_does_not_get_into_the_chat_of_another_program(tiny_model: TinyModel) -> None:
    """Two chats in which the model gives the same reply."""
    with served_model(tiny_model("qwen3_5", Template.THINKING)) as served:
        Agent(served, SYSTEM).ask("What is it like?", replace(BOAT, reasoning="Secret."))
        other = [
            {"role": "user", "content": "Tell me."},
            {"role": "assistant", "content": "A boat."},
        ]
        Agent(served, *other).ask("And then?", SLEEP)

        assert not any(message.reasoning for message in served.requests[-1].messages)


def test_changed_line_of_the_system_prompt_is_reported(tiny_model: TinyModel) -> None:
    lines = [f"Rule {number}: be brief and kind." for number in range(40)]
    with served_model(tiny_model("qwen3_5", Template.KEEPING)) as served:
        for minute in ("12:01", "12:02"):
            system = {"role": "system", "content": "\n".join([f"It is {minute}.", *lines])}
            Agent(served, system).ask("What is it like?", BOAT)

        first, second = served.reports.get(), served.reports.get()
        assert first.change is None
        assert second.change is not None
        assert (second.change.old_line, second.change.new_line) == ("It is 12:01.", "It is 12:02.")


def test_two_clients_with_one_beginning_do_not_wait_for_each_other(tiny_model: TinyModel) -> None:
    with served_model(tiny_model("qwen3_5", Template.KEEPING)) as served:
        first, second = Agent(served, SYSTEM), Agent(served, SYSTEM)
        first.ask("What is it like?", BOAT)
        second.messages = list(first.messages)
        first.ask("And then?", SLEEP)
        second.ask("Is it small?", SLEEP)

        assert served.finished[-1].usage.plan.replayed == 0


def test_restart_of_the_server_feeds_nothing_again(tiny_model: TinyModel, tmp_path: Path) -> None:
    folder, replies = tiny_model("qwen3_5", Template.KEEPING), tmp_path / "replies.db"
    with served_model(
        folder, replies_file=replies, disk_folder=tmp_path / "state", disk_rest_s=0.0
    ) as served:
        agent = Agent(served, SYSTEM)
        agent.ask("What is it like?")
        agent.ask("And then?")
        processed = served.processed
        served.redo()
        known = served.finished[-1]
    with served_model(folder, replies_file=replies, disk_folder=tmp_path / "state") as served:
        again = Agent(served, *agent.messages)
        again.ask("Is it small?")

        last = served.finished[-1]
        assert last.prompt_ids[: len(known.prompt_ids)] == known.prompt_ids
        restored = last.usage.plan.restored
        assert restored > len(known.prompt_ids)
        assert processed.add_answer(last.prompt_ids, (), restored=restored) == 0
