"""Find the model that a name, a repository id or a path on the command line means."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from app.cli.client import ProblemError
from app.words import remove as words
from engine.catalog.card import ModelCard
from engine.catalog.installed import InstalledModel
from engine.local_models import LocalModels
from engine.problem import Problem

_PATH_STARTS = ("/", ".", "~")


def looks_like_path(text: str) -> bool:
    """Return True if a text cannot be the id of a repository, which has one slash at most."""
    return text.startswith(_PATH_STARTS) or text.count("/") > 1


def is_path(text: str) -> bool:
    """Return True if a text is or looks like the path of a file or a folder."""
    return looks_like_path(text) or Path(text).exists()


def matching(models: Sequence[InstalledModel], text: str) -> list[InstalledModel]:
    """Return the models with this path, else those with this repository id, else with this name."""
    place = os.path.realpath(_path(text))
    by_path = [model for model in models if place in _places(model)]
    by_id = [model for model in models if model.repo_id and model.repo_id == text]
    return by_path or by_id or [model for model in models if model.name == text]


def only_match(models: Sequence[InstalledModel], text: str) -> InstalledModel:
    """Return the one model that a text means.

    Raises:
        ProblemError: it means none, or several.
    """
    found = matching(models, text)
    if len(found) == 1:
        return found[0]
    if not found and is_path(text):
        title = words.not_listed(text) if _path(text).exists() else words.no_path(text)
        raise ProblemError(Problem(title=title, cause="", advice=words.LIST_NAMES))
    title = words.several(text, len(found)) if found else words.not_found(text)
    raise ProblemError(Problem(title=title, cause="", advice=words.CHOOSE_ONE))


def card_at(local: LocalModels, text: str) -> ModelCard:
    """Return the one model in a folder anywhere on this computer.

    Raises:
        ProblemError: there is no such folder, or it does not hold exactly one model.
    """
    folder = _path(text)
    if not folder.exists():
        raise ProblemError(Problem(title=words.no_path(text), cause="", advice=""))
    cards = local.scan_folder(folder) if folder.is_dir() else ()
    if len(cards) != 1:
        raise ProblemError(Problem(title=words.no_folder(text), cause="", advice=words.ONE_MODEL))
    return cards[0]


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # there is no such user
        return Path(text)


def _places(model: InstalledModel) -> set[str]:
    return {os.path.realpath(path) for path in (model.path, *model.owned)}
