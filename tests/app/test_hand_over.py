from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from app.hand_over import END, SOCKET_NAME, WILL_DO, hand_over, listening, read_request


def answer(listener: socket.socket, heard: list[bytes]) -> threading.Thread:
    """Accept and answer one connection on a new thread; in the app, the main thread answers."""

    def run() -> None:
        listener.setblocking(True)
        connection, _address = listener.accept()
        with connection:
            heard.append(connection.recv(1 << 16))
            connection.send(WILL_DO)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_hand_over_passes_files_with_unusual_names(tmp_path: Path) -> None:
    files = (tmp_path / "Ω “odd”\n name", Path(os.fsdecode(b"/not-\xff-utf8")))
    heard: list[bytes] = []
    with listening(tmp_path) as listener:
        assert listener is not None
        thread = answer(listener, heard)
        assert hand_over(tmp_path, files)
        thread.join()
    (request,) = heard
    assert request.endswith(END)
    assert request.count(END) == 1
    assert read_request(request) == files


def test_hand_over_works_in_deeply_nested_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("deep-" * 20) / ("deeper-" * 20)
    deep.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with listening(deep) as listener:
        assert listener is not None
        thread = answer(listener, [])
        assert hand_over(deep, ())
        thread.join()
    assert Path.cwd() == tmp_path


def test_socket_is_private_and_removed_when_listener_closes(tmp_path: Path) -> None:
    with listening(tmp_path):
        assert (tmp_path / SOCKET_NAME).stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == []


def test_socket_of_killed_process_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(SOCKET_NAME)
    assert not hand_over(tmp_path, ())
    with listening(tmp_path) as listener:
        assert listener is not None
        thread = answer(listener, [])
        assert hand_over(tmp_path, ())
        thread.join()


def test_hand_over_without_listener_or_answer_returns_false(tmp_path: Path) -> None:
    assert not hand_over(tmp_path, ())
    with listening(tmp_path):
        assert not hand_over(tmp_path, (), timeout_s=0.05)


def test_listening_in_missing_folder_yields_none(tmp_path: Path) -> None:
    with listening(tmp_path / "missing") as listener:
        assert listener is None


@pytest.mark.parametrize("request_", [b"{", b"17", b"[1]", b"\xff", b""])
def test_read_request_of_invalid_bytes_raises_value_error(request_: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (json raises a subclass)
        read_request(request_)
