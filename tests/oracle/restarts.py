"""Chats that are continued after a restart: their state comes from disk, and no token is fed twice."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.cli.client import EngineRuns, load_model
from app.cli.player import ScriptPlayer
from app.cli.script import parse_step
from app.cli.step_report import StepReport
from engine.config import EngineConfig
from tests.fakes.tiny_model import CONFIGS, Template, build_tiny
from tests.oracle.scripts import promise_script

CHATS = 50
TURNS = 4
IN_MEMORY = 5  # chats that fit into the memory budget of the last part
LEAST_FROM_DISK = 0.9  # of the restored tokens in the first request of each chat

Step = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Restart:
    """The reports of the steps before and after a restart."""

    before: list[StepReport]
    after: list[StepReport]

    @property
    def redo(self) -> int:
        """Tokens that were fed again in chats that had been answered before."""
        seen: set[str] = set()
        redo = 0
        for report in (*self.before, *self.after):
            redo += report.redo if report.chat in seen else 0
            seen.add(report.chat)
        return redo

    @property
    def from_disk(self) -> float:
        """The smallest share of restored tokens from disk in the first request of each chat."""
        first: dict[str, StepReport] = {}
        for report in self.after:
            first.setdefault(report.chat, report)
        return min(one.restored_disk / max(1, one.restored) for one in first.values())

    @property
    def is_exact(self) -> bool:
        """True if every answer after the restart is that of the bare model."""
        return all(
            one.holds and one.check is not None and one.check.replay_difference == 0
            for one in self.after
        )


def restart_chats(folder: Path) -> bool:
    """Play three scripts with a restart on every tiny model. Return True if nothing was fed twice.

    The scripts are the promise script with all its branches, fifty chats, and fifty chats with a
    memory budget for five of them.
    """
    held = True
    for name in CONFIGS:
        for template in Template:
            model = build_tiny(name, folder / f"{name}-{template}", template)
            title = f"{name} {template}"
            thinks = template is Template.THINKING
            tree = play(model, *tree_steps(reasoning=thinks))
            held &= _show(f"{title}, tree", tree)
            many = play(model, *many_steps(CHATS, TURNS, reasoning=thinks))
            held &= _show(f"{title}, {CHATS} chats", many)
            budget = many.before[-1].cache_bytes * IN_MEMORY // CHATS
            few = play(model, *many_steps(CHATS, TURNS, reasoning=thinks), budget)
            held &= _show(f"{title}, {IN_MEMORY} in memory", few, least=0)
    return held


def tree_steps(*, reasoning: bool) -> tuple[list[Step], list[Step]]:
    """Return the promise script, and the steps after it: each branch of each chat is asked again."""
    before = promise_script(chats=8, turns=4, seed=1, reasoning=reasoning)
    after: list[Step] = []
    for chat in "ABCDEFGH":
        after.append(_send(chat, "more", reasoning=reasoning))
        after.append(
            {"op": "switch_branch", "chat": chat, "message": 2, "version": 2, "of": "user"}
        )
        after.append(_send(chat, "more of the other branch", reasoning=reasoning))
    return before, after


def many_steps(chats: int, turns: int, *, reasoning: bool) -> tuple[list[Step], list[Step]]:
    """Return the turns of many chats in rotation, and one more message for each chat."""
    names = [str(number) for number in range(chats)]
    before = [
        _send(name, f"{name} has a boat in the harbour, {turn}", reasoning=reasoning)
        for turn in range(turns)
        for name in names
    ]
    return before, [_send(name, "more", reasoning=reasoning) for name in names]


def _send(chat: str, text: str, *, reasoning: bool) -> Step:
    reply = {"text": f"The boat of {chat} is small and brown."}
    if reasoning:
        reply["reasoning"] = "about boats"
    return {"op": "send", "chat": chat, "text": text, "reply": reply}


def play(
    model: Path, before: Sequence[Step], after: Sequence[Step], cache_bytes: int = 1 << 30
) -> Restart:
    """Play steps, restart the engine, and play other steps, each of them checked."""
    folder = model.parent / f"{model.name}-{len(before)}-{cache_bytes}"
    config = EngineConfig(
        use_openblas=False,
        idle_work=False,
        saves_battery=False,
        disk_folder=folder,
        disk_rest_s=0.0,
        cache_budget_bytes=cache_bytes,
    )
    with EngineRuns(config) as engines:
        client = engines.start()
        load_model(client, model, lambda _: None)
        player = ScriptPlayer(client, model, check=False, restart=engines.start)
        reports = _play(player, [*before, {"op": "restart"}])
        player.check = True
        return Restart(reports, _play(player, after))


def _play(player: ScriptPlayer, steps: Sequence[Step]) -> list[StepReport]:
    reports = [report for step in steps for report in player.play(parse_step(json.dumps(step)))]
    return [*reports, *player.join()]


def _show(title: str, restart: Restart, *, least: float = LEAST_FROM_DISK) -> bool:
    held = restart.is_exact and restart.redo == 0 and restart.from_disk >= least
    print(
        f"{title:<32} {'held' if held else 'BROKEN'}  redo {restart.redo}"
        f"  least from disk {restart.from_disk:.2f}",
        flush=True,
    )
    return held
