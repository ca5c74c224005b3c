"""Open files that users or others named, which may be pipes, devices or endless.

Opening a named pipe blocks until a writer opens it, and reading a device such as /dev/zero never
ends. The kind and the size are those of the opened file, so a file that is exchanged meanwhile
changes nothing. Links are followed.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
from collections.abc import Iterable
from io import BufferedReader
from pathlib import Path

log = logging.getLogger(__name__)

_PIECE_BYTES = 4 << 20


def open_plain(path: Path) -> BufferedReader:
    """Open a regular file to read bytes from it.

    Raises:
        OSError: the file cannot be opened, or it is no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "It is a pipe or a device, not a file", str(path))
    return os.fdopen(descriptor, "rb")


def read_plain(path: Path, max_bytes: int) -> bytes:
    """Return the content of a regular file.

    Raises:
        OSError: the file cannot be read, it is no regular file, or it has more than max_bytes.
    """
    with open_plain(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"It has more than {max_bytes:,} bytes", str(path))
    return content


def read_through(paths: Iterable[Path], is_stopped: threading.Event, most_bytes: int) -> int:
    """Read files in order, so that the operating system keeps them in free memory.

    A file that cannot be read is left out: who needs it reports the error.

    Args:
        paths: the files.
        is_stopped: ends the reading after the current piece.
        most_bytes: number of bytes after which the reading ends, up to a piece.

    Returns:
        The number of bytes that were read.
    """
    nbytes = 0
    piece = memoryview(bytearray(_PIECE_BYTES))
    for path in paths:
        try:
            with open_plain(path) as file:
                while (
                    nbytes < most_bytes
                    and not is_stopped.is_set()
                    and (count := file.readinto(piece))
                ):
                    nbytes += count
        except OSError as error:
            log.info("a file is not read early: %r", error)
    return nbytes
