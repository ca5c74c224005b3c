"""Run coding agents against the server, with a scripted tiny model.

    python -m tests.clients --tools FOLDER [claude] [codex] [opencode] [qwen] [--keep FOLDER] [--seconds 240]

FOLDER has the agents, installed by

    npm install --prefix FOLDER @anthropic-ai/claude-code @openai/codex opencode-ai @qwen-code/qwen-code

The model is a tiny random Qwen3.5 on the real engine, with the real tokenizer and template. Its replies
are given (task.py) and call the agents' own tools. Each agent does a task of 17 turns: it lists, runs,
writes and reads in a temporary folder, calls a tool that is not there, calls two tools at once, and
asks a second agent if it can. Then a new process of the agent continues the chat. Agents get a home of
their own and no way to the Internet.

Prints a line for each request, and a table of the agents. `redo` are the tokens that were fed although
the engine had fed them before, after the same prefix. Where an agent changes an earlier message, the
message is fed from its beginning (`edited`: number of such requests, and their redo). The exit status is
1 if an agent did not finish the task, if the server refused or failed a request, or if another request of
the task has a redo.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from engine.types import Request
from tests.clients.coding_agents import AGENTS, CodingAgent, Place, environment
from tests.clients.recording import Cost, Exchange, RecordedServer, recorded_server
from tests.clients.task import DONE, PROMPTS, Script, has_changed, is_main
from tests.fakes.qwen import Qwen, build_qwen
from tests.fakes.served_model import KEY

_NUM_TOKENS = 8_000  # of the vocabulary: more would make passes slow
_HEAD = (
    f"{'agent':<9} {'ended':<6} {'seconds':>7} {'requests':>8} {'errors':>6} {'turns':>5}"
    f" {'restored':>9} {'replayed':>8} {'read':>7} {'redo':>5} {'edited (redo)':>13}"
    f" {'side (redo)':>11}"
)


class _Kind(StrEnum):
    """Kinds of requests."""

    TASK = "task"
    EDITED = "task, after an edit"  # the agent changed an earlier message, or the reply
    SIDE = "side"


@dataclass(frozen=True, slots=True)
class _Answered:
    """An exchange, with the cost of the answer if there was one."""

    exchange: Exchange
    kind: _Kind | None
    cost: Cost | None

    @property
    def line(self) -> str:
        one = self.exchange
        line = f"{one.method} {one.path} {one.status}"
        if self.cost:
            plan = self.cost.usage.plan
            line += (
                f" {self.kind}: {plan.prompt_tokens:,} tokens, restored {plan.restored:,}, replayed"
                f" {plan.replayed:,}, read {plan.read:,}, redo {self.cost.redo:,}"
            )
        return f"{line} {one.error}".rstrip()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The run of an agent."""

    name: str
    has_ended_well: bool
    seconds: float
    answered: Sequence[_Answered]

    @property
    def num_errors(self) -> int:
        return sum(1 for one in self.answered if one.exchange.error)

    @property
    def holds(self) -> bool:
        return self.has_ended_well and not self.num_errors and not self._redo(_Kind.TASK)

    @property
    def row(self) -> str:
        task = self._costs(_Kind.TASK) + self._costs(_Kind.EDITED)
        plans = [cost.usage.plan for cost in task]
        edited, side = (
            f"{len(self._costs(kind))} ({self._redo(kind):,})"
            for kind in (_Kind.EDITED, _Kind.SIDE)
        )
        return (
            f"{self.name:<9} {'well' if self.has_ended_well else 'BADLY':<6} {self.seconds:>7.1f}"
            f" {len(self.answered):>8} {self.num_errors:>6} {len(plans):>5}"
            f" {sum(one.restored for one in plans):>9,} {sum(one.replayed for one in plans):>8,}"
            f" {sum(one.read for one in plans):>7,} {self._redo(_Kind.TASK):>5,} {edited:>13}"
            f" {side:>11}"
        )

    def _costs(self, kind: _Kind) -> list[Cost]:
        return [one.cost for one in self.answered if one.kind is kind and one.cost]

    def _redo(self, kind: _Kind) -> int:
        return sum(cost.redo for cost in self._costs(kind))


def _with_costs(server: RecordedServer) -> Iterator[_Answered]:
    costs = server.costs()
    before: Request | None = None
    for exchange in server.exchanges:
        request = exchange.request
        kind = None
        if request is not None:
            kind = _Kind.TASK if is_main(request) else _Kind.SIDE
        if request is not None and kind is _Kind.TASK:
            if before is not None and has_changed(before, request):
                kind = _Kind.EDITED
            before = request
        yield _Answered(exchange, kind, costs.get(request.request_id) if request else None)


def run_agent(name: str, model: Path, tools: Path, seconds: float, folder: Path) -> Outcome:
    """Let an agent do the task. folder: an empty one for its home and its files."""
    agent = AGENTS[name]
    home, work = folder / "home", folder / "work"
    (home / "tmp").mkdir(parents=True)
    work.mkdir()
    script = Script(agent.tools, work)
    start = time.perf_counter()
    with recorded_server(model, script.reply_to) as server:
        place = Place(home, work, server.url, KEY)
        variables = environment(place, tools, agent.prepare(place))
        ends: list[bool] = []
        for index in range(len(PROMPTS)):
            ends.append(_prompt(agent, index, variables, place, seconds, folder))
            server.await_idle()
        answered = list(_with_costs(server))
    return Outcome(name, all(ends) and script.is_done, time.perf_counter() - start, answered)


def _prompt(
    agent: CodingAgent,
    index: int,
    variables: dict[str, str],
    place: Place,
    seconds: float,
    folder: Path,
) -> bool:
    """Give an agent a prompt. Return True if it ends well."""
    arguments = agent.further if index else agent.arguments
    file = folder / f"output{index}.txt"
    with file.open("w") as output:
        try:
            status = subprocess.run(
                [agent.program, *arguments, PROMPTS[index]],
                env=variables,
                cwd=place.work,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            status = None
    text = file.read_text(errors="replace")
    if status == 0 and DONE in text:
        return True
    print(f"{agent.program}: status {status}\n{text[-2000:]}", flush=True)
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description="Run coding agents against the server.")
    parser.add_argument("agents", nargs="*", metavar="AGENT", help=f"{', '.join(AGENTS)}")
    parser.add_argument("--tools", type=Path, required=True, help="the folder of npm")
    parser.add_argument("--keep", type=Path, help="an empty folder for all that was sent")
    parser.add_argument("--seconds", type=float, default=240.0, help="limit for each prompt")
    args = parser.parse_args()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as temporary:
        root = args.keep or Path(temporary)
        model = build_qwen(Qwen.QWEN3_5, root / "model", num_tokens=_NUM_TOKENS)
        for name in args.agents or AGENTS:
            tools = args.tools.resolve()
            outcome = run_agent(name, model, tools, args.seconds, root / name)
            outcomes.append(outcome)
            for number, one in enumerate(outcome.answered):
                print(f"{name}: {one.line}", flush=True)
                (root / name / f"{number:03}-sent.json").write_bytes(one.exchange.body)
                (root / name / f"{number:03}-answer.txt").write_bytes(one.exchange.answer)
    print(_HEAD)
    for outcome in outcomes:
        print(outcome.row)
    return 0 if all(outcome.holds for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
