"""`rejoinder models quantize`: make a smaller copy of a model in full precision."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from app.cli.client import ProblemError
from app.cli.found_model import card_at, is_path, matching, only_match
from app.cli.terminal import for_terminal
from app.words import hub as words
from engine.catalog.card import ModelCard
from engine.local_models import LocalModels
from engine.problem import Problem

_LINE_S = 10.0  # seconds between two lines of progress in a pipe


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="ID_OR_DIR", help="a repository id, a name or a path")
    parser.add_argument("--bits", type=int, choices=(4, 6, 8), default=4, help="bits per weight")


def run(args: Namespace, local: LocalModels, folders: tuple[str, ...]) -> int:
    """Make the copy and print its folder. Print the progress to standard error."""
    made = local.make_copy(_card(args.model, local, folders), args.bits, _reporter())
    print(words.copied(for_terminal(made.path.name), for_terminal(str(made.path))))
    return 0


def _card(text: str, local: LocalModels, folders: tuple[str, ...]) -> ModelCard:
    models = local.installed(local.scan(folders), folders)
    if is_path(text) and not matching(models, text):
        return card_at(local, text)
    card = only_match(models, text).card
    if card is None:
        raise ProblemError(Problem(title=words.GGUF_NOT_COPIED, cause="", advice=""))
    return card


def _reporter() -> Callable[[float], None]:
    """Return a function that prints the finished share: in place on a terminal, else in lines."""
    is_terminal, last = sys.stderr.isatty(), 0.0

    def show(fraction: float) -> None:
        nonlocal last
        now = time.monotonic()
        if is_terminal:
            end = "\n" if fraction >= 1 else ""
            print(f"\r{fraction:4.0%}\x1b[K", end=end, file=sys.stderr, flush=True)
        elif now - last >= _LINE_S:
            last = now
            print(f"{fraction:.0%}", file=sys.stderr)

    return show
