"""Files that others named are opened only if they are regular files."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from engine.gguf.reader import GgufError, read_gguf
from engine.hosts.hostfile import HostsFileError, read_hosts
from engine.plain_file import open_plain, read_plain, read_through


def _pipe(folder: Path) -> Path:
    path = folder / "pipe.gguf"
    os.mkfifo(path)
    return path


def test_plain_file_that_is_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="pipe or a device"):
        open_plain(_pipe(tmp_path))


def test_plain_file_that_is_a_device_or_a_folder_is_refused(tmp_path: Path) -> None:
    endless = tmp_path / "endless"
    endless.symlink_to("/dev/zero")

    with pytest.raises(OSError, match="pipe or a device"):
        open_plain(endless)
    with pytest.raises(IsADirectoryError):
        open_plain(tmp_path)


def test_plain_file_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")

    assert read_plain(path, 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_plain(path, 4)


def test_hosts_file_that_is_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    with pytest.raises(HostsFileError) as refused:
        read_hosts(_pipe(tmp_path))
    assert "pipe or a device" in refused.value.problem.cause


def test_gguf_file_that_is_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    with pytest.raises(GgufError) as refused:
        read_gguf(_pipe(tmp_path))
    assert "pipe or a device" in refused.value.problem.cause


def test_plain_files_are_read_through_and_others_left_out(tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(b"a" * 5_000_000)
    (tmp_path / "2").write_bytes(b"b" * 10)
    files = [tmp_path / "1", _pipe(tmp_path), tmp_path / "nowhere", tmp_path / "2"]

    assert read_through(files, threading.Event(), sys.maxsize) == 5_000_010


def test_reading_through_ends_at_the_limit_and_once_it_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * 20_000_000)
    is_stopped = threading.Event()

    assert 5_000_000 <= read_through([path, path], is_stopped, 5_000_000) < 20_000_000
    is_stopped.set()
    assert read_through([path], is_stopped, sys.maxsize) == 0
