"""Cost of a model that is divided over processes of this machine.

python -m tests.benchmarks.stages [--model DIR]

token     milliseconds per token of one process, of one stage and of two stages; the same answer
rest      share of a core that a follower takes while nothing is asked
wake      milliseconds from a question after a rest to the first pass of the follower, as time to
          the first token after a rest, less that without a rest
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import threading
from pathlib import Path

from engine.events import ModelLoaded, RequestFinished
from engine.hosts.group import Limits
from engine.hosts.hostfile import local_stages
from engine.types import ForcedReply
from tests.fakes.staged import StagedRig
from tests.fakes.tiny_model import Template, build_tiny

REPLY = ForcedReply(text="boat " * 150)
REST_S = 5.0  # seconds after which the followers rest for certain
NUM_WAKES = 8


def measure(model: Path, count: int) -> None:
    rig = StagedRig(local_stages(count), Limits(start_s=60, join_s=180), idle_work=False)
    try:
        assert isinstance(rig.load(model), ModelLoaded)
        rig.submit("warm", forced=REPLY)
        rig.wait(RequestFinished)
        rates: list[float] = []
        for number in range(3):
            rig.submit(f"{number}", chat=f"{number}", forced=REPLY)
            rates.append(rig.wait(RequestFinished, timeout_s=60).usage.decode_tok_s)
        print(f"{count} stages: {1e3 / statistics.median(rates):.2f} ms a token", flush=True)
        if count > 1:
            _rest(rig)
            _wake(rig)
    finally:
        rig.close()


def _rest(rig: StagedRig) -> None:
    threading.Event().wait(REST_S)
    follower = rig.processes[1]
    before = sum(follower.cpu_times()[:2])
    threading.Event().wait(20.0)
    used = sum(follower.cpu_times()[:2]) - before
    print(f"follower at rest: {used / 20:.2%} of a core", flush=True)


def _wake(rig: StagedRig) -> None:
    rested: list[float] = []
    busy: list[float] = []
    for number in range(NUM_WAKES):
        threading.Event().wait(REST_S)
        for name, times in ((f"rested {number}", rested), (f"busy {number}", busy)):
            rig.submit(name, chat=name)
            times.append(rig.wait(RequestFinished).usage.ttft_ms)
    print(
        f"wake: {statistics.median(rested) - statistics.median(busy):.1f} ms"
        f" (first token {statistics.median(rested):.1f} ms after a rest,"
        f" {statistics.median(busy):.1f} ms without)",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="The cost of stages.")
    parser.add_argument("--model", type=Path, help="a model folder (default: a tiny random one)")
    model: Path | None = parser.parse_args().model
    with tempfile.TemporaryDirectory() as folder:
        chosen = model or build_tiny("qwen3_5", Path(folder) / "model", Template.KEEPING)
        for count in (1, 2):
            measure(chosen, count)


if __name__ == "__main__":
    main()
