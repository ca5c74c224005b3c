"""`rejoinder hosts check FILE`: can the hosts of a file hold a model together?"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from app.cli.terminal import for_terminal
from engine.hosts.checking import HostCheck, check_hosts
from engine.hosts.hostfile import read_hosts


def add_arguments(parser: ArgumentParser, common: list[ArgumentParser]) -> None:
    actions = parser.add_subparsers(dest="action", required=True)
    check = actions.add_parser(
        "check",
        parents=common,
        help="check ssh, versions, memory and links; with --model, also the model's files",
    )
    check.add_argument("file", type=Path, help="the hosts, in the format of mlx.launch")
    check.add_argument("--json", action="store_true", help="one JSON line a host")


def run(args: Namespace) -> int:
    """Print the result for each host. Return 0 if all hosts can take part."""
    hosts = read_hosts(args.file)
    model = None if args.model is None else args.model.expanduser().absolute()
    checks = check_hosts(hosts, model)
    for check in checks:
        print(json.dumps(_as_json(check)) if args.json else _sentence(check))
    return int(any(check.problem is not None for check in checks))


def _sentence(check: HostCheck) -> str:
    name = for_terminal(check.name)
    if check.problem is not None:
        return f"{name}: {for_terminal(str(check.problem))}"
    parts = [check.chip, f"{check.memory_bytes / 1e9:.0f} GB"]
    if check.round_trip_ms is not None and check.bytes_per_s is not None:
        speed = f"{check.round_trip_ms} ms, {check.bytes_per_s / 1e9:.2f} GB/s"
        parts.append(f"{check.link} ({speed})" if check.link else speed)
    return f"{name}: ready. {' · '.join(parts)}{' ' * bool(check.note)}{check.note}"


def _as_json(check: HostCheck) -> dict[str, object]:
    problem = None if check.problem is None else str(check.problem)
    return {**asdict(check), "problem": problem}
