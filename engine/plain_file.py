"""Open files that users or others named, which may be pipes, devices or endless.

Opening a named pipe blocks until a writer opens it, and reading a device such as /dev/zero never
ends. The kind and the size are those of the opened file, so a file that is exchanged meanwhile
changes nothing. Links are followed.
"""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path


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
