"""The restriction of a process that reads foreign files."""

from __future__ import annotations

import os
import sys

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_FORBIDDEN = (
    "socket.",
    "subprocess.",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.remove",
    "os.rename",
)


def only_read() -> None:
    """Make this process unable to connect, to write files and to start programs, for good."""

    def refuse(event: str, arguments: tuple[object, ...]) -> None:
        is_write = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES
        if is_write or event.startswith(_FORBIDDEN):
            raise PermissionError("this process only reads")

    sys.addaudithook(refuse)
