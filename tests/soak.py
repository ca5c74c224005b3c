"""Long runs of the engine and the app.

    python -m tests.soak [promise] [types] [templates] [replies] [agents] [restarts] [files] [ranks] [machine] [turns] [answers]
                         [starts] [kills] [disk] [full] [damage] [log] [changes] [exchange] [stages] [window] [commands]
                         [hub]

Without a name all runs are made. The last fifteen names accept a number of rounds, as in machine=1000.

promise    plays the full script of tests.oracle.scripts on every tiny model (8 chats of 4 turns)
           and on the starter model (3 chats of 2 turns). Each step is compared with the bare model.
types      plays the script with reasoning on every model type that tests.architectures calls exact
           (2 chats of 2 turns)
templates  plays 8 chats of 6 turns with every real Qwen template, without and with idle work
replies    puts replies of blanks, markers and control tokens behind every real template: no prompt may
           be damaged, no chat refused
agents     plays agents with tools behind twenty real templates, without and with idle work
restarts   plays three scripts with a restart on every tiny model: all branches of eight chats, fifty
           chats, and fifty chats with memory for five. No token may be fed twice.
files      asks 21 questions about an attached file of 3,000 tokens on every tiny model, by edits
ranks      plays 37 answers with all kinds of eviction, and four conversations at once, on every tiny model
           over 2 and 3 ranks: each report must equal that of one process
machine    runs the state machine of tests.oracle on the whole engine, 100 examples per tiny model
turns      plays 2,000 turns of many conversations with a limited cache: memory must not grow
answers    gives 5,000 answers in the window and deletes all conversations twenty times: after the
           fifth time, the memory of the process may grow by at most 5 %
starts     starts the engine 50 times, and ends it in each of four states in turn
kills      kills the app 30 times with kill -9 while it streams an answer
disk       kills a process 200 times while it writes cached state, and checks what it left
full       fills the disk 100 times while a process writes cached state to it, and checks what it left
           (as root on Linux)
damage     damages a database in 300 ways: every message on whole pages must be rescued
log        damages the write-ahead log of a killed app in 70 ways: no message may be lost or changed
           without a report
changes    kills a process 100 times while it imports, answers, edits, attaches, deletes, backs up and
           moves: every change that was reported must be there, and the running one
           wholly or not at all
exchange   exports and imports 1,000 random trees, imports 100 damaged files of each kind, and kills
           30 imports
stages     harms one of two stages of a model 100 times, and starts them again
window     drives a window on two stages, kills a stage during 10 answers, and kills the app and bench tree
           10 times each: no process may be left
commands   makes 2,000 random operations on the followers of every tiny model, each compared with the
           ledger, and 500 turns: no object may stay in a follower
hub        answers 200 calls to the Hub with lies of each of six kinds: no file outside the cache may change,
           the process may use 300 MB, and each call ends or shows its progress
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path

from app.paths import make_paths
from app.widgets.application import Application
from engine.local_models import LocalModels
from tests.app.exchange.often import exchange_often
from tests.app.hub.lying import lie_often
from tests.app.store.damaging import damage_often
from tests.app.store.log_damage import damage_logs
from tests.app.store.test_change_kill import kill_changes
from tests.architectures.configs.every import CONFIGS as ARCHITECTURES
from tests.architectures.outcome import Verdict
from tests.architectures.table import read_rows
from tests.e2e.long_life import run_rounds
from tests.e2e.stage_faults import play_stage_faults
from tests.e2e.stages_window import play_windows
from tests.e2e.test_kill import kill_often
from tests.engine.test_engine import PROGRAM
from tests.fakes.tiny_model import CONFIGS, Template, build_tiny
from tests.oracle.disk_kills import kill_writers
from tests.oracle.full_disks import fill_disks
from tests.oracle.machine import Subject, run_machine, subjects_of
from tests.oracle.ranks import play_ranks
from tests.oracle.reply_texts import play_reply_texts
from tests.oracle.restarts import restart_chats
from tests.oracle.scripts import file_script, file_text, promise_script
from tests.oracle.stage_commands import play_commands
from tests.oracle.template_table import template_table
from tests.oracle.tool_chats import agents_table
from tests.oracle.turns import Sample, run_turns

NUM_ROUNDS = 20  # deletions of all conversations in the run `answers`
# mlx-lm's own results for these types differ by more than rounding if a prompt is cut elsewhere.
DEPENDS_ON_CUTS = {"plamo3"}
TABLE = Path(__file__).parent / "architectures" / "README.md"
STATES = ("starting", "loading", "answering", "finished")


def promise(folder: Path) -> bool:
    held = True
    for name in CONFIGS:
        for template in Template:
            model = build_tiny(name, folder / f"{name}-{template}", template)
            thinking = template is Template.THINKING
            steps = promise_script(chats=8, turns=4, seed=1, reasoning=thinking)
            held &= play(f"{name} {template}", steps, model, "--reference-blas", keeps=not thinking)
    starter = LocalModels(make_paths(folder)).make_starter(lambda _: None)
    steps = promise_script(chats=3, turns=2, seed=1, reasoning=False)
    return held & play("SmolLM2", steps, starter, keeps=True)


def types(folder: Path) -> bool:
    steps = promise_script(chats=2, turns=2, seed=1, reasoning=True, max_tokens=8)
    held = True
    for row in read_rows(TABLE.read_text(encoding="utf-8")):
        if row.verdict is not Verdict.EXACT or row.name in DEPENDS_ON_CUTS:
            continue
        name = row.name
        model = build_tiny(name, folder / name, Template.THINKING, ARCHITECTURES)
        held &= play(name, steps, model, keeps=False)
    return held


def files(folder: Path) -> bool:
    file = folder / "file.txt"
    file.write_text(file_text(1000), encoding="utf-8")
    held = True
    for name in CONFIGS:
        for template in Template:
            model = build_tiny(name, folder / f"{name}-{template}", template)
            keeps = template is Template.KEEPING
            title = f"{name} {template}"
            held &= play(title, file_script(str(file)), model, "--reference-blas", keeps=keeps)
    return held


def play(
    title: str, steps: list[dict[str, object]], model: Path, *options: str, keeps: bool
) -> bool:
    """Play steps with `rejoinder bench script --check`. Return True if all checks passed."""
    command = [sys.executable, "-P", "-m", "app", "bench", "script", "-", "--check", "--json"]
    started = time.monotonic()
    ended = subprocess.run(
        [*command, "--model", str(model), "--data-dir", str(model.parent / "data"), *options],
        input="\n".join(json.dumps(step) for step in steps),
        capture_output=True,
        text=True,
        check=False,
    )
    reports = [json.loads(line) for line in ended.stdout.splitlines()]
    seen: set[str] = set()
    redo = replayed = 0
    to_one_go = to_same_passes = 0.0
    for report in reports:
        if report["chat"] in seen:
            redo += report["redo"]
            replayed += report["replayed"]
        seen.add(report["chat"])
        to_one_go = max(to_one_go, report["max_difference"])
        to_same_passes = max(to_same_passes, report["replay_difference"])
    exact = redo == 0 and to_same_passes == 0 and not (keeps and replayed)
    held = ended.returncode == 0 and exact
    print(
        f"{title:<24} {'held' if held else 'BROKEN'}  steps {len(reports)}  redo {redo}"
        f"  replayed {replayed}  largest difference to the same passes {to_same_passes:.1e}"
        f", to one go {to_one_go:.1e}"
        f"  {time.monotonic() - started:.0f} s  {ended.stderr.strip()[-300:]}",
        flush=True,
    )
    return held


def machine(folder: Path, examples: int) -> bool:
    held = [attempt(name, partial(_machine_of, name, folder, examples)) for name in CONFIGS]
    return all(held)


def _machine_of(name: str, folder: Path, examples: int) -> bool:
    """Run the state machine and print a tally. Raise the first failure."""
    started = time.monotonic()
    tally = run_machine(_subjects(folder, name), examples=examples, steps=50, seeded=False)
    print(f"{name:<12} {tally}  {time.monotonic() - started:.0f} s", flush=True)
    return True


def turns(folder: Path, number: int) -> bool:
    subject = _subjects(folder, "lfm2")[f"lfm2 {Template.THINKING}"]

    def show(sample: Sample) -> None:
        if sample.turn % 200 == 0:
            print(sample, flush=True)

    report = run_turns(
        subject.model, turns=number, budget=3 * subject.conversation_bytes, seed=1, progress=show
    )
    print(report)
    return abs(report.device_slope) * number < 0.02 * report.last.device


def answers(folder: Path, number: int) -> bool:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    app = Application(sys.argv[:1])
    model = build_tiny("qwen3_5", folder / "model", Template.KEEPING)
    samples = run_rounds(
        folder / "data",
        model,
        num_rounds=NUM_ROUNDS,
        num_answers=max(1, number // NUM_ROUNDS),
        seed=1,
        progress=lambda sample: print(sample, flush=True),
    )
    del app
    warm, last = samples[NUM_ROUNDS // 5], samples[-1]
    grown = last.process_bytes - warm.process_bytes
    print(f"{grown / (last.num_answers - warm.num_answers) / 1e3:.1f} kB per answer")
    return grown < 0.05 * warm.process_bytes


def _subjects(folder: Path, name: str) -> Mapping[str, Subject]:
    built: dict[str, Path] = {}

    def get(name: str, template: Template) -> Path:
        title = f"{name}-{template}"
        if title not in built:
            built[title] = build_tiny(name, folder / title, template)
        return built[title]

    return subjects_of([name], get)


def starts(folder: Path, number: int) -> bool:
    model = build_tiny("qwen3_5", folder / "model", Template.KEEPING)
    statuses: list[int] = []
    for state in islice(cycle(STATES), number):
        command = [sys.executable, "-c", PROGRAM, state, str(model)]
        statuses.append(subprocess.run(command, check=False, timeout=300).returncode)
    print(f"starts and ends with status 0: {statuses.count(0)} of {len(statuses)}")
    return not any(statuses)


def kills(folder: Path, number: int) -> bool:
    model = build_tiny("lfm2", folder / "model", Template.KEEPING)
    survived = kill_often(folder / "data", model, number)
    print(f"kill -9 while streaming survived: {survived} of {number}")
    return survived == number


@dataclass(frozen=True, slots=True)
class SoakRun:
    """A long run with its name.

    `play` makes the run in a folder, with a fixed number of rounds. It returns True if all rounds
    passed.
    """

    name: str
    play: Callable[[Path], bool]


PLAIN: dict[str, Callable[[Path], bool]] = {
    "promise": promise,
    "types": types,
    "templates": template_table,
    "replies": play_reply_texts,
    "agents": agents_table,
    "restarts": restart_chats,
    "files": files,
    "ranks": play_ranks,
}
COUNTED: dict[str, tuple[Callable[[Path, int], bool], int]] = {
    "machine": (machine, 100),
    "turns": (turns, 2000),
    "answers": (answers, 5000),
    "starts": (starts, 50),
    "kills": (kills, 30),
    "disk": (kill_writers, 200),
    "full": (fill_disks, 100),
    "damage": (damage_often, 300),
    "log": (damage_logs, 70),
    "changes": (kill_changes, 100),
    "exchange": (exchange_often, 100),
    "stages": (play_stage_faults, 100),
    "window": (play_windows, 10),
    "commands": (play_commands, 2000),
    "hub": (lie_often, 200),
}


def run_of(argument: str) -> SoakRun:
    """Parse an argument NAME or NAME=NUMBER of the command line."""
    name, equals, number = argument.partition("=")
    if name in PLAIN and not equals:
        return SoakRun(name, PLAIN[name])
    if name not in COUNTED:
        known = ", ".join([*PLAIN, *(f"{name}[=NUMBER]" for name in COUNTED)])
        raise argparse.ArgumentTypeError(f"{argument} is none of {known}")
    play, usual = COUNTED[name]
    if equals and not (number.isdecimal() and int(number)):
        raise argparse.ArgumentTypeError(f"{number!r} says not how many")
    return SoakRun(name, lambda folder: play(folder, int(number) if equals else usual))


def attempt(name: str, play: Callable[[], bool]) -> bool:
    """Make a run. Return True if it passed. Print an exception instead of raising it."""
    try:
        held = play()
    except Exception:  # noqa: BLE001 (a test may raise anything)
        traceback.print_exc()
        held = False
    if not held:
        print(f"{name} BROKEN", flush=True)
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description="The long runs.")
    parser.add_argument("runs", nargs="*", type=run_of, metavar="NAME[=NUMBER]")
    held = True
    for run in parser.parse_args().runs or map(run_of, [*PLAIN, *COUNTED]):
        with tempfile.TemporaryDirectory() as folder:
            held &= attempt(run.name, partial(run.play, Path(folder)))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
