"""Which starts read the whole database, and damage that other starts find."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.store import opening as module
from app.store.condition import ConditionNote
from app.store.conversations import ConversationStore, open_store
from app.store.database import Database
from app.store.errors import DatabaseDamagedError
from app.store.opening import open_database
from tests.fakes.conversations import ConversationWriter


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "conversations.db"
    open_database(path).database.close()
    monkeypatch.setattr(module, "ALWAYS_CHECKED_BYTES", 0)  # each file counts as large
    return path


@pytest.fixture
def checks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The results of the checks of the whole file, as they are made."""
    seen: list[str] = []
    find_damage = Database.find_damage

    def check(database: Database) -> str:
        seen.append(find_damage(database))
        return seen[-1]

    monkeypatch.setattr(Database, "find_damage", check)
    return seen


def test_start_after_a_clean_end_does_not_read_a_large_file(path: Path, checks: list[str]) -> None:
    open_database(path).database.close()

    assert checks == []


def test_start_after_a_kill_asks_for_a_check_until_one_is_made(
    path: Path, checks: list[str]
) -> None:
    killed = open_database(path).database
    assert killed.is_checked
    for _ in range(2):
        with closing(open_database(path).database) as database:
            assert not database.is_checked
    killed.abandon()
    database = open_database(path).database
    database.is_checked = True
    database.close()

    with closing(open_database(path).database) as database:
        assert database.is_checked
    assert checks == []


def test_start_after_a_change_by_another_program_asks_for_a_check(path: Path) -> None:
    os.utime(path, (1, 1))

    with closing(open_database(path).database) as database:
        assert not database.is_checked


def test_small_file_is_read_at_every_start(
    path: Path, checks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ALWAYS_CHECKED_BYTES", 10**9)

    open_database(path).database.close()

    assert len(checks) == 1


def test_damage_found_by_a_query_is_rescued_by_the_next_start(path: Path) -> None:
    person = ConversationWriter()
    person.send("a question", "an answer")
    with closing(open_store(path, now=0.0).store) as store:
        store.create(person.conv)
    stat = path.stat()
    with closing(sqlite3.connect(path)) as other:
        (root,) = other.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'messages_by_conversation'"
        ).fetchone()
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096)
        file.write(b"\xa5" * 4096)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # as by a fault of the disk

    opened = open_store(path, now=0.0)
    with closing(opened.store) as store:
        assert opened.problem is None
        with pytest.raises(DatabaseDamagedError):
            store.load(person.conv.conversation_id)
    assert ConditionNote(path).is_damaged

    opened = open_store(path, now=0.0)
    with closing(opened.store) as store:
        assert opened.problem is not None
        assert store.load(person.conv.conversation_id) == person.conv


def test_damage_found_by_a_backup_is_rescued_by_the_next_start(path: Path) -> None:
    with closing(open_database(path).database) as database:
        ConversationStore(database).note_damage()

    assert open_database(path).kept_aside is not None
