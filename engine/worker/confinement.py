"""Rights that a child process gives up for good before it reads what others wrote.

An audit hook refuses calls of Python code. Limits of the system and, on a Mac, a sandbox also hold
for native code. The sandbox has not been seen at work on a Mac yet: if macOS refuses it, the hook
and the limits remain.
"""

from __future__ import annotations

import os
import resource
import sys
from contextlib import suppress

_CONNECTING = ("socket.",)
_STARTING = (
    "subprocess.",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.system",
    "pty.",
)
# Native code reached with ctypes raises no events. sqlite3 writes files without the event `open`.
_LEAVING = ("ctypes.", "resource.", "sqlite3.", "os.")
# Events of the module os that only read, or only concern this process.
_HARMLESS = ("os.listdir", "os.scandir", "os.walk", "os.fwalk", "os.putenv", "os.unsetenv")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Standard input and output are open already, and stay so.
_PROFILE = b"""(version 1) (allow default)
(deny network*) (deny file-write*) (deny process-fork) (deny process-exec)"""


def only_compute(*, has_threads: bool = False) -> None:
    """Take the rights to connect, to write or change files, and to start programs.

    Args:
        has_threads: True if a library starts threads. Linux counts these as processes, so the
            number of processes stays unlimited then.
    """
    sys.dont_write_bytecode = True
    limits = [resource.RLIMIT_FSIZE, resource.RLIMIT_CORE]
    if not has_threads:
        limits.append(resource.RLIMIT_NPROC)
    for limit in limits:
        with suppress(OSError, ValueError):  # a system without this limit
            resource.setrlimit(limit, (0, 0))
    _enter_sandbox()
    _refuse((*_CONNECTING, *_STARTING, *_LEAVING), writes=True)


def stay_offline() -> None:
    """Take the rights to connect and to start programs. Files can be written."""
    _refuse((*_CONNECTING, *_STARTING), writes=False)


def _refuse(events: tuple[str, ...], *, writes: bool) -> None:
    """Raise PermissionError for events, and for files that are opened for writing if `writes`."""

    def refuse(event: str, arguments: tuple[object, ...]) -> None:
        is_write = writes and event == "open" and _opens_for_writing(arguments)
        if is_write or (event.startswith(events) and event not in _HARMLESS):
            raise PermissionError("this process may not do that")

    sys.addaudithook(refuse)


def _opens_for_writing(arguments: tuple[object, ...]) -> bool:
    flags = arguments[2]
    return isinstance(flags, int) and bool(flags & _WRITES)


def _enter_sandbox() -> None:
    if sys.platform != "darwin":
        return
    import ctypes  # noqa: PLC0415 — a process that is not on a Mac never needs it

    with suppress(AttributeError, OSError):  # a macOS without this function
        sandbox_init = ctypes.CDLL(None).sandbox_init
        sandbox_init.argtypes = (ctypes.c_char_p, ctypes.c_uint64, ctypes.POINTER(ctypes.c_char_p))
        # 0: the text is a profile, and not the name of one
        sandbox_init(_PROFILE, 0, ctypes.byref(ctypes.c_char_p()))
