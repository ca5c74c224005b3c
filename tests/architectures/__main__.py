"""Run the trial of every model type of the installed mlx-lm and write the table in README.md.

    python -m tests.architectures [--out FILE] [TYPE ...]

Each type runs in a process of its own. If a module ends its process, only its table row is lost.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.architectures.modules import model_modules
from tests.architectures.outcome import TrialOutcome, Verdict
from tests.architectures.table import render
from tests.architectures.trial import run_trial

_README = Path(__file__).with_name("README.md")
_KV_BITS = (8, 4)
_MAX_S = 1200


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TYPE", help="these alone; nothing is written")
    parser.add_argument("--out", type=Path, default=_README)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        for outcome in _outcomes(args.names[0]):
            print(outcome.as_json(), flush=True)
        return 0
    names = args.names or model_modules()
    outcomes: list[TrialOutcome] = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for found in pool.map(in_process, names):
            outcomes += found
            for outcome in found:
                print(outcome.as_json(), file=sys.stderr, flush=True)
    if args.names:
        return int(any(outcome.verdict is not Verdict.EXACT for outcome in outcomes))
    args.out.write_text(render(outcomes), encoding="utf-8")
    return 0


def _outcomes(name: str) -> Iterator[TrialOutcome]:
    """Yield a type's outcome with plain K/V, then one for each width of quantised K/V."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / name
        plain = run_trial(name, folder)
        yield plain
        if plain.num_kv:
            for kv_bits in _KV_BITS:
                yield run_trial(name, folder, kv_bits=kv_bits)


def in_process(name: str) -> list[TrialOutcome]:
    """Run a type's trial in a worker process and return the outcomes that it printed.

    A worker that runs longer than `_MAX_S` seconds is killed. If a worker fails or is killed, the
    first outcome that it did not print gets the exit status as its reason.
    """
    command = [sys.executable, "-P", "-m", "tests.architectures", "--worker", name]
    environment = os.environ | {"TRANSFORMERS_VERBOSITY": "error"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        try:
            printed = process.communicate(timeout=_MAX_S)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            printed = process.communicate()[0]
    lines = [line for line in printed.splitlines() if line.startswith("{")]
    outcomes = [TrialOutcome.from_json(line) for line in lines]
    if process.returncode:
        reason = f"its process ended with status {process.returncode}"
        kv_bits = (None, *_KV_BITS)[len(outcomes) :][:1]
        outcomes += [TrialOutcome(name=name, kv_bits=bits, reason=reason) for bits in kv_bits]
    return outcomes


if __name__ == "__main__":
    sys.exit(main())
