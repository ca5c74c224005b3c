from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.store.errors import AlreadyRunningError, DatabaseFileError
from app.store.lock import InstanceLock

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_second_instance_on_one_data_folder_is_refused(tmp_path: Path) -> None:
    with InstanceLock(tmp_path), pytest.raises(AlreadyRunningError) as refused:
        InstanceLock(tmp_path).acquire()

    problem = refused.value.problem
    assert str(problem).startswith(
        f"Rejoinder is already running. It uses the data folder {tmp_path}. Use the open window,"
    )
    assert str(tmp_path) in problem.cause


def test_lock_of_another_process_is_free_once_it_is_killed(tmp_path: Path) -> None:
    lock = InstanceLock(tmp_path)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(AlreadyRunningError):
            lock.acquire()
        holder.kill()
    with lock:
        pass


def test_release_frees_the_lock_and_may_be_repeated(tmp_path: Path) -> None:
    lock = InstanceLock(tmp_path)
    lock.acquire()

    lock.release()
    lock.release()

    with InstanceLock(tmp_path):
        assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600


def test_folders_do_not_share_a_lock(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()

    with InstanceLock(tmp_path), InstanceLock(tmp_path / "other"):
        for held in (tmp_path, tmp_path / "other"):
            with pytest.raises(AlreadyRunningError):
                InstanceLock(held).acquire()


def test_noted_end_is_seen_until_the_next_process_holds_the_lock(tmp_path: Path) -> None:
    later = InstanceLock(tmp_path)
    with InstanceLock(tmp_path) as lock:
        assert not later.is_ending()
        lock.note_end()
        assert later.is_ending()
    with later:
        assert not later.is_ending()


def test_lock_in_missing_folder_raises_file_error(tmp_path: Path) -> None:
    with pytest.raises(DatabaseFileError, match="No such file"):
        InstanceLock(tmp_path / "missing").acquire()
