"""Find the model that a name, a repository id or a path on the command line means."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from app.cli.client import ProblemError
from app.words import remove as words
from engine.catalog.installed import InstalledModel
from engine.types import Problem


def matching(models: Sequence[InstalledModel], text: str) -> list[InstalledModel]:
    """Return the models with this path, else those with this repository id, else with this name."""
    place = os.path.realpath(Path(text).expanduser())
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
    title = words.several(text, len(found)) if found else words.not_found(text)
    raise ProblemError(Problem(title=title, cause="", advice=words.CHOOSE_ONE))


def _places(model: InstalledModel) -> set[str]:
    return {os.path.realpath(path) for path in (model.path, *model.owned)}
