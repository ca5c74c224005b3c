from __future__ import annotations

import contextlib
import socket
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.bridge import callers
from app.bridge.callers import Callers
from app.hand_over import END, SOCKET_NAME, WILL_DO, listening

Asked = list[tuple[Path, ...]]


@pytest.fixture
def asked(tmp_path: Path, qtbot: QtBot) -> Iterator[Asked]:
    """Listen in tmp_path. Return the list of received requests, each a tuple of file paths."""
    heard: Asked = []
    with listening(tmp_path) as listener:
        assert listener is not None
        hearing = Callers(listener)
        hearing.called.connect(heard.append)
        yield heard
        hearing.close()


@contextlib.contextmanager
def calling(folder: Path) -> Generator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as caller:
        with contextlib.chdir(folder):
            caller.connect(SOCKET_NAME)
        caller.setblocking(False)
        yield caller


def wait_for_end(caller: socket.socket, qtbot: QtBot) -> bytes:
    """Return all bytes received on the connection until the listener closes it."""
    got: list[bytes] = []

    def ended() -> bool:
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            got.append(caller.recv(64))
            return got[-1] == b""
        return False

    qtbot.waitUntil(ended)
    return b"".join(got)


def test_request_sent_in_pieces_is_answered(tmp_path: Path, asked: Asked, qtbot: QtBot) -> None:
    with calling(tmp_path) as caller, calling(tmp_path) as silent:
        caller.send(b'["/a", ')
        qtbot.wait(10)
        assert asked == []
        caller.send(b'"/b"]' + END)
        assert wait_for_end(caller, qtbot) == WILL_DO
        assert asked == [(Path("/a"), Path("/b"))]
        silent.close()


@pytest.mark.parametrize("request_", [b"hello" + END, b'["/a"'], ids=["no list", "cut short"])
def test_invalid_request_is_dropped_without_answer(
    tmp_path: Path, asked: Asked, qtbot: QtBot, request_: bytes
) -> None:
    with calling(tmp_path) as caller:
        caller.send(request_)
        caller.shutdown(socket.SHUT_WR)
        assert wait_for_end(caller, qtbot) == b""
        # The listener still answers the next caller.
    with calling(tmp_path) as caller:
        caller.send(b"[]" + END)
        assert wait_for_end(caller, qtbot) == WILL_DO
    assert asked == [()]


def test_request_above_size_limit_is_dropped(
    tmp_path: Path, asked: Asked, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callers, "MAX_BYTES", 100)
    with calling(tmp_path) as caller:
        caller.send(b"[" * 101)
        assert wait_for_end(caller, qtbot) == b""
    assert asked == []
