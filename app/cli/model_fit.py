"""`rejoinder models fit`: does a model fit into this machine's memory?

A model on this computer is measured from its folder. For a repository id, the Hub is asked for
config.json and the sizes of the files; no weights are fetched.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from app.cli.client import ProblemError
from app.cli.found_model import matching
from app.hub.failures import HubError
from app.hub.process import details, repo_details
from app.words import fit as words
from engine.catalog.fit import Fit, FitVerdict
from engine.config import EngineConfig
from engine.fitting import FitMeter
from engine.local_models import LocalModels
from engine.types import Problem


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="ID_OR_DIR", help="a repository id, a name or a path")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")


def run(args: Namespace, local: LocalModels, folders: tuple[str, ...]) -> int:
    """Print the verdict. Return 1 if the model is too large."""
    meter = FitMeter(EngineConfig())
    try:
        fit = _fit(args.model, local, folders, meter)
    finally:
        meter.close()
    if args.json:
        print(json.dumps(asdict(fit)))
    else:
        print(verdict_text(fit))
        if fit.tokens_per_s is not None:
            print(words.speed(round(fit.tokens_per_s)))
    return int(fit.verdict is FitVerdict.TOO_LARGE)


def verdict_text(fit: Fit) -> str:
    """Return the sentence of a verdict."""
    match fit.verdict:
        case FitVerdict.FITS:
            return words.fits(fit.num_chats)
        case FitVerdict.TIGHT:
            return words.TIGHT
        case FitVerdict.TOO_LARGE:
            return words.too_large(needed=_size(fit.needed_bytes), given=_size(fit.device_bytes))


def _fit(text: str, local: LocalModels, folders: tuple[str, ...], meter: FitMeter) -> Fit:
    found = matching(local.installed(local.scan(folders), folders), text)
    card = next((model.card for model in found if model.card is not None), None)
    if card is not None:
        return meter.fit_folder(card)
    if found:
        raise ProblemError(Problem(title=words.IS_GGUF, cause="", advice=words.IMPORT_FIRST))
    return _fit_repository(text, meter)


def _fit_repository(repo_id: str, meter: FitMeter) -> Fit:
    try:
        found = repo_details(details(repo_id).run())
    except HubError as error:
        raise ProblemError(error.problem) from error
    if not found.config:
        raise ProblemError(Problem(title=words.NO_WEIGHTS, cause="", advice=words.MLX_FORMAT))
    weights = sum(f.size_bytes for f in found.files if f.path.endswith(".safetensors"))
    return meter.fit_config(found.config, weights)


def _size(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB"
