"""The bytes of cached state written on one day, for all models together. Pure Python, no mlx."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path

from engine.plain_file import read_plain
from engine.whole_file import write_whole

_MAX_FILE_BYTES = 1000
# Largest count that is believed. No disk writes an exabyte on one day.
_MAX_BYTES = 10**18


class DailyBytes:
    """The count of the present day, in local time. The folder's lock keeps other processes out.

    One thread adds to the count, and any thread may read it.
    """

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        """Read the saved count. A file that cannot be read counts as none.

        path: file of the count. clock: function that returns the Unix time.
        """
        self._path = path
        self._clock = clock
        self._count = self._saved()  # the day and the bytes, replaced together

    @property
    def nbytes(self) -> int:
        """The bytes written today."""
        day, nbytes = self._count
        return nbytes if day == self._today() else 0

    def add(self, nbytes: int) -> None:
        """Add to the count and save it, so a kill of the process forgets none.

        Raises:
            OSError: the file cannot be written. The count is right until the process ends.
        """
        self._count = self._today(), self.nbytes + nbytes
        day, total = self._count
        write_whole(self._path, json.dumps({"day": day, "bytes": total}).encode())

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
