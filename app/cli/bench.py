"""`rejoinder bench script FILE`: play a script and print one JSON line for each reply."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path

from app.cli import table
from app.cli.attaching import kept_pictures
from app.cli.client import EngineRuns, add_engine_options, engine_config, load_model
from app.cli.player import ScriptPlayer
from app.cli.script import ScriptError, ScriptStep, parse_script
from app.cli.stages import add_stages, stages_of
from app.cli.step_report import StepReport
from engine.plain_file import open_plain


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", help="the script, - for standard input")
    parser.add_argument("--check", action="store_true", help="hold every step to the bare model")
    parser.add_argument(
        "--predict", action="store_true", help="ask before each step what it will read"
    )
    parser.add_argument("--json", action="store_true", help="no table on stderr")
    add_engine_options(parser)
    add_stages(parser)


def run_script(args: Namespace, model: Path) -> int:
    """Play a script. Return 0 if every step ran, and all checks and predictions were right."""
    steps = list(_read(args.file))
    # The engine does idle work only in `idle` steps. Such a step ends when no idle work is left, so
    # the figures do not depend on pauses between steps.
    settings = engine_config(args, idle_work=False)
    shows_table = sys.stderr.isatty() and not args.json
    if shows_table:
        print(table.HEADER, file=sys.stderr)
    held = True
    with (
        kept_pictures(settings) as (config, pictures),
        EngineRuns(config, stages_of(args)) as engines,
    ):
        client = engines.start()
        load_model(client, model, lambda _: None)
        player = ScriptPlayer(
            client,
            model,
            check=args.check,
            predict=args.predict,
            max_drafts=args.speculation,
            restart=engines.start,
            pictures=pictures,
        )
        for report in _reports(player, steps):
            held = held and report.holds
            print(json.dumps(report.as_json()), flush=True)
            if shows_table:
                print(table.row(report), file=sys.stderr)
    return 0 if held else 1


def _read(file: str) -> Iterator[ScriptStep]:
    if file == "-":
        yield from parse_script(sys.stdin)
        return
    with open_plain(Path(file)) as content, TextIOWrapper(content, "utf-8") as lines:
        try:
            yield from parse_script(lines)
        except UnicodeError as error:
            raise ScriptError(f"{file} is not UTF-8 text.") from error


def _reports(player: ScriptPlayer, steps: list[ScriptStep]) -> Iterator[StepReport]:
    for step in steps:
        yield from player.play(step)
    yield from player.join()
