from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from app.store.conversations import ConversationStore
from app.store.database import Database
from app.store.errors import (
    DatabaseDamagedError,
    DatabaseFileError,
    DatabaseFullError,
    DatabaseLockedError,
    DatabaseNewerError,
)
from app.store.opening import migrate, open_database
from app.store.schema import MIGRATIONS
from tests.fakes.conversations import ConversationWriter

LATEST = len(MIGRATIONS)
NOT_LONG_S = 0.02
PAGE = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "conversations.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    with closing(open_database(path, busy_timeout_s=NOT_LONG_S).database) as opened:
        yield opened


def _pragma(database: Database, name: str) -> object:
    return database.rows(f"PRAGMA {name}")[0][0]


def test_a_new_database_is_private_complete_and_in_wal_mode(path: Path, database: Database) -> None:
    assert _pragma(database, "journal_mode") == "wal"
    assert _pragma(database, "synchronous") == 1
    assert _pragma(database, "foreign_keys") == 1
    assert _pragma(database, "user_version") == LATEST
    for file in path.parent.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600, file.name


def test_open_database_makes_an_existing_file_private(path: Path) -> None:
    path.touch(mode=0o644)

    open_database(path).database.close()

    assert path.stat().st_mode & 0o777 == 0o600


def test_database_of_newer_format_is_refused_and_not_changed(path: Path) -> None:
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("CREATE TABLE future (x)")
        newer.execute(f"PRAGMA user_version = {LATEST + 1}")
    before = path.read_bytes()

    with pytest.raises(DatabaseNewerError) as refused:
        open_database(path)

    assert f"format {LATEST + 1}" in refused.value.problem.cause
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_a_failed_migration_changes_nothing(database: Database) -> None:
    broken = ("CREATE TABLE half (x)", "CREATE TABLE half (x)")

    with pytest.raises(sqlite3.OperationalError, match="already exists"):
        migrate(database, [("CREATE TABLE whole (x)",), broken], since=LATEST)

    tables = {row[0] for row in database.rows("SELECT name FROM sqlite_master")}
    assert "whole" in tables
    assert "half" not in tables
    assert _pragma(database, "user_version") == LATEST + 1


def test_transaction_on_locked_database_raises_locked_error(path: Path, database: Database) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseLockedError) as refused, database.transaction():
            pass

    assert refused.value.problem.title == "Your chats are in use by another program."
    with database.transaction():
        pass


def test_open_database_held_by_another_program_raises_locked_error(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode = EXCLUSIVE")
        other.execute("CREATE TABLE held (x)")
        with pytest.raises(DatabaseLockedError):
            open_database(path, busy_timeout_s=NOT_LONG_S)

    open_database(path).database.close()


def test_full_disk_raises_full_error_and_rolls_back_the_transaction(database: Database) -> None:
    database.run("CREATE TABLE texts (x)")
    database.run(f"PRAGMA max_page_count = {_pragma(database, 'page_count')}")

    with pytest.raises(DatabaseFullError) as refused:
        _insert(database, "short", "x" * 100_000)

    assert refused.value.problem.title == "The disk is full, so the chat was not saved."
    assert "SQLITE_FULL" in refused.value.problem.details
    assert database.rows("SELECT * FROM texts") == []


def _insert(database: Database, *texts: str) -> None:
    with database.transaction():
        for text in texts:
            database.run("INSERT INTO texts VALUES (?)", (text,))


def test_file_that_is_no_database_is_renamed_and_replaced(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = b"not a database, but long enough to be one" * 100
    path.write_bytes(content)

    with caplog.at_level(logging.WARNING):
        opened = open_database(path)

    opened.database.close()
    kept = path.with_name("conversations.damaged-1.db")
    assert opened.kept_aside == kept
    assert kept.read_bytes() == content
    assert str(path) in caplog.text


def test_damaged_pages_are_found_when_the_database_is_opened(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(open_database(path).database) as database:
        _write_long_text(database)
    _damage(path)
    damaged = path.read_bytes()

    with caplog.at_level(logging.WARNING):
        opened = open_database(path)

    opened.database.close()
    assert opened.kept_aside is not None
    assert opened.kept_aside.read_bytes() == damaged
    with closing(open_database(path).database) as fresh:
        assert _pragma(fresh, "user_version") == LATEST


def test_changed_text_that_sqlite_accepts_is_found_when_the_database_is_opened(
    path: Path,
) -> None:
    person = ConversationWriter()
    person.send("a question", "a whole answer")
    with closing(open_database(path).database) as database:
        ConversationStore(database).create(person.conv)
    content = path.read_bytes()
    assert b"a whole answer" in content
    path.write_bytes(content.replace(b"a whole answer", b"a whale answer"))

    opened = open_database(path)

    opened.database.close()
    assert opened.rescued is not None
    assert opened.rescued.num_changed == 1


def test_write_ahead_log_of_a_damaged_database_is_renamed_with_it(path: Path) -> None:
    with closing(open_database(path).database) as database:
        _write_long_text(database)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("INSERT INTO texts VALUES ('the newest message')")
        _damage(path)
        opened = open_database(path)
        opened.database.close()

        assert opened.kept_aside is not None
        log = Path(f"{opened.kept_aside}-wal").read_bytes()
        assert b"the newest message" in log


def _write_long_text(database: Database) -> None:
    database.run("CREATE TABLE texts (x)")
    database.run("INSERT INTO texts VALUES (?)", ("x" * 100_000,))


def _damage(path: Path) -> None:
    """Overwrite every page except the first, which contains the list of tables."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(PAGE)
        file.write(b"\xa5" * (size - PAGE))


def test_damage_found_by_a_query_raises_damaged_error(path: Path, database: Database) -> None:
    _write_long_text(database)
    database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    database.run("PRAGMA cache_size = 0")
    _damage(path)

    with pytest.raises(DatabaseDamagedError):
        database.rows("SELECT x FROM texts")


def test_open_database_on_a_folder_raises_file_error(path: Path) -> None:
    path.mkdir()

    with pytest.raises(DatabaseFileError) as refused:
        open_database(path)

    assert str(path) in refused.value.problem.cause


def test_open_database_in_missing_folder_raises_file_error(tmp_path: Path) -> None:
    with pytest.raises(DatabaseFileError, match="No such file"):
        open_database(tmp_path / "missing" / "conversations.db")


def test_wrong_sql_raises_the_error_of_sqlite3(database: Database) -> None:
    with pytest.raises(sqlite3.OperationalError):
        database.rows("SELECT nonsense")
    with pytest.raises(sqlite3.ProgrammingError):
        database.rows("SELECT ?", ())
