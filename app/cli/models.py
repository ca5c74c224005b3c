"""`rejoinder models`: a list of the models on this computer, and commands for models."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace

from app.cli import hub, model_fit, model_quantize, model_remove
from app.cli.terminal import for_terminal
from app.words import models as words, units
from engine.catalog.card import ModelCard
from engine.local_models import LocalModels


def add_arguments(parser: ArgumentParser, common: list[ArgumentParser]) -> None:
    """Add the options of the list, and the commands with the options that all commands have."""
    parser.add_argument("--json", action="store_true", help="one JSON line a model")
    actions = parser.add_subparsers(
        dest="action", metavar="search | download | fit | remove | quantize"
    )
    hub.add_search_arguments(
        actions.add_parser("search", parents=common, help="search Hugging Face")
    )
    hub.add_download_arguments(
        actions.add_parser("download", parents=common, help="download a model")
    )
    model_fit.add_arguments(
        actions.add_parser("fit", parents=common, help="does a model fit into memory?")
    )
    model_remove.add_arguments(
        actions.add_parser("remove", parents=common, help="remove a model from this computer")
    )
    model_quantize.add_arguments(
        actions.add_parser("quantize", parents=common, help="make a smaller copy of a model")
    )


def run(args: Namespace, local: LocalModels, folders: tuple[str, ...]) -> int:
    """Run a command about models. Without one, print the models on this computer."""
    match args.action:
        case "search":
            return hub.run_search(args)
        case "download":
            return hub.run_download(args)
        case "fit":
            return model_fit.run(args, local, folders)
        case "remove":
            return model_remove.run(args, local, folders)
        case "quantize":
            return model_quantize.run(args, local, folders)
        case _:
            return _list(args, local, folders)


def _list(args: Namespace, local: LocalModels, folders: tuple[str, ...]) -> int:
    """Print the models. Mark the model that other commands use by default."""
    cards = local.scan(folders)
    best = local.best(cards)
    for card in cards:
        print(json.dumps(_as_json(card)) if args.json else _line(card, is_best=card is best))
    if not args.json and best is not None:
        print(words.BEST_MARK)
    if not args.json and all(not card.usable for card in cards):
        print(
            "No usable model here yet. Download one:  rejoinder models download"
            f" {local.suggestions()[0].repo_id}"
        )
    return 0


def _line(card: ModelCard, *, is_best: bool) -> str:
    mark = "*" if is_best else " "
    size = units.gigabytes(card.size_bytes)
    if card.problem is not None:
        return f"{mark} {card.name:<40} {card.source.value:<10} {card.problem}"
    place = for_terminal(str(card.path))
    return f"{mark} {card.name:<40} {card.source.value:<10} {size:>9}  {place}"


def _as_json(card: ModelCard) -> dict[str, object]:
    return {
        "name": card.name,
        "path": str(card.path),
        "source": card.source.value,
        "model_type": card.model_type,
        "bits": card.bits,
        "size_bytes": card.size_bytes,
        "context_len": card.context_len,
        "hybrid": card.hybrid,
        "sees": card.sees,
        "text_only": card.text_only,
        "problem": str(card.problem) if card.problem else None,
    }
