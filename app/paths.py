"""The folders that Rejoinder uses: the platform's usual ones, or subfolders of one given folder."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path, user_data_path, user_log_path

from app.words import problems as words
from engine.errors import DiskError

FOLDER_NAME = "Rejoinder"
PRIVATE_FOLDER = 0o700
_HOME_IN_BUNDLE = ("Contents", "Resources", "python")  # Python's folder inside the .app bundle


@dataclass(frozen=True, slots=True)
class Paths:
    """The folders of one user's Rejoinder, and the resources of the .app bundle, if any."""

    data_dir: Path  # folder for files that cannot be recreated
    logs_dir: Path
    # Folder for files that can be recreated. They are not backed up, and the system may remove
    # them.
    cache_dir: Path
    # the folder Contents/Resources of the .app bundle, which is read-only; None without a bundle
    bundle: Path | None = None

    @property
    def models_dir(self) -> Path:
        return self.data_dir / "models"

    @property
    def database(self) -> Path:
        return self.data_dir / "conversations.db"

    @property
    def state_dir(self) -> Path:
        """Folder of cached model state, which survives a restart."""
        return self.cache_dir / "state"

    @property
    def abilities_dir(self) -> Path:
        """Folder of the results of test passes, by which a known model is ready at once."""
        return self.cache_dir / "abilities"

    @property
    def settings(self) -> Path:
        return self.data_dir / "settings.json"


def make_paths(data_dir: Path | None = None) -> Paths:
    """Return the folders of the app, and create those that are missing.

    The folders are the platform's usual ones, or subfolders of `data_dir`. Only the owner may read
    a new folder. An existing folder keeps its permissions, because the user may share it on
    purpose.

    Raises:
        DiskError: a folder cannot be created.
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
    """Return Contents/Resources of the .app bundle that contains this Python, or None."""
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
    """Return an unused path in the folder of `path`, for example settings.broken-1.json."""
    number = 1
    while (free := path.with_name(f"{path.stem}.{word}-{number}{path.suffix}")).exists():
        number += 1
    return free
