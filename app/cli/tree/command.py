"""`rejoinder bench tree`: the chat-tree benchmark on our engine."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from app.cli.client import QueuedEngine, add_engine_options, engine_config, load_model
from app.cli.stages import add_stages, stages_of
from app.cli.tree.options import add_scenario_arguments, run, scenario_of
from app.cli.tree.own import OwnEngine


def add_arguments(parser: ArgumentParser) -> None:
    add_scenario_arguments(parser)
    parser.add_argument("--idle", action="store_true", help="let idle work end after each step")
    add_engine_options(parser)
    add_stages(parser)


def run_tree(args: Namespace, model: Path) -> int:
    """Run the benchmark. Return 0 if every step passes, otherwise 1.

    A step passes if the engine fed no token twice after the same prefix (redo is 0). With --idle it
    must also replay no token of earlier messages.
    """
    scenario = scenario_of(args)
    config = engine_config(args, idle_work=args.idle)
    with QueuedEngine(config, stages_of(args)) as client:
        facts = load_model(client, model, lambda _: None)
        engine = OwnEngine(
            client,
            facts,
            scenario,
            args.replies,
            awaits_idle=args.idle,
            max_drafts=args.speculation,
        )
        name = "rejoinder, idle" if args.idle else "rejoinder"
        costs = run(name, engine, scenario, args)
    held = all(cost.redo == 0 and not (args.idle and cost.replayed) for cost in costs)
    return 0 if held else 1
