from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from app.hand_over import END, SOCKET_NAME, WILL_DO, hand_over, listening, read_request


def answer(listener: socket.socket, heard: list[bytes]) -> threading.Thread:
    """One call, on a thread, as the app would on its main one."""

    def run() -> None:
        listener.setblocking(True)
        connection, _address = listener.accept()
        with connection:
            heard.append(connection.recv(1 << 16))
            connection.send(WILL_DO)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_files_go_over_whatever_their_names_are(tmp_path: Path) -> None:
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


def test_a_deep_data_folder_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / ("deep-" * 20) / ("deeper-" * 20)
    deep.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with listening(deep) as listener:
        assert listener is not None
        thread = answer(listener, [])
        assert hand_over(deep, ())
        thread.join()
    assert Path.cwd() == tmp_path


def test_the_socket_is_private_and_goes_with_its_owner(tmp_path: Path) -> None:
    with listening(tmp_path):
        assert (tmp_path / SOCKET_NAME).stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_one_left_is_replaced(
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


def test_nobody_there_and_nobody_who_answers(tmp_path: Path) -> None:
    assert not hand_over(tmp_path, ())
    with listening(tmp_path):
        assert not hand_over(tmp_path, (), timeout_s=0.05)


def test_without_sockets_the_app_runs_all_the_same(tmp_path: Path) -> None:
    with listening(tmp_path / "missing") as listener:
        assert listener is None


@pytest.mark.parametrize("request_", [b"{", b"17", b"[1]", b"\xff", b""])
def test_what_is_no_request_is_refused(request_: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (json's own, too)
        read_request(request_)
