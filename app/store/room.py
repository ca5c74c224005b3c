"""A check for free disk space."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

NEEDED = 1_000_000  # bytes that the database needs to open and to write a few changes
# Numbers of errors. EFBIG: a limit on the size of files.
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def is_full(folder: Path) -> bool:
    """Return True if the disk of a folder has no room for some changes of the database.

    A file is written, because a quota is not part of the free space that the system states.
    """
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(NEEDED))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.errno in NO_ROOM
    return False
