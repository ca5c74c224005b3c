"""The promise script over one process and over real ranks: the same reports, step by step.

    python -m tests.soak ranks

Each run is the command `rejoinder bench script - --check`, alone and with `--stages N`. Evictions of
every kind, a forgotten chat and a reload are among the steps. A second script lets four conversations
be answered at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

from tests.fakes.tiny_model import CONFIGS, Template, build_tiny
from tests.oracle.scripts import promise_script

Step = dict[str, Any]
Report = dict[str, Any]

# The fields of a report that may not depend on the number of ranks. `logits_hash` covers every bit of
# the logits of all tokens of an answer.
COMPARED: Final = (
    *("chat", "op", "text", "finish_reason", "prompt_tokens", "matched", "restored", "read"),
    *("replayed", "redo", "output_tokens", "prompt_equal", "equal", "max_difference"),
    *("replay_difference", "logits_hash"),
)


def eviction_steps(*, reasoning: bool) -> list[Step]:
    """Return a script with 37 answers: the promise script of three chats, then evictions."""

    def send(chat: str, text: str) -> Step:
        return {"op": "send", "chat": chat, "text": text, "max_tokens": 4}

    return [
        *promise_script(chats=3, turns=3, seed=5, reasoning=reasoning, max_tokens=4),
        {"op": "evict", "what": "hot"},
        send("A", "Back again? " * 5),
        send("B", "You too?"),
        {"op": "evict", "what": "snapshots"},
        send("B", "And here?"),
        {"op": "regenerate", "chat": "C", "max_tokens": 4},
        {"op": "evict", "what": "all"},
        send("A", "Once more."),
        {"op": "forget", "chat": "C"},
        send("C", "Do you know me?"),
        {"op": "reload"},
        send("B", "Still there?"),
    ]


def four_at_once(*, reasoning: bool) -> list[Step]:
    """Return a script in which four conversations are answered at once, four times.

    Each chat has a system prompt of its own, and the first answers are given one after the other. So no
    chat restores state of another one, which would depend on the order in which they end.
    """
    steps: list[Step] = [
        {"op": "system", "chat": chat, "text": f"{chat} is short."} for chat in "ABCD"
    ]
    for turn in range(5):
        if turn == 3:
            steps.append({"op": "evict", "what": "hot"})
        for number, chat in enumerate("ABCD"):
            step: Step = {
                "op": "regenerate" if turn == 2 else "send",
                "chat": chat,
                "max_tokens": 4 + 2 * number,
                "temperature": 0.8,
                "seed": turn,
                "wait": turn == 0,
            }
            if turn != 2:
                step["text"] = f"{turn} a list of small boats " * (number + 1)
            if number == turn % 4:
                step["reply"] = {"text": "A small boat."}
                step["reply"] |= {"reasoning": "boats"} if reasoning else {}
            steps.append(step)
        steps.append({"op": "join"})
    return steps


def play_ranks(folder: Path) -> bool:
    """Play both scripts on every tiny model with both templates, on 1, 2 and 3 ranks."""
    held = True
    for title, steps_of in (("37 answers", eviction_steps), ("four at once", four_at_once)):
        for name in CONFIGS:
            for template in Template:
                model = folder / f"{name}-{template}"
                if not model.exists():
                    build_tiny(name, model, template)
                steps = steps_of(reasoning=template is Template.THINKING)
                held &= compare(f"{name} {template}, {title}", model, steps)
    return held


def compare(title: str, model: Path, steps: list[Step]) -> bool:
    """Play a script on 1, 2 and 3 ranks. Print a line for each. Return True if all are equal."""
    wanted = by_chat(reports_of(model, steps, 1))
    held = True
    num_layers = layers_of(model)
    for num_ranks in range(2, min(num_layers, 3) + 1):
        started = time.monotonic()
        found = by_chat(reports_of(model, steps, num_ranks))
        differing = [
            f"{mine['chat']} {mine['op']} {field}: {mine.get(field)!r}, not {theirs.get(field)!r}"
            for mine, theirs in zip(found, wanted, strict=False)
            for field in COMPARED
            if mine.get(field) != theirs.get(field)
        ]
        worst = max(report["replay_difference"] for report in found)
        is_right = len(found) == len(wanted) and not differing and worst == 0.0
        held &= is_right
        redo = sum(report["redo"] for report in found)
        print(
            f"{title:<40} {num_ranks} ranks  {'held' if is_right else 'BROKEN'}  "
            f"answers {len(found)} of {len(wanted)}  differing fields {len(differing)}  redo {redo}"
            f"  replay difference {worst:.1e}  {time.monotonic() - started:.0f} s",
            *differing[:5],
            sep="\n    ",
            flush=True,
        )
    return held


def reports_of(model: Path, steps: list[Step], num_ranks: int) -> list[Report]:
    """Return the reports of `rejoinder bench script --check`. One rank is one process."""
    stages = () if num_ranks == 1 else ("--stages", str(num_ranks))
    command = [sys.executable, "-P", "-m", "app", "bench", "script", "-", "--check", "--json"]
    ended = subprocess.run(
        [*command, "--reference-blas", "--model", str(model), *stages],
        input="\n".join(json.dumps(step) for step in steps),
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.stderr.strip():
        print(ended.stderr.strip()[-300:], flush=True)
    return [json.loads(line) for line in ended.stdout.splitlines()]


def by_chat(reports: list[Report]) -> list[Report]:
    """Sort reports by chat. Answers that run at once may end in any order."""
    return sorted(reports, key=lambda report: report["chat"])


def layers_of(model: Path) -> int:
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    return config.get("text_config", config)["num_hidden_layers"]
