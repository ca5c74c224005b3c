"""The API key of the server, in a file of the data folder that only its owner can read."""

from __future__ import annotations

import secrets
from pathlib import Path

from app.words import problems
from engine.errors import DiskError
from engine.whole_file import write_whole

KEY_FILE = "server-key"
_NUM_BYTES = 24


def kept_key(path: Path) -> str:
    """Return the API key in a file. If there is none, make one that only this user can read.

    Raises:
        DiskError: the file can't be read or written.
    """
    try:
        if path.exists() and (key := path.read_text().strip()):
            return key
    except (OSError, UnicodeDecodeError) as error:
        raise DiskError(problems.cannot_open(path, str(error))) from error
    return new_key(path)


def new_key(path: Path) -> str:
    """Replace the key in a file.

    Raises:
        DiskError: the file can't be written.
    """
    key = secrets.token_urlsafe(_NUM_BYTES)
    try:
        write_whole(path, f"{key}\n".encode())
    except OSError as error:
        raise DiskError(problems.cannot_write(path, error.strerror)) from error
    return key
