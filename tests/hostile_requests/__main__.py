"""Send hostile requests to a real `rejoinder serve` process.

    python -m tests.hostile_requests [--requests 1000] [--seed 1]

The requests are chosen by a seed from eleven groups (attacks.py): size, depth, encoding, headers, framing,
half-closed connections, keys, paths, hosts and origins, control tokens, values of wrong types. Beside
them, 60 clients send a head byte by byte. After each group an honest request must be answered. Faults
are: a crash, an answer without the right key or to a wrong host or page, a status of 500 and more other
than 503, a connection that stays open, and memory that grows by more than 10 % and 30 MB after the first
500 requests. Then a server in this process gets hostile text in every field of every protocol: it
may not change the number of control tokens in the prompt.

Prints a table. The exit status is 1 if there is a fault.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import create_connection

import psutil

from tests.fakes.qwen import Qwen, build_qwen
from tests.hostile_requests.attacks import CHAT, make_attacks
from tests.hostile_requests.control_tokens import NUM_TOKENS, smuggled_tokens
from tests.hostile_requests.wire import KEY, Attack, Reaction, post, send

_MEASURED_AFTER = 500  # requests after which the memory is first measured
_GROWTH, _GROWTH_BYTES = 1.1, 30 << 20
_NUM_SLOW = 60  # clients that send a head byte by byte
_SLOW_S = 15.0  # seconds after which their connections must be closed
_HELLO = b"rejoinder\n"  # the answer that needs no key


@dataclass
class Attacked:
    """A server process under attack."""

    process: subprocess.Popen[str]
    port: int
    faults: list[str] = field(default_factory=list[str])

    @property
    def rss(self) -> int:
        return psutil.Process(self.process.pid).memory_info().rss

    def check_honest(self, after: str) -> None:
        body = json.dumps(
            {"messages": [{"role": "user", "content": "How are you?"}], "max_tokens": 2}
        ).encode()
        try:
            reaction = send(self.port, Attack([post(CHAT, body)]))
        except OSError as error:
            self.faults.append(f"after {after}: {error}, exit status {self.process.poll()}")
            return
        if reaction.statuses != [200]:
            self.faults.append(f"after {after}: an honest request got {reaction}")

    def attack(self, group: str, attack: Attack) -> str:
        """Send a request. Return what came of it, in a word."""
        reaction = send(self.port, attack)
        problem = _problem(attack, reaction)
        if problem:
            sent = b"".join(attack.parts)
            self.faults.append(
                f"{group}: {problem}\n  {sent[:600]!r}\n  {reaction.received[:600]!r}"
            )
        return "/".join(map(str, sorted(set(reaction.statuses)))) or "closed"


def _problem(attack: Attack, reaction: Reaction) -> str:
    """Return what is wrong with a reaction, or ""."""
    if any(status >= 500 and status != 503 for status in reaction.statuses):
        return f"status {reaction.statuses}"
    if reaction.is_late:
        return "the connection stays open"
    allowed = 1 if attack.allowed else 0
    answers = [status for status in reaction.statuses if status == 200]
    num_hellos = reaction.received.count(_HELLO)
    if len(answers) - num_hellos > allowed:
        return "answered without a right"
    return ""


class SlowClients:
    """Clients that send the head of a request byte by byte, for ever."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._closed = 0
        self._pause = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def num_open(self) -> int:
        """Return the number of connections that the server did not close in time."""
        self._thread.join()
        return _NUM_SLOW - self._closed

    def _run(self) -> None:
        connections = [create_connection(("127.0.0.1", self._port)) for _ in range(_NUM_SLOW)]
        end = time.monotonic() + _SLOW_S
        request = b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"a" * 100
        for letter in request:
            for raw in connections:
                with suppress(OSError):
                    raw.send(bytes([letter]))
            if time.monotonic() > end:
                break
            self._pause.wait(_SLOW_S / len(request))
        for raw in connections:
            raw.settimeout(1.0)
            try:
                self._closed += raw.recv(1) == b""
            except ConnectionError:
                self._closed += 1
            except TimeoutError:
                pass
            raw.close()


@contextmanager
def served_process(model: Path, data: Path) -> Generator[Attacked]:
    command = [sys.executable, "-m", "app", "serve", "--model", str(model), "--data-dir", str(data)]
    command += ["--port", "0", "--key", KEY, "--allow-origin", "app://obsidian.md"]
    log = data.with_suffix(".log")
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    assert process.stdout is not None
    try:
        found = None
        while found is None and (line := process.stdout.readline()):
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
        assert found, log.read_text()
        # The lines about requests are read, so that the process can write them.
        threading.Thread(target=process.stdout.read, daemon=True).start()
        attacked = Attacked(process, int(found[1]))
        yield attacked
        if process.poll() is not None:
            attacked.faults.append(f"the process ended with status {process.poll()}")
        traces = log.read_text().count("Traceback")
        if traces:
            attacked.faults.append(f"{traces} tracebacks in the log\n{log.read_text()[-3000:]}")
    finally:
        process.kill()
        process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description="Send hostile requests to a server process.")
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    groups = make_attacks(args.requests, args.seed)
    num_sent, first_rss = 0, 0
    with tempfile.TemporaryDirectory() as temporary:
        model = build_qwen(Qwen.QWEN3_5, Path(temporary) / "model", num_tokens=NUM_TOKENS)
        with served_process(model, Path(temporary) / "data") as attacked:
            attacked.check_honest("the start")
            slow = SlowClients(attacked.port)
            for name, attacks in groups.items():
                outcomes: Counter[str] = Counter()
                for attack in attacks:
                    outcomes[attacked.attack(name, attack)] += 1
                    num_sent += 1
                    if num_sent == _MEASURED_AFTER:
                        first_rss = attacked.rss
                attacked.check_honest(name)
                counts = ", ".join(f"{number} x {what}" for what, number in outcomes.most_common())
                print(f"{name:<15} {len(attacks):>4} requests: {counts}", flush=True)
            if num_open := slow.num_open():
                attacked.faults.append(f"{num_open} slow clients keep their connection")
            last_rss = attacked.rss
            if first_rss and last_rss > first_rss * _GROWTH + _GROWTH_BYTES:
                attacked.faults.append("memory grew")
            print(f"slow heads      {_NUM_SLOW:>4} clients")
            print(
                f"memory: {first_rss >> 20} MB after {_MEASURED_AFTER}, {last_rss >> 20} MB after {num_sent}"
            )
        num_fields, smuggled = smuggled_tokens(model)
    print(
        f"control tokens: {num_fields} fields of 6 protocols, {len(smuggled)} changed the prompt's"
    )
    faults = [*attacked.faults, *(f"control tokens: {one}" for one in smuggled)]
    for fault in faults:
        print(f"FAULT {fault}")
    print(f"{num_sent} requests, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
