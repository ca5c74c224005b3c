"""The bytes of cached state written on one day, for all models together. Pure Python, without mlx."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

from engine.plain_file import read_plain
from engine.whole_file import write_whole

_MAX_FILE_BYTES = 1000
# Bytes after which the count is saved again. A crash forgets at most these.
_SAVE_EVERY = 16 << 20
# Largest count that is believed. No disk writes an exabyte on one day.
_MAX_BYTES = 10**18


class DailyBytes:
    """The count of the present day, in local time. The folder's lock keeps other processes out."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        """Read the saved count. A file that cannot be read counts as none.

        path: file of the count. clock: function that returns the Unix time.
        """
        self._path = path
        self._clock = clock
        self._day, self._nbytes = self._saved()
        self._unsaved = 0

    @property
    def nbytes(self) -> int:
        """The bytes written today."""
        today = self._today()
        if today != self._day:
            self._day, self._nbytes = today, 0
        return self._nbytes

    @property
    def is_old(self) -> bool:
        """True if the saved count is so old that it should be saved again."""
        return self._unsaved >= _SAVE_EVERY

    def add(self, nbytes: int) -> None:
        self._nbytes = self.nbytes + nbytes
        self._unsaved += nbytes

    def packed(self) -> bytes:
        """Return the content of the file, for save()."""
        self._unsaved = 0
        return json.dumps({"day": self._day, "bytes": self._nbytes}).encode()

    def save(self, content: bytes) -> None:
        """Write the file. This method may be called on another thread.

        Raises:
            OSError: the file cannot be written.
        """
        write_whole(self._path, content)

    def _saved(self) -> tuple[int, int]:
        today = self._today()
        try:
            found: object = json.loads(read_plain(self._path, _MAX_FILE_BYTES))
        except (OSError, ValueError, RecursionError):
            return today, 0
        match found:
            case {"day": int(day), "bytes": int(nbytes)} if (
                day == today and 0 <= nbytes <= _MAX_BYTES
            ):
                return day, nbytes
            case _:
                return today, 0

    def _today(self) -> int:
        return date.fromtimestamp(self._clock()).toordinal()  # noqa: DTZ012 (the local calendar)
