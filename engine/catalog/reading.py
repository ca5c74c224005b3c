"""Read folders of models, with a limit on the number of entries."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import Final

# Number of entries that one root may have. The largest known cache has 4,000; reading 100,000 takes
# a second.
_MAX_ENTRIES: Final = 100_000


class FolderReader:
    """A reader of the folders below one root. After the limit, all folders seem empty."""

    def __init__(self, max_entries: int = _MAX_ENTRIES) -> None:
        self._num_left = max_entries

    @property
    def is_exhausted(self) -> bool:
        """True if the limit was reached, so that entries may be missing."""
        return self._num_left == 0

    def entries(self, folder: Path) -> list[os.DirEntry[str]]:
        """Return the entries of a folder, sorted by name. If it cannot be read, return []."""
        try:
            with os.scandir(folder) as entries:
                found = list(islice(entries, self._num_left))
        except OSError:
            return []
        self._num_left -= len(found)
        return sorted(found, key=lambda entry: entry.name)


def is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
