"""Starts on a full disk, and starts that change the format of the database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.conversation.actions import TurnIds, plan_send
from app.conversation.folding import search_text
from app.conversation.tree import MessageStatus, NodeId
from app.store.conversations import open_store
from app.store.errors import DatabaseFullError, DatabaseNoRoomError
from app.store.schema import MIGRATIONS
from app.store.updates import copies_of
from engine.types import ConversationId
from tests.fakes.conversations import GENERATION, ConversationWriter, generated
from tests.fakes.full_disk import full_disk

OLD = Path(__file__).parent / "formats" / "v5.sql"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "conversations.db"


def write_chat(path: Path) -> ConversationId:
    writer = ConversationWriter("C")
    writer.send("question", "answer")
    ids = TurnIds(user=NodeId("u"), reply=NodeId("r"))
    interrupted = generated(plan_send(writer.conv, "more", ids, now=1.0), GENERATION).conversation
    with closing(open_store(path, now=0.0).store) as store:
        store.create(interrupted)
    return interrupted.conversation_id


def make_old(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.create_function("search_text", 1, search_text, deterministic=True)
        connection.executescript(OLD.read_text())


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def test_start_on_a_full_disk_opens_the_chats_to_read(path: Path) -> None:
    chat = write_chat(path)

    with full_disk():
        opened = open_store(path, now=0.0)
        with closing(opened.store) as store:
            conv = store.load(chat)
            with pytest.raises(DatabaseFullError) as refused:
                store.delete(chat, now=1.0)

    assert opened.is_read_only
    assert conv.nodes[NodeId("r")].status is MessageStatus.STOPPED
    assert "full" in str(refused.value.problem)
    assert "permissions" not in str(refused.value.problem)
    opened = open_store(path, now=0.0)
    with closing(opened.store) as store:
        assert not opened.is_read_only
        store.delete(chat, now=1.0)


def test_start_on_a_full_disk_without_a_database_is_refused_with_the_cause(path: Path) -> None:
    with full_disk(), pytest.raises(DatabaseNoRoomError) as refused:
        open_store(path, now=0.0)

    assert "too full" in refused.value.problem.title


def test_database_is_copied_before_its_format_is_changed(path: Path) -> None:
    make_old(path)

    open_store(path, now=0.0).store.close()

    (copy,) = copies_of(path)
    assert version_of(copy) == 5
    assert version_of(path) == len(MIGRATIONS)
    assert copy.stat().st_mode & 0o777 == 0o600


def test_copy_of_the_old_format_is_removed_after_a_later_start(path: Path) -> None:
    make_old(path)
    open_store(path, now=0.0).store.close()

    open_store(path, now=0.0).store.close()

    assert copies_of(path) == []


def test_copy_of_the_old_format_stays_while_the_database_is_damaged(path: Path) -> None:
    make_old(path)
    open_store(path, now=0.0).store.close()
    path.write_bytes(b"damaged" * 10_000)

    opened = open_store(path, now=0.0)
    with closing(opened.store) as store:
        assert len(store.load(ConversationId("A")).nodes) > 0
    assert len(copies_of(path)) == 1


def test_format_is_not_changed_without_room_for_the_copy(path: Path) -> None:
    make_old(path)

    with full_disk(max_bytes=path.stat().st_size - 4096), pytest.raises(DatabaseNoRoomError):
        open_store(path, now=0.0)

    assert version_of(path) == 5
    assert list(path.parent.iterdir()) == [path]
