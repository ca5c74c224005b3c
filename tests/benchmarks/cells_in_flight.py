"""Time of a prompt over stages whose work is a sleep: chunks one by one, and with the next one sent ahead.

    python -m tests.benchmarks.cells_in_flight [--stages 2] [--cells 12] [--seconds 0.1]

The work of each stage is simulated, so the figure shows the order of the messages and nothing else. The
share that is best possible for n stages and c cells is (c + 1) / 2c, because one cell is sent ahead.
"""

from __future__ import annotations

import argparse
import time
from queue import SimpleQueue
from threading import Event, Thread

import mlx.core as mx

from engine.cache.layout import Layout
from engine.pipeline.far import StageCaches
from engine.pipeline.messages import Expected, StageMessage
from engine.pipeline.relay import Relay

_LAYOUT = Layout(num_kv=1, num_aux=0, kv_bytes_per_token=1024, snapshot_bytes=0)


class SleepingLine:
    """Followers that sleep for each message, each in a thread of its own."""

    def __init__(self, num_followers: int, seconds: float) -> None:
        self._queues = [SimpleQueue[StageMessage]() for _ in range(num_followers + 1)]
        for number in range(num_followers):
            Thread(target=self._follow, args=(number, seconds), daemon=True).start()

    def send(self, message: StageMessage) -> None:
        self._queues[0].put(message)

    def receive(self, expected: Expected) -> StageMessage:
        return self._queues[-1].get()

    def _follow(self, number: int, seconds: float) -> None:
        while True:
            message = self._queues[number].get()
            Event().wait(seconds)
            self._queues[number + 1].put(message)


def read_prompt(num_stages: int, num_cells: int, seconds: float, *, ahead: bool) -> float:
    """Return the seconds for all cells of a prompt."""
    relay = Relay(SleepingLine(num_stages - 1, seconds))
    caches = StageCaches(relay, [_LAYOUT] * (num_stages - 1))
    cell = mx.zeros((1, 16), mx.int32)
    start = time.perf_counter()
    for number in range(num_cells):
        caches.run_pass(cell)
        if ahead and number + 1 < num_cells:
            caches.send_ahead(cell)
        Event().wait(seconds)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stages", type=int, default=2)
    parser.add_argument("--cells", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=0.1)
    args = parser.parse_args()
    plain, ahead = (
        read_prompt(args.stages, args.cells, args.seconds, ahead=ahead) for ahead in (False, True)
    )
    print(f"one by one {plain:.2f} s, sent ahead {ahead:.2f} s: {ahead / plain:.2f}")


if __name__ == "__main__":
    main()
