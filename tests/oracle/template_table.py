"""A table of the tokens that the engine reads and replays with each real Qwen template.

    python -m tests.oracle.template_table [--chats 8] [--turns 6] [--only ROW ...]

Each row is played twice: without a pause between turns, and with idle time between turns. With
idle time, the engine may replay nothing. Without idle time, it may replay the last answer if the
template drops thoughts.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.chat.prompt_builder import PromptBuilder
from engine.models.renderer import JinjaRenderer
from tests.fakes.qwen import Qwen, build_qwen, qwen_chat_tokenizer, qwen_template
from tests.oracle.real_chats import Lengths, Manner, RealChats, RealChatsTally, RealTurn, tally

DEFAULT, ON, OFF = Manner(), Manner(thinking=True), Manner(thinking=False)
KEPT, KEPT_OFF = Manner(keep_thinking=True), Manner(thinking=False, keep_thinking=True)
ROWS = {
    "Qwen3.5": (Qwen.QWEN3_5, DEFAULT),
    "Qwen3.5 off": (Qwen.QWEN3_5, OFF),
    "Qwen3.5 small": (Qwen.QWEN3_5_SMALL, DEFAULT),
    "Qwen3.5 small on": (Qwen.QWEN3_5_SMALL, ON),
    "Qwen3.6": (Qwen.QWEN3_6, DEFAULT),
    "Qwen3.6 off": (Qwen.QWEN3_6, OFF),
    "Qwen3.6 kept": (Qwen.QWEN3_6, KEPT),
    "Qwen3.6 kept off": (Qwen.QWEN3_6, KEPT_OFF),
    "Qwen3": (Qwen.QWEN3, DEFAULT),
    "Qwen3 off": (Qwen.QWEN3, OFF),
    "Qwen3.8": (Qwen.QWEN3_8, DEFAULT),
    "Qwen3.8 off": (Qwen.QWEN3_8, OFF),
}
HEADER = (
    f"{'template':<18}{'turns':>6}   without idle: {'replayed':>9}{'of stripped':>12}{'redo':>6}"
    f"   after idle: {'replayed':>9}{'redo':>6}{'exact':>8}   seconds"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """The number of conversations in each table row, and of turns in each conversation."""

    chats: int = 8
    turns: int = 6


def template_table(
    folder: Path, names: Iterable[str] = ROWS, size: TableSize | None = None
) -> bool:
    """Print the table and return True if every row meets its limits."""
    print(HEADER, flush=True)
    rows = [_row(folder, name, size or TableSize()) for name in names]
    return all(rows)


def _row(folder: Path, name: str, size: TableSize) -> bool:
    qwen, manner = ROWS[name]
    started = time.monotonic()
    model = folder / qwen
    if not model.exists():
        build_qwen(qwen, model)
    hurried = _play(model, qwen, manner, size, idle=False)
    rested = _play(model, qwen, manner, size, idle=True)
    held = hurried.holds and rested.is_exact and not rested.redo
    print(
        f"{name:<18}{hurried.num_turns:>6}{'':17}{hurried.replayed:>9}"
        f"{hurried.stripped:>12}{hurried.redo:>6}{'':15}{rested.replayed:>9}{rested.redo:>6}"
        f"{rested.num_exact:>4}/{rested.num_turns:<3}   {time.monotonic() - started:.0f}"
        f"{'' if held else '   BROKEN'}",
        flush=True,
    )
    return held


def _play(
    model: Path, qwen: Qwen, manner: Manner, size: TableSize, *, idle: bool
) -> RealChatsTally:
    prompts = PromptBuilder(qwen_chat_tokenizer(qwen), JinjaRenderer(qwen_template(qwen), {}))
    chats = RealChats(prompts, [manner] * size.chats, Lengths(), seed=1)
    steps: list[dict[str, Any]] = chats.systems()
    turns: list[RealTurn] = []
    for _ in range(size.turns):
        for turn in chats.round():
            turns.append(turn)
            steps += [dict(turn.step), {"op": "idle"}] if idle else [dict(turn.step)]
    command = [
        sys.executable,
        "-P",
        "-m",
        "app",
        "bench",
        "script",
        "-",
        "--json",
        "--model",
        str(model),
    ]
    ended = subprocess.run(
        [*command, "--data-dir", str(model.parent / "data")],
        input="\n".join(json.dumps(step) for step in steps),
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        print(ended.stderr.strip()[-500:], file=sys.stderr, flush=True)
        ended.check_returncode()
    return tally(turns, [json.loads(line) for line in ended.stdout.splitlines()])


def main() -> int:
    """Print the table and return the exit status: 0 if every row meets its limits."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--only", nargs="+", choices=ROWS, default=[*ROWS], metavar="ROW")
    parser.add_argument("--chats", type=int, default=8)
    parser.add_argument("--turns", type=int, default=6)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        size = TableSize(chats=args.chats, turns=args.turns)
        return 0 if template_table(Path(folder), args.only, size) else 1


if __name__ == "__main__":
    sys.exit(main())
