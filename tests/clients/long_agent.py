"""An agent of many turns over HTTP, without ids, and the tokens that the engine feeds twice.

    python -m tests.clients.long_agent [--turns 40]

The agent calls a tool in each turn, and the results grow. Every fifth turn it edits an old result, every
third turn another program sends a side request with its own system prompt, and in the middle
the server and its engine are restarted on the same disk cache. Prints a line for each model: the tokens
of all requests of the agent, and the redo, which must be 0.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.cli.processed import ProcessedTokens
from engine.types import ForcedReply
from tests.clients.task import Call
from tests.fakes.qwen import Qwen, build_qwen
from tests.fakes.served_model import ServedModel, served_model
from tests.fakes.trl_templates import build_with_template

_PATH = "/v1/chat/completions"
_EDITS_EVERY, _SIDE_EVERY = 5, 3
_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look a word up.",
        "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
    },
}
_SYSTEM = "You look words up and write about them. " * 20


def _as_json(call: Call) -> str:
    value = {"name": call.tool, "arguments": call.arguments}
    return f"<tool_call>\n{json.dumps(value)}\n</tool_call>"


@dataclass(frozen=True, slots=True)
class Model:
    """A model that can call tools."""

    build: Callable[[Path], Path]
    write: Callable[[Call], str]  # returns the text of a call


MODELS = {
    "qwen3_5": Model(
        lambda out: build_qwen(Qwen.QWEN3_5, out, num_tokens=8_000), lambda call: call.text
    ),
    "lfm2": Model(lambda out: build_with_template("qwen3", out, "lfm2"), _as_json),
    "llama": Model(lambda out: build_with_template("qwen3", out, "llama"), _as_json),
}


@dataclass(slots=True)
class Figures:
    """The tokens of all requests of an agent."""

    requests: int = 0
    edits: int = 0
    restored: int = 0
    replayed: int = 0
    read: int = 0
    redo: int = 0
    side_redo: int = 0
    after_restart: int = 0  # tokens restored by the first request after the restart


class LongAgent:
    """The agent, with its messages as text."""

    def __init__(self, model: Model) -> None:
        self.figures = Figures()
        self._model = model
        self._processed = ProcessedTokens()
        self._messages: list[dict[str, Any]] = [
            {"role": "system", "content": _SYSTEM},
            {"role": "user", "content": "Write about twelve animals."},
        ]

    def play(self, served: ServedModel, turns: range) -> None:
        for turn in turns:
            if turn and turn % _EDITS_EVERY == 0:
                self._edit(turn)
            self._turn(served, turn, is_first=turn == turns[0] > 0)
            if turn % _SIDE_EVERY == 0:
                self._ask_aside(served, turn)

    def _turn(self, served: ServedModel, turn: int, *, is_first: bool) -> None:
        call = Call("look", {"word": f"word {turn}"})
        served.replies.append(
            ForcedReply(text=f"{turn}: I look.\n\n{self._model.write(call)}", reasoning="Well.")
        )
        answer = served.post(_PATH, messages=self._messages, tools=[_TOOL], max_tokens=400)
        message = answer.body["choices"][0]["message"]
        (called,) = message["tool_calls"]
        result = f"{turn} is an animal. " + "It lives in the wood. " * (1 + turn)
        self._messages += [
            message,
            {"role": "tool", "tool_call_id": called["id"], "content": result},
        ]
        redo, plan = self._redo(served), served.finished[-1].usage.plan
        figures = self.figures
        figures.requests += 1
        figures.redo += redo
        figures.restored += plan.restored
        figures.replayed += plan.replayed
        figures.read += plan.read
        if is_first:
            figures.after_restart = plan.restored

    def _edit(self, turn: int) -> None:
        """Replace the result of an earlier turn, as agents do to save tokens."""
        results = [one for one in self._messages if one["role"] == "tool"]
        results[-2]["content"] = f"[Removed in turn {turn}]"
        self.figures.edits += 1

    def _ask_aside(self, served: ServedModel, turn: int) -> None:
        served.replies.append(ForcedReply(text="A title."))
        question = self._messages[1]["content"]
        served.post(
            _PATH,
            messages=[
                {"role": "system", "content": f"{turn}. Write a title. " + "Be brief. " * 60},
                {"role": "user", "content": question},
            ],
            max_tokens=20,
        )
        self.figures.side_redo += self._redo(served)

    def _redo(self, served: ServedModel) -> int:
        """Return the redo of the last request, and wait until nothing is left to read ahead."""
        served.await_idle()
        last = served.finished[-1]
        return self._processed.add_answer(
            last.prompt_ids, last.output_ids, restored=last.usage.plan.restored
        )


def run_long_agent(name: str, folder: Path, num_turns: int) -> Figures:
    """Run the agent on a tiny model. folder: an empty one."""
    model = MODELS[name]
    built = model.build(folder / "model")
    agent = LongAgent(model)
    middle = num_turns // 2 + 1
    for turns in (range(middle), range(middle, num_turns)):
        with served_model(
            built,
            replies_file=folder / "replies.db",
            disk_folder=folder / "state",
            disk_rest_s=0.0,
        ) as served:
            agent.play(served, turns)
    return agent.figures


def main() -> int:
    parser = argparse.ArgumentParser(description="Run an agent of many turns.")
    parser.add_argument("--turns", type=int, default=40)
    args = parser.parse_args()
    has_redo = False
    for name in MODELS:
        start = time.process_time()
        with tempfile.TemporaryDirectory() as folder:
            figures = run_long_agent(name, Path(folder), args.turns)
        has_redo |= figures.redo > 0
        print(f"{name}: {figures}, {time.process_time() - start:.1f} s of CPU time", flush=True)
    return 1 if has_redo else 0


if __name__ == "__main__":
    sys.exit(main())
