"""The hand-over between two Rejoinder processes that use one data folder, through a Unix socket.

The first process listens on a socket in the data folder. A second process connects to the socket,
sends the files to open, waits for the answer and exits. The second process does not import Qt, so
it takes little time. Only the user who owns the socket can connect to it. On macOS the path of a
socket may have at most 104 bytes. A process therefore changes into the data folder and uses the
bare name of the socket. A killed process leaves a dead socket file behind: the next process that
holds the InstanceLock replaces it.
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
# Seconds to wait for the answer, which a starting process sends only when its window is open.
ANSWER_S: Final = 15.0
WILL_DO: Final = b"1"  # the answer with which the first process confirms a request
END: Final = b"\n"  # the last byte of a request


@contextlib.contextmanager
def listening(data_dir: Path) -> Generator[socket.socket | None]:
    """Yield the socket that later processes connect to, or None if it cannot be created.

    The caller holds the InstanceLock. If the file system does not support sockets, the app runs
    without hand-overs.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        try:
            _listen(listener, data_dir)
        except OSError as error:
            log.warning("cannot create the hand-over socket in %s: %s", data_dir, error)
            yield None
            return
        try:
            yield listener
        finally:
            (data_dir / SOCKET_NAME).unlink(missing_ok=True)


def hand_over(data_dir: Path, files: Sequence[Path], timeout_s: float = ANSWER_S) -> bool:
    """Ask the running process to bring its window to the front and to open files.

    Return True if the process confirmed the request, False if it cannot be reached or did not
    answer within the timeout.
    """
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
    """Return the files that a hand-over request names.

    Raises:
        ValueError: the request is not JSON, or names something other than files.
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
    # changing the mode after bind() is safe: no process can connect before listen()
    place.chmod(0o600)
    listener.listen()
    listener.setblocking(False)
