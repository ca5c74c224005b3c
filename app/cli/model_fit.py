"""`rejoinder models fit`: does a model fit into this machine's memory, and does it see pictures?

A model on this computer is measured from its folder. For a repository id, the Hub is asked for
config.json and the sizes of the files; no weights are fetched.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from app.cli.client import ProblemError
from app.cli.found_model import card_at, is_path, matching
from app.hub.failures import HubError
from app.hub.process import details, repo_details
from app.viewmodels.fit import speed_text, verdict_text
from app.words import fit as words, models as model_words
from engine.catalog.fit import Fit, FitVerdict
from engine.local_models import LocalModels
from engine.problem import Problem


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="ID_OR_DIR", help="a repository id, a name or a path")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")


def run(args: Namespace, local: LocalModels, folders: tuple[str, ...]) -> int:
    """Print the verdict. Return 1 if the model is too large."""
    try:
        fit, sees = _fit(args, local, folders)
    finally:
        local.end_fits()
    if args.json:
        print(json.dumps({**asdict(fit), "sees": sees}))
    else:
        print(verdict_text(fit))
        if speed := speed_text(fit):
            print(speed)
        if sees:
            print(f"{model_words.SEES}.")
    return int(fit.verdict is FitVerdict.TOO_LARGE)


def _fit(args: Namespace, local: LocalModels, folders: tuple[str, ...]) -> tuple[Fit, bool]:
    """Return the fit of a model, and True if the model sees pictures."""
    found = matching(local.installed(local.scan(folders), folders), args.model)
    card = next((model.card for model in found if model.card is not None), None)
    if card is None and not found and is_path(args.model):
        card = card_at(local, args.model)
    if card is not None:
        return local.fit_folder(card), card.sees
    if found:
        raise ProblemError(Problem(title=words.IS_GGUF, cause="", advice=words.IMPORT_FIRST))
    return _fit_repository(args.model, args.mirror, local)


def _fit_repository(repo_id: str, mirror: str, local: LocalModels) -> tuple[Fit, bool]:
    try:
        found = repo_details(details(repo_id, endpoint=mirror).run())
    except HubError as error:
        raise ProblemError(error.problem) from error
    if not found.config:
        raise ProblemError(Problem(title=words.NO_WEIGHTS, cause="", advice=words.MLX_FORMAT))
    return local.fit(found.config, found.weight_bytes), found.found.sees
