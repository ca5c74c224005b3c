"""Agents behind real chat templates, and the number of tokens that the engine feeds twice.

    python -m tests.oracle.tool_chats [--only TEMPLATE ...] [--rounds 12] [--seed 1]

An agent is a conversation whose replies call tools. Each of its requests is a random step: a turn
of the user, several results in one request, results that arrive one by one, a result after a reply,
an edited turn, a regenerated reply, or another system prompt. The redo of a request is counted from
outside: the longest common prefix of its prompt with everything that the engine read or wrote before,
less the restored tokens. Every message begins with another word, unless `alike` is set.
"""

# Control tokens of some templates have a full-width bar.
# ruff: noqa: RUF001

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

from app.cli.client import load_model
from app.cli.processed import ProcessedTokens
from engine.config import EngineConfig
from engine.events import RequestFailed, RequestFinished, Submit
from engine.types import ConversationId, ForcedReply, Message, Request, RequestId, Role
from tests.fakes.asking import reply_of
from tests.fakes.inline_engine import InlineClient
from tests.fakes.trl_templates import build_with_template
from tests.oracle.real_chats import Manner

DEFAULT, ON, OFF = Manner(), Manner(thinking=True), Manner(thinking=False)
KEPT, KEPT_OFF = Manner(keep_thinking=True), Manner(thinking=False, keep_thinking=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """The tool calls of a family of models."""

    call: tuple[str, str] = ("<tool_call>\n", "\n</tool_call>")  # text around each call
    results_as: Role = Role.TOOL  # USER if the template refuses or drops messages of tools
    # Format of a thought that the model opens, if it is not "<think>\n{}\n</think>\n\n".
    thought: str | None = None
    manners: tuple[Manner, ...] = (DEFAULT, OFF, KEPT)


_PLAIN = ('{"name": "', '"}')
FAMILIES: dict[str, Family] = {
    "qwen2_5": Family(manners=(DEFAULT,)),
    "qwen3": Family(),
    "qwen3_5_think": Family(),
    "qwen3_5_nothink": Family(manners=(DEFAULT, ON)),
    "qwen3_6": Family(manners=(DEFAULT, OFF, KEPT, KEPT_OFF)),
    # With thinking off, it begins the system prompt differently: up to 4 tokens are fed again, once.
    "qwen3_8": Family(manners=(DEFAULT, KEPT)),
    "llama3_1": Family(call=_PLAIN, manners=(DEFAULT,)),
    "lfm2": Family(call=("<|tool_call_start|>[", "]<|tool_call_end|>"), manners=(DEFAULT,)),
    "lfm2_2_5": Family(
        call=("<|tool_call_start|>[", "]<|tool_call_end|>"), thought="<think>{}</think>"
    ),
    "gptoss": Family(call=_PLAIN, results_as=Role.USER, manners=(DEFAULT,)),
    "glm4moe": Family(),
    "deepseekv3": Family(call=("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>")),
    "deepseek_r1_distill": Family(call=("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>")),
    "gemma3": Family(call=_PLAIN, results_as=Role.USER, manners=(DEFAULT,)),
    "gemma4": Family(call=("<|tool_call>call:", "<tool_call|>"), results_as=Role.USER),
    "gemma4_v5": Family(call=("<|tool_call>call:", "<tool_call|>"), results_as=Role.USER),
    "muse_glimmer": Family(call=_PLAIN),
    # Forced thoughts end with "</think>\n\n", but this template writes "</think>\n".
    "nemotron_3_nano": Family(manners=(OFF, KEPT_OFF)),
    "cohere2": Family(call=_PLAIN, results_as=Role.USER, manners=(DEFAULT,)),
    "phi3": Family(call=_PLAIN, results_as=Role.USER, manners=(DEFAULT,)),
}

_WORDS = [
    "harbour",
    "opens",
    "at six",
    "tide",
    "3 x 459.50",
    "naïve",
    "天気",
    "(wind)",
    "calm",
    "result",
]


@dataclass(frozen=True, slots=True)
class Step:
    """A finished request of an agent."""

    name: str
    prompt_tokens: int
    restored: int
    known: int  # number of leading tokens that the engine had read or written before
    again: str  # text of the tokens that were fed again

    @property
    def redo(self) -> int:
        return max(0, self.known - self.restored)


class Openings:
    """First words for messages. Their first tokens differ, until all words are used."""

    def __init__(self, client: InlineClient, rng: random.Random) -> None:
        assert client.core.model is not None
        tokenizer = client.core.model.prompts.tokenizer
        ids = rng.sample(range(500, 8_000), 7_000)
        words = (tokenizer.decode([token_id]) for token_id in ids)
        self._words = cycle(
            [w for w in words if w.isascii() and w.isalpha() and w[0].isupper() and len(w) > 2]
        )

    def next(self) -> str:
        return next(self._words)


@dataclass(slots=True)
class Agent:
    """A conversation that calls tools."""

    name: str
    manner: Manner
    messages: list[Message] = field(default_factory=list[Message])


class ToolChats:
    """Agents of one engine, which take random steps in turn."""

    def __init__(
        self,
        client: InlineClient,
        family: Family,
        *,
        seed: int,
        is_idle_on: bool,
        alike: bool = False,
        checks: bool = False,
        copies: int = 2,
    ) -> None:
        """Make `copies` agents for each manner of the family."""
        self._client = client
        self._family = family
        self._rng = random.Random(seed)
        self._openings = Openings(client, self._rng)
        self._is_idle_on = is_idle_on
        self._alike = alike
        self._checks = checks
        self._processed = ProcessedTokens()
        self._num_requests = 0
        self.steps: list[Step] = []
        self._agents = [
            Agent(f"{index} {manner}", manner)
            for index, manner in enumerate(family.manners * copies)
        ]
        for agent in self._agents:
            agent.messages.append(self._system())

    def play(self, rounds: int) -> None:
        for _ in range(rounds):
            for agent in self._agents:
                self._turn(agent)
                if self._is_idle_on:
                    self._idle()

    # Steps

    def _turn(self, agent: Agent) -> None:
        """Let the user of an agent do one thing, and let the agent call tools until it answers."""
        users = [i for i, m in enumerate(agent.messages) if m.role is Role.USER and i > 1]
        change = self._rng.random()
        name = "turn"
        if change < 0.12:
            agent.messages[0] = self._system()
            name = "turn after a changed system prompt"
        elif change < 0.24 and users:
            del agent.messages[self._rng.choice(users) :]
            name = "edited turn"
        elif change < 0.32 and users and self._regenerate(agent):
            return
        elif change < 0.37 and any(m.role is Role.TOOL for m in agent.messages):
            # The answer called a tool in a form that the engine does not know.
            agent.messages.append(self._result())
            self._ask(agent, "result after an answer", 0)
            return
        agent.messages.append(Message(role=Role.USER, content=self._text()))
        num_calls = self._rng.choice([0, 1, 2, 3])
        self._ask(agent, name, num_calls)
        for _ in range(4):
            if not num_calls:
                return
            num_calls = self._answer_calls(agent, num_calls)
            if self._is_idle_on and self._rng.random() < 0.5:
                self._idle()

    def _answer_calls(self, agent: Agent, num_calls: int) -> int:
        """Send the results of an agent's calls. Return the number of calls of its next reply."""
        following = self._rng.choice([0, 0, 1, 2])
        roll = self._rng.random()
        if self._rng.random() < 0.1:
            # The same reply again, with other calls.
            agent.messages.pop()
            self._ask(agent, "regenerated call", num_calls)
        if self._family.results_as is Role.USER:
            text = "\n".join(self._text() for _ in range(num_calls))
            agent.messages.append(Message(role=Role.USER, content=text))
            self._ask(agent, "results as a user message", following)
        elif roll < 0.1:
            agent.messages.append(Message(role=Role.USER, content=self._text()))
            self._ask(agent, "user message instead of a result", following)
        elif roll < 0.4:
            agent.messages += [self._result() for _ in range(num_calls)]
            self._ask(agent, f"{min(num_calls, 2)} results at once", following)
        elif roll < 0.5:
            agent.messages += [self._result() for _ in range(num_calls)]
            self._ask(agent, f"{min(num_calls, 2)} results at once", following)
            agent.messages[-2] = self._result()
            agent.messages.pop()
            self._ask(agent, "edited result", following)
        elif roll < 0.8:
            # Each result is sent as it arrives. The reply to the first results is discarded.
            for index in range(num_calls):
                agent.messages.append(self._result())
                self._ask(agent, f"result {index + 1} as it arrives", following)
                if index < num_calls - 1:
                    agent.messages.pop()
        else:
            for index in range(num_calls):
                agent.messages.append(self._result())
                more = num_calls - index - 1
                self._ask(agent, f"result {index + 1} after a reply", more or following)
        return following

    def _regenerate(self, agent: Agent) -> bool:
        if agent.messages[-1].role is not Role.ASSISTANT:
            return False
        agent.messages.pop()
        self._ask(agent, "regenerated", 0)
        return True

    def _ask(self, agent: Agent, name: str, num_calls: int) -> None:
        before, after = self._family.call
        calls = [
            f"{before}{self._openings.next()} {self._words(3)}{after}" for _ in range(num_calls)
        ]
        text = "\n".join(
            [self._text(), *calls] if self._rng.random() < 0.7 else calls or [self._text()]
        )
        self._num_requests += 1
        request = Request(
            request_id=RequestId(f"{self._num_requests}"),
            conversation_id=ConversationId(agent.name),
            messages=tuple(agent.messages),
            new_messages=frozenset({len(agent.messages) - 1}),
            thinking=agent.manner.thinking,
            keep_thinking=agent.manner.keep_thinking,
            forced=self._forced(agent, text),
            record_logits=self._checks,
        )
        finished = self._finish(request)
        known = self._processed.known_len(finished.prompt_ids)
        self._processed.add(finished.prompt_ids + finished.output_ids)
        plan = finished.usage.plan
        assert plan.prompt_tokens == len(finished.prompt_ids)
        assert self._client.core.model is not None
        tokenizer = self._client.core.model.prompts.tokenizer
        again = tokenizer.decode(finished.prompt_ids[plan.restored : known])
        self.steps.append(Step(name, plan.prompt_tokens, plan.restored, known, again))
        agent.messages.append(reply_of(finished))

    def _forced(self, agent: Agent, text: str) -> ForcedReply:
        """Return a reply with this text and, unless the prompt forbids it, with reasoning."""
        assert self._client.core.model is not None
        prompts = self._client.core.model.prompts
        prompt = prompts.build(
            agent.messages,
            thinking=agent.manner.thinking,
            keep_thinking=agent.manner.keep_thinking,
        )
        end = prompts.tokenizer.decode(prompts.tokenizer.markers.think_end)
        tail = prompts.tokenizer.decode(prompt.token_ids[prompt.message_starts[-1] :])
        is_off = agent.manner.thinking is False or not end or end in tail
        if is_off or self._rng.random() < 0.1:
            return ForcedReply(text=text)
        thought = f"{self._openings.next()} {self._words(8)}"
        if self._family.thought is None or prompt.in_reasoning:
            return ForcedReply(text=text, reasoning=thought)
        # The reply's tokens must be those that the template writes for a reply.
        return ForcedReply(text=self._family.thought.format(thought) + text)

    def _finish(self, request: Request) -> RequestFinished:
        self._client.send(Submit(request, time.perf_counter()))
        while not isinstance(event := self._client.next_event(), RequestFinished):
            assert not isinstance(event, RequestFailed), (event, request)
        if self._checks:
            checked = self._client.answer(self._client.verify(request.request_id, request.messages))
            assert checked.equal, checked
            assert checked.prompt_equal, checked
            assert checked.replay_difference == 0.0, checked
        return event

    def _idle(self) -> None:
        self._client.set_idle_work(enabled=True)
        self._client.answer(self._client.await_idle())
        self._client.set_idle_work(enabled=False)

    # Texts

    def _system(self) -> Message:
        return Message(role=Role.SYSTEM, content=self._text())

    def _result(self) -> Message:
        return Message(role=Role.TOOL, content=self._text())

    def _text(self) -> str:
        opening = self._rng.choice(["Yes", "The"]) if self._alike else self._openings.next()
        return f"{opening} {self._words(self._rng.randint(2, 12))}"

    def _words(self, number: int) -> str:
        return " ".join(self._rng.choices(_WORDS, k=number))


def open_with_template(folder: Path, name: str, architecture: str = "lfm2") -> InlineClient:
    """Open an engine, in this thread, with a tiny model that uses a real template."""
    config = EngineConfig(
        use_openblas=False, cache_budget_bytes=8 << 30, idle_work=False, saves_battery=False
    )
    client = InlineClient(config)
    model = folder / f"{name}-{architecture}"
    if not model.exists():
        build_with_template(name, model, architecture)
    load_model(client, model, lambda _: None)
    return client


def agents_table(
    folder: Path, names: Iterable[str] = FAMILIES, *, rounds: int = 12, seed: int = 1
) -> bool:
    """Print the redo behind each template, and return True if there is none."""
    print(
        f"{'template':<22}{'idle':>5}{'requests':>9}{'tokens':>9}{'redo':>6}{'in':>5}", flush=True
    )
    rows = [
        _row(folder, name, rounds, seed, is_idle_on=is_idle_on)
        for name in names
        for is_idle_on in (False, True)
    ]
    return all(rows)


def _row(folder: Path, name: str, rounds: int, seed: int, *, is_idle_on: bool) -> bool:
    started = time.monotonic()
    client = open_with_template(folder, name)
    chats = ToolChats(client, FAMILIES[name], seed=seed, is_idle_on=is_idle_on)
    chats.play(rounds)
    redone = [step for step in chats.steps if step.redo]
    print(
        f"{name:<22}{'on' if is_idle_on else 'off':>5}{len(chats.steps):>9}"
        f"{sum(step.prompt_tokens for step in chats.steps):>9}"
        f"{sum(step.redo for step in redone):>6}{len(redone):>5}"
        f"   {time.monotonic() - started:.0f} s",
        flush=True,
    )
    for step in redone:
        print(f"      {step.name}: {step.redo} tokens, {step.again!r}", flush=True)
    return not redone


def main() -> int:
    """Print the table and return the exit status: 0 if there is no redo."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--only", nargs="+", choices=FAMILIES, default=[*FAMILIES], metavar="NAME")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        held = agents_table(Path(folder), args.only, rounds=args.rounds, seed=args.seed)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
