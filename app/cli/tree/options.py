"""Options and output that all drivers of the chat-tree scenario share. Standard library only."""

from __future__ import annotations

import json
import secrets
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from dataclasses import asdict

from app.cli.tree import report
from app.cli.tree.measure import StepCost, TreeEngine, measure, total
from app.cli.tree.scenario import Replies, Scenario, chat_tree


def add_scenario_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--replies",
        type=Replies,
        choices=list(Replies),
        default=Replies.SCRIPTED,
        help="the same texts for every engine (default), or each engine's own",
    )
    parser.add_argument(
        "--cold", type=int, default=3, metavar="N", help="cold requests a step (default: 3)"
    )
    parser.add_argument(
        "--cold-every", type=_positive, default=1, metavar="K", help="only for each K-th step"
    )
    parser.add_argument(
        "--size", type=float, default=1.0, help="of the texts: less for a tiny vocabulary"
    )
    parser.add_argument(
        "--run", default=secrets.token_hex(3), metavar="NAME", help="begins the system prompt"
    )
    parser.add_argument("--json", action="store_true", help="no table on stderr")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ArgumentTypeError(f"{text} is below 1")
    return value


def scenario_options(args: Namespace) -> list[str]:
    """Convert parsed arguments back to options, so that another process gets the same scenario."""
    names = ("replies", "cold", "cold_every", "size", "run")
    return [f"--{name.replace('_', '-')}={getattr(args, name)}" for name in names]


def scenario_of(args: Namespace) -> Scenario:
    return chat_tree(args.run, size=args.size)


def run(name: str, engine: TreeEngine, scenario: Scenario, args: Namespace) -> list[StepCost]:
    """Measure an engine. Print one JSON line for each step, then one with the totals.

    Also print a table to stderr if stderr is a terminal and the option --json is not set.
    """
    costs = measure(engine, scenario, cold_times=args.cold, cold_every=args.cold_every)
    shows_table = sys.stderr.isatty() and not args.json
    if shows_table:
        print(report.HEADER, file=sys.stderr)
    printed: list[StepCost] = []
    for cost in costs:
        printed.append(cost)
        print(json.dumps({"engine": name, **cost.as_json()}), flush=True)
        if shows_table:
            print(report.row(cost), file=sys.stderr)
    print(json.dumps({"engine": name, "total": asdict(total(printed))}), flush=True)
    if shows_table:
        print(report.total_row(printed), file=sys.stderr)
    return printed
