from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from app.stopping import StoppedError
from app.store import backups as module
from app.store.backups import FOLDER, backups_of, make_backup
from app.store.conversations import ConversationStore, open_store
from app.store.errors import BackupError, DatabaseDamagedError
from tests.fakes.conversations import ConversationWriter

NOON = 1_760_011_200.0  # 2025-10-09 12:00 UTC
DAY_S = 24 * 3600


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "conversations.db"


@pytest.fixture
def store(path: Path) -> Iterator[ConversationStore]:
    with closing(open_store(path, now=NOON).store) as opened:
        _add_chat(opened, "first")
        yield opened


def _add_chat(store: ConversationStore, name: str) -> None:
    writer = ConversationWriter(name)
    writer.send("a question", "an answer")
    store.create(writer.conv)


def _backup(path: Path, day: int = 0) -> Path | None:
    return make_backup(path, now=NOON + day * DAY_S, stop=Event())


def test_backup_of_an_open_database_is_whole_private_and_one_file(
    path: Path, store: ConversationStore
) -> None:
    made = _backup(path)

    assert made is not None
    assert made == path.parent / FOLDER / "conversations-2025-10-09.db"
    assert [file.name for file in made.parent.iterdir()] == [made.name]
    assert made.stat().st_mode & 0o777 == 0o600
    assert made.parent.stat().st_mode & 0o777 == 0o700
    with closing(open_store(made, now=NOON).store) as copy:
        assert copy.summaries() == store.summaries()


@pytest.mark.usefixtures("store")
def test_backup_that_cannot_be_written_says_that_the_backup_failed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(module.os, "fsync", fail)
    with pytest.raises(BackupError) as caught:
        _backup(path)
    assert caught.value.problem.title == "The daily backup of your chats could not be made."


@pytest.mark.parametrize("is_folder_there", [False, True])
def test_backup_of_a_missing_database_says_that_the_backup_failed(
    tmp_path: Path, is_folder_there: bool
) -> None:
    folder = tmp_path if is_folder_there else tmp_path / "unplugged"

    with pytest.raises(BackupError):
        _backup(folder / "conversations.db")

    assert list(tmp_path.iterdir()) == []


def test_one_backup_is_made_for_a_day(path: Path, store: ConversationStore) -> None:
    assert _backup(path) is not None
    _add_chat(store, "second")

    assert _backup(path) is None
    assert _backup(path, day=1) is not None


def test_no_backup_is_made_of_an_unchanged_database(path: Path, store: ConversationStore) -> None:
    assert _backup(path) is not None
    assert store.summaries()

    assert _backup(path, day=1) is None


def test_start_and_end_of_the_app_are_no_change(path: Path) -> None:
    with closing(open_store(path, now=NOON).store) as store:
        _add_chat(store, "first")
    assert _backup(path) is not None

    open_store(path, now=NOON).store.close()

    assert _backup(path, day=1) is None


def test_seven_backups_are_kept(path: Path, store: ConversationStore) -> None:
    for day in range(9):
        _add_chat(store, f"day {day}")
        assert _backup(path, day) is not None

    assert [file.name[-5:-3] for file in backups_of(path)] == [
        f"{day}" for day in range(17, 10, -1)
    ]


def test_backups_over_the_limit_are_deleted_but_the_newest_stays(
    path: Path, store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    _backup(path)
    monkeypatch.setattr(module, "MAX_BYTES", 1)
    _add_chat(store, "second")

    newest = _backup(path, day=1)

    assert backups_of(path) == [newest]


def test_stopped_backup_leaves_no_file(path: Path, store: ConversationStore) -> None:
    stop = Event()
    stop.set()

    with pytest.raises(StoppedError):
        make_backup(path, now=NOON, stop=stop)

    assert list((path.parent / FOLDER).iterdir()) == []


def test_no_backup_is_made_on_a_full_disk(
    path: Path, store: ConversationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "SPARE_BYTES", 1 << 62)

    assert _backup(path) is None


def test_damaged_database_replaces_no_backup(path: Path) -> None:
    with closing(open_store(path, now=NOON).store) as store:
        _add_chat(store, "first")
    good = _backup(path)
    with closing(sqlite3.connect(path)) as other:
        (root,) = other.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'messages'"
        ).fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xa5" * 4096)

    with pytest.raises(DatabaseDamagedError):
        _backup(path, day=1)

    assert backups_of(path) == [good]
