"""`rejoinder models remove`: remove a model from this computer, after a question."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace

from app.cli.found_model import only_match
from app.cli.terminal import for_terminal
from app.viewmodels.figures import file_size
from app.words import remove as words
from engine.catalog.removal import RemovalPlan
from engine.local_models import LocalModels


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="ID_OR_DIR", help="a repository id, a name or a path")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(args: Namespace, local: LocalModels, folders: tuple[str, ...]) -> int:
    """Remove a model. Without --yes, ask on a terminal, and refuse in a pipe."""
    models = local.installed(local.scan(folders), folders)
    plan = local.plan_removal(only_match(models, args.model), models, folders)
    if not args.yes and not _agrees(plan):
        print(words.NOT_REMOVED)
        return 1
    local.remove(plan)
    name, size = for_terminal(plan.model.name), file_size(plan.freed_bytes)
    print(words.removed(name=name, size=size))
    return 0


def _agrees(plan: RemovalPlan) -> bool:
    question = words.question(
        name=for_terminal(plan.model.name),
        place=for_terminal(str(plan.paths[0])),
        size=file_size(plan.freed_bytes),
    )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(f"{question} {words.ASK_FOR_YES}", file=sys.stderr)
        return False
    print(f"{question} [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
