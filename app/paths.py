"""Where Rejoinder keeps its files: in the platform's own places, or all of them in one folder."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path, user_data_path, user_log_path

from app.words import problems as words
from engine.errors import DiskError

FOLDER_NAME = "Rejoinder"
PRIVATE_FOLDER = 0o700
_HOME_IN_BUNDLE = ("Contents", "Resources", "python")  # where its interpreter lives


@dataclass(frozen=True, slots=True)
class Paths:
    """The folders of one person's Rejoinder, and what the app itself brings."""

    data_dir: Path  # what cannot be made again
    logs_dir: Path
    cache_dir: Path  # what can: no backup has it, the system may remove it
    bundle: Path | None = None  # Contents/Resources of the app; never written to

    @property
    def models_dir(self) -> Path:
        return self.data_dir / "models"

    @property
    def database(self) -> Path:
        return self.data_dir / "conversations.db"

    @property
    def settings(self) -> Path:
        return self.data_dir / "settings.json"


def make_paths(data_dir: Path | None = None) -> Paths:
    """The platform's own folders, or everything in data_dir; made readable by their owner alone.

    A folder that exists keeps its permissions: it may be one that the person shares.

    Raises:
        DiskError: a folder cannot be made.
    """
    paths = _own_places() if data_dir is None else _inside(data_dir.expanduser().absolute())
    for folder in (paths.data_dir, paths.logs_dir, paths.cache_dir, paths.models_dir):
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        except OSError as error:
            cause = words.cannot_use_folder(folder, error.strerror)
            raise DiskError(cause, advice=words.FOLDER_ADVICE) from error
    return paths


def bundle_resources(prefix: Path) -> Path | None:
    """Contents/Resources of the bundle that Python runs from; None where there is no bundle."""
    resources = prefix.parent
    in_bundle = (resources.parent.name, resources.name, prefix.name) == _HOME_IN_BUNDLE
    return resources if in_bundle else None


def _own_places() -> Paths:
    return Paths(
        data_dir=user_data_path(FOLDER_NAME, appauthor=False),
        logs_dir=user_log_path(FOLDER_NAME, appauthor=False),
        cache_dir=user_cache_path(FOLDER_NAME, appauthor=False),
        bundle=bundle_resources(Path(sys.prefix)),
    )


def _inside(folder: Path) -> Paths:
    return Paths(
        data_dir=folder,
        logs_dir=folder / "logs",
        cache_dir=folder / "cache",
        bundle=bundle_resources(Path(sys.prefix)),
    )


def free_name(path: Path, word: str) -> Path:
    """A name beside path that no file has, for a file that is kept aside: settings.broken-1.json."""
    number = 1
    while (free := path.with_name(f"{path.stem}.{word}-{number}{path.suffix}")).exists():
        number += 1
    return free
