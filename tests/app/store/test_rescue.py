"""Rescue of damaged databases. `python -m tests.soak mutations=300` makes many more damages."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from app.conversation.tree import NodeId, set_draft_attachments
from app.store.backups import make_backup
from app.store.conversations import open_store
from app.store.rescue import rescue
from engine.types import ConversationId
from tests.app.store.damaging import PAGE, Library, check_rescue, make_library, mutate
from tests.app.store.test_attachments import digests, photo, sent, with_draft
from tests.fakes.conversations import ConversationWriter

NOON = 1_760_011_200.0
KEPT = "conversations.damaged-1.db"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Library]:
    path = tmp_path_factory.mktemp("library") / "conversations.db"
    return path, make_library(path)


@pytest.fixture
def copy(original: tuple[Path, Library], tmp_path: Path) -> Path:
    path = tmp_path / "conversations.db"
    shutil.copy(original[0], path)
    return path


def _root_of(path: Path, name: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        return connection.execute(query, (name,)).fetchone()[0] - 1


def _overwrite(path: Path, page: int) -> None:
    with path.open("r+b") as file:
        file.seek(page * PAGE)
        file.write(b"\xa5" * PAGE)


@pytest.mark.parametrize("name", ["messages", "conversations", "sqlite_autoindex_messages_1"])
def test_damaged_root_page_loses_no_message(
    original: tuple[Path, Library], copy: Path, name: str
) -> None:
    page = _root_of(copy, name)
    _overwrite(copy, page)

    num_lost, sentence = check_rescue(copy, original[1], {page})

    assert num_lost == 0
    assert sentence.startswith("No message is missing")
    assert sentence.endswith(f". The damaged file is kept as {KEPT}.")


def test_damaged_first_page_loses_no_message(original: tuple[Path, Library], copy: Path) -> None:
    _overwrite(copy, 0)

    num_lost, sentence = check_rescue(copy, original[1], {0})

    assert num_lost == 0
    assert sentence.startswith("288 messages were saved, others may be missing")
    assert copy.with_name(KEPT).read_bytes()[:PAGE] == b"\xa5" * PAGE


@pytest.mark.parametrize("seed", range(25))
def test_random_damage_spares_what_can_be_read(
    original: tuple[Path, Library], copy: Path, seed: int
) -> None:
    check_rescue(copy, original[1], mutate(copy, random.Random(seed)))


def _lose_a_leaf(original: tuple[Path, Library], copy: Path) -> tuple[int, str]:
    """Damage the first page of a long answer. Return the number of lost messages and the report."""
    pages = original[1].pages
    long_answer = max(pages, key=lambda node_id: len(pages[node_id]))
    chat = next(one for one in original[1].chats if long_answer in one.nodes)
    row = copy.read_bytes().index(f"{long_answer}{chat.conversation_id}".encode())
    page = row // PAGE
    _overwrite(copy, page)
    return check_rescue(copy, original[1], {page})


def test_lost_messages_are_reported_and_replies_stay_in_their_chat(
    original: tuple[Path, Library], copy: Path
) -> None:
    num_lost, sentence = _lose_a_leaf(original, copy)

    assert num_lost >= 1
    assert f"{num_lost} message" in sentence
    with closing(open_store(copy, now=0.0).store) as store:
        chats = [store.load(one.conversation_id) for one in store.summaries()]
        texts = [node.content for chat in chats for node in chat.nodes.values()]
    assert "(This message was lost when the file was damaged.)" in texts
    assert len(chats) == len(original[1].chats)


def test_lost_messages_are_taken_from_the_backup(
    original: tuple[Path, Library], copy: Path
) -> None:
    assert make_backup(copy, now=NOON, stop=Event()) is not None

    num_lost, sentence = _lose_a_leaf(original, copy)

    assert num_lost == 0
    assert "some messages come from the backup conversations-2025-10-09.db" in sentence


def test_chat_that_was_removed_for_good_does_not_return_from_the_backup(
    original: tuple[Path, Library], copy: Path
) -> None:
    gone = original[1].chats[0].conversation_id
    make_backup(copy, now=NOON, stop=Event())
    with closing(open_store(copy, now=0.0).store) as store:
        store.delete(gone, now=0.0)
        store.remove(gone)
    _overwrite(copy, _root_of(copy, "messages"))

    with closing(open_store(copy, now=0.0).store) as store:
        assert len(store.summaries()) == len(original[1].chats) - 1


def test_emptied_file_is_replaced_by_the_backup(original: tuple[Path, Library], copy: Path) -> None:
    make_backup(copy, now=NOON, stop=Event())
    copy.write_bytes(b"")

    opened = open_store(copy, now=0.0)

    with closing(opened.store):
        assert len(opened.store.summaries()) == len(original[1].chats)
    assert opened.problem is not None


def test_messages_in_the_log_of_a_damaged_file_are_rescued(copy: Path) -> None:
    writer = ConversationWriter("newest")
    writer.send("the newest question", "the newest answer")
    with closing(open_store(copy, now=0.0).store) as store:
        store.create(writer.conv)
        killed = copy.with_name("killed")
        killed.mkdir()
        for suffix in ("", "-wal"):
            shutil.copy(f"{copy}{suffix}", killed / f"conversations.db{suffix}")
    path = killed / "conversations.db"
    _overwrite(path, 40)
    _overwrite(path, 0)

    with closing(open_store(path, now=0.0).store) as store:
        found = store.load(ConversationId("newest"))
    assert [node.content for node in found.nodes.values()] == [
        "the newest question",
        "the newest answer",
    ]


def test_search_finds_messages_after_the_rescue(original: tuple[Path, Library], copy: Path) -> None:
    page = _root_of(copy, "message_search_data")
    _overwrite(copy, page)
    check_rescue(copy, original[1], {page})

    with closing(open_store(copy, now=0.0).store) as store:
        assert store.search.find("wc1q1ux0z")


def test_message_that_cannot_be_understood_is_repaired_at_the_next_start(
    original: tuple[Path, Library], copy: Path
) -> None:
    with closing(sqlite3.connect(copy)) as other, other:
        other.create_function("search_text", 1, str)
        other.execute("UPDATE messages SET role = 'xser' WHERE message_number = 3")

    num_lost, sentence = check_rescue(copy, original[1], set())

    assert num_lost == 0
    assert sentence.startswith("No message is missing")


class _KilledError(BaseException):
    """Stands for a kill."""


@pytest.mark.parametrize("moment", range(3))
def test_interrupted_rescue_is_finished_by_the_next_start(
    original: tuple[Path, Library], copy: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    _overwrite(copy, 0)
    calls = 0

    def kill_at(call: Callable[..., object]) -> Callable[..., object]:
        def run(*args: object) -> object:
            nonlocal calls
            calls += 1
            if calls == moment + 1:
                raise _KilledError
            return call(*args)

        return run

    with monkeypatch.context() as patch:
        # In this order: the damaged file is renamed, the rescue runs, the new file is renamed.
        patch.setattr("app.store.opening.rescue", kill_at(rescue))
        patch.setattr("app.store.opening.move_file", kill_at(Path.replace))
        with pytest.raises(_KilledError):
            open_store(copy, now=0.0)

    num_lost, sentence = check_rescue(copy, original[1], {0})
    assert num_lost == 0
    assert KEPT in sentence
    assert copy.with_name(KEPT).exists()
    assert not copy.with_name("conversations.damaged-2.db").exists()


@pytest.mark.parametrize("name", ["attachment_texts", "messages", "sqlite_autoindex_messages_1"])
def test_pictures_survive_a_rescue(tmp_path: Path, name: str) -> None:
    path = tmp_path / "conversations.db"
    with closing(open_store(path, now=NOON).store) as store:
        conv = sent(with_draft("A", photo(1)))
        store.create(set_draft_attachments(conv, (photo(2),)))
    _overwrite(path, _root_of(path, name))

    opened = open_store(path, now=NOON)
    with closing(opened.store) as store:
        assert opened.problem is not None
        assert store.picture_digests() == digests(photo(1), photo(2))
        if name != "messages":
            found = store.load(ConversationId("A"))
            assert found.nodes[NodeId("Au")].attachments == (photo(1),)
            assert found.draft_attachments == (photo(2),)
