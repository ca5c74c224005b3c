"""A second Rejoinder hands over to the first one on the same data folder, through a socket that lies there.

No Qt, so that the second one is gone at once. The socket is private, and named by a short path from inside the
folder: a socket's whole path may have 104 bytes on macOS. One that a killed process left behind answers nobody,
and is replaced by whoever holds the InstanceLock next.
"""

from __future__ import annotations

import contextlib
import json
import logging
import socket
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Final, cast

log = logging.getLogger(__name__)

SOCKET_NAME: Final = "socket"
ANSWER_S: Final = 15.0  # one that is only starting answers when its window is there
WILL_DO: Final = b"1"  # the answer; none comes from an app that hangs
END: Final = b"\n"  # of a request


@contextlib.contextmanager
def listening(data_dir: Path) -> Generator[socket.socket | None]:
    """What later ones call. The caller holds the InstanceLock. None where the disk has no sockets."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            _listen(listener, data_dir)
        except OSError as error:
            log.warning("no socket in %s: %s", data_dir, error)
            yield None
            return
        try:
            yield listener
        finally:
            (data_dir / SOCKET_NAME).unlink(missing_ok=True)


def hand_over(data_dir: Path, files: Sequence[Path], timeout_s: float = ANSWER_S) -> bool:
    """Ask the one that runs to come to the front and to open files; whether it said that it does."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
            caller.settimeout(timeout_s)
            with contextlib.chdir(data_dir):
                caller.connect(SOCKET_NAME)
            caller.sendall(json.dumps([str(file) for file in files]).encode() + END)
            return caller.recv(len(WILL_DO)) == WILL_DO
    except OSError:
        return False


def read_request(request: bytes) -> tuple[Path, ...]:
    """The files to open.

    Raises:
        ValueError: it is no request.
    """
    parsed = cast("object", json.loads(request))
    names = cast("list[object]", parsed) if isinstance(parsed, list) else [parsed]
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"not a list of files: {parsed!r}")
    return tuple(Path(str(name)) for name in names)


def _listen(listener: socket.socket, data_dir: Path) -> None:
    place = data_dir / SOCKET_NAME
    place.unlink(missing_ok=True)
    with contextlib.chdir(data_dir):
        listener.bind(SOCKET_NAME)
    place.chmod(0o600)  # nobody can connect before listen
    listener.listen()
    listener.setblocking(False)
