"""Where Rejoinder keeps its files: everything hangs on one data folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_data_path

from app.words import problems as words
from engine.errors import DiskError

FOLDER_NAME = "Rejoinder"
PRIVATE_FOLDER = 0o700


@dataclass(frozen=True, slots=True)
class Paths:
    """The files of one data folder."""

    data_dir: Path

    @property
    def logs_dir(self) -> Path:
        return self.data_dir / "logs"

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
    """The data folder, the platform's own by default, with its folders made readable by its owner alone.

    A folder that exists keeps its permissions: it may be one that the person shares.

    Raises:
        DiskError: a folder cannot be made.
    """
    if data_dir is None:
        data_dir = user_data_path(FOLDER_NAME, appauthor=False)
    paths = Paths(data_dir.expanduser().absolute())
    try:
        paths.data_dir.parent.mkdir(parents=True, exist_ok=True)
        for folder in (paths.data_dir, paths.logs_dir, paths.models_dir):
            folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    except OSError as error:
        cause = words.cannot_use_folder(paths.data_dir, error.strerror)
        raise DiskError(cause, advice=words.FOLDER_ADVICE) from error
    return paths


def free_name(path: Path, word: str) -> Path:
    """A name beside path that no file has, for a file that is kept aside: settings.broken-1.json."""
    number = 1
    while (free := path.with_name(f"{path.stem}.{word}-{number}{path.suffix}")).exists():
        number += 1
    return free
