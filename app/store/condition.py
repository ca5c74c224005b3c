"""The note beside the database that says how the last run left it.

    conversations.condition.json    {"clean": [[size, time, inode], null]}   of the file and its log
                                    {"damaged": true}
                                    {"rescue": "conversations.damaged-1.db"}

`clean`: the last connection closed the file, and the file was not changed since then. A large file
is then opened without reading all of it. The note is removed when the database is opened, so it is
missing after a kill or a power cut. `damaged`: damage was found while the app ran, and the next
start rescues the file. `rescue`: a rescue has begun; the next start finishes it if it was
interrupted.
"""

from __future__ import annotations

import contextlib
import json
import logging
from pathlib import Path
from typing import cast

from engine.whole_file import write_whole

log = logging.getLogger(__name__)


class ConditionNote:
    """Reads and writes the note of one database."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_suffix(".condition.json")

    @property
    def is_clean(self) -> bool:
        """True if the file is as the last connection left it."""
        return self._read().get("clean") == _fingerprint(self._database)

    @property
    def is_damaged(self) -> bool:
        return self._read().get("damaged") is True

    @property
    def rescued_file(self) -> Path | None:
        """The new path of the damaged file whose rescue has begun."""
        name = self._read().get("rescue")
        return self._database.with_name(Path(name).name) if isinstance(name, str) and name else None

    def set_clean(self) -> None:
        self._try_to_write({"clean": _fingerprint(self._database)})

    def set_damaged(self) -> None:
        self._try_to_write({"damaged": True})

    def set_rescue(self, kept: Path) -> None:
        """Note that a rescue begins.

        Raises:
            OSError: the note cannot be written.
        """
        self._write({"rescue": kept.name})

    def remove(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _read(self) -> dict[str, object]:
        try:
            note = cast("object", json.loads(self._path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return {}
        return cast("dict[str, object]", note) if isinstance(note, dict) else {}

    def _try_to_write(self, note: dict[str, object]) -> None:
        # Without the note, the next start reads the whole file, which finds the damage too.
        try:
            self._write(note)
        except OSError as error:
            log.warning("%s cannot be written: %s", self._path, error)

    def _write(self, note: dict[str, object]) -> None:
        write_whole(self._path, json.dumps(note).encode())


def _fingerprint(database: Path) -> list[list[int] | None]:
    return [_state_of(database), _state_of(Path(f"{database}-wal"))]


def _state_of(path: Path) -> list[int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return [found.st_size, found.st_mtime_ns, found.st_ino]
