"""Entry point of the commands that need no window.

chat, serve, models, import, export, search, hosts, bench script, bench tree.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from app.cli import bench, chat, exchange, hosts, models, serve
from app.cli.client import ProblemError
from app.cli.script import ScriptError
from app.cli.tree.command import add_arguments as add_tree_arguments, run_tree
from app.paths import Paths, make_paths
from app.settings import load_settings
from engine.errors import EngineError
from engine.local_models import LocalModels


def run(argv: Sequence[str]) -> int:
    """Run one command and return its exit status. Print one sentence to stderr if it fails."""
    args = _parser().parse_args(argv)
    logging.basicConfig(level=logging.DEBUG if args.verbose else logging.ERROR)
    try:
        return _dispatch(args)
    except (ProblemError, EngineError) as error:
        print(f"rejoinder: {error.problem}", file=sys.stderr)
    except (ScriptError, OSError) as error:
        print(f"rejoinder: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    return 1


def _dispatch(args: argparse.Namespace) -> int:
    paths = make_paths(args.data_dir)
    match args.command:
        case "import":
            return exchange.run_import(args, paths)
        case "export":
            return exchange.run_export(args, paths)
        case "hosts":
            return hosts.run(args)
        case "search":
            return exchange.run_search(args, paths)
        case _:
            return _run_models(args, paths)


def _run_models(args: argparse.Namespace, paths: Paths) -> int:
    local = LocalModels(paths)
    settings = load_settings(paths.settings).settings
    folders = settings.model_folders
    if args.command == "models":
        args.mirror = settings.mirror
        return models.run(args, local, folders)
    # Absolute, because a stage on another host has another working folder.
    model = args.model.expanduser().absolute() if args.model else _choose(local, folders)
    if args.command == "chat":
        return chat.run(args, model)
    if args.command == "serve":
        # The model of the command line is listed too, so that it can be chosen again.
        cards = local.scan((*folders, str(model))) if args.choose_models else ()
        return serve.run(args, model, cards, paths)
    return bench.run_script(args, model) if args.kind == "script" else run_tree(args, model)


def _choose(local: LocalModels, folders: tuple[str, ...]) -> Path:
    """Return the folder of the best model on this computer.

    If there is no usable model, unpack the starter model and return its folder.
    """
    best = local.best(local.scan(folders))
    if best is not None:
        return best.path
    return local.make_starter(lambda _: None)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rejoinder", description="Chat with local models.", parents=[_common(default=None)]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    # The common options may precede or follow the command name. The parser for options after the
    # name must have no defaults: a default would overwrite a value that was given before the name.
    common = [_common(default=argparse.SUPPRESS)]
    chat.add_arguments(commands.add_parser("chat", parents=common, help="chat in the terminal"))
    help_text = "let other programs use a model"
    serve.add_arguments(commands.add_parser("serve", parents=common, help=help_text))
    help_text = "list, search and download models"
    models.add_arguments(commands.add_parser("models", parents=common, help=help_text), common)
    help_text = "import chats from files of Rejoinder or another app"
    exchange.add_import_arguments(commands.add_parser("import", parents=common, help=help_text))
    help_text = "export chats to a file"
    exchange.add_export_arguments(commands.add_parser("export", parents=common, help=help_text))
    help_text = "search in all chats"
    exchange.add_search_arguments(commands.add_parser("search", parents=common, help=help_text))
    help_text = "check the Macs that hold a model together"
    hosts.add_arguments(commands.add_parser("hosts", parents=common, help=help_text), common)
    kinds = commands.add_parser("bench", help="measure").add_subparsers(dest="kind", required=True)
    bench.add_arguments(kinds.add_parser("script", parents=common, help="play a script"))
    add_tree_arguments(kinds.add_parser("tree", parents=common, help="edit, branch, stop, return"))
    return parser


def _common(*, default: object) -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False, argument_default=default)
    common.add_argument("--data-dir", type=Path, metavar="DIR", help="keep everything in DIR")
    common.add_argument(
        "--model", type=Path, metavar="DIR", help="a model folder (default: the best one here)"
    )
    common.add_argument("--verbose", action="store_const", const=True, help="log to stderr")
    return common
