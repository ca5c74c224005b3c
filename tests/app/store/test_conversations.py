from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.conversation.actions import plan_send
from app.conversation.deletion import delete_message
from app.conversation.replies import fail_reply, finish_reply, set_generation
from app.conversation.tree import (
    Conversation,
    MessageStatus,
    Setup,
    set_draft,
    set_system_prompt,
    set_title,
    show_version,
    summary_of,
)
from app.store.conversations import DELETED_KEPT_S, ConversationStore, open_store
from app.store.database import Database
from app.store.errors import ConversationMissingError, DatabaseFullError, DatabaseLockedError
from app.store.opening import open_database
from app.viewmodels.items import TranscriptItems
from engine.problem import Problem
from engine.types import ConversationId
from tests.fakes.conversations import GENERATION, USAGE, ConversationWriter, finished, generated

PROBLEM = Problem(title="No memory.", cause="9 of 8 GB.", advice="Close something.", details="x")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "conversations.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    with closing(open_database(path, busy_timeout_s=0.02).database) as opened:
        yield opened


@pytest.fixture
def store(database: Database) -> ConversationStore:
    return ConversationStore(database)


def _full_conversation() -> Conversation:
    """Return a conversation in which no field has its default value."""
    person = ConversationWriter()
    person.conv = set_system_prompt(person.conv, "Be brief.")
    first = person.send("one\0 ä 😀", "1")
    person.regenerate(first.reply_id, "1b")
    person.conv = show_version(person.conv, first.reply_id)
    turn = generated(plan_send(person.conv, "two", person.ids(), now=person.now()), GENERATION)
    event = finished("2", reasoning="hm")
    conv = finish_reply(turn.conversation, turn.reply_id, event)
    turn = plan_send(conv, "three", person.ids(), now=person.now())
    conv = fail_reply(turn.conversation, turn.reply_id, PROBLEM, content="", reasoning="")
    turn = generated(plan_send(conv, "four", person.ids(), now=person.now()), GENERATION)
    conv = set_title(set_draft(turn.conversation, "five"), "By hand")
    return replace(conv, setup=Setup(temperature=0.5, max_tokens=9, thinking=False))


def test_load_returns_the_created_conversation(store: ConversationStore) -> None:
    conv = _full_conversation()
    store.create(conv)

    loaded = store.load(conv.conversation_id)

    assert loaded == conv
    assert list(loaded.nodes) == list(conv.nodes)
    loaded.check_invariants()


def test_save_writes_every_changed_field(store: ConversationStore) -> None:
    person = ConversationWriter()
    person.send("one")
    store.create(person.conv)
    full = replace(_full_conversation(), created_at=person.conv.created_at)
    grown = replace(full, nodes={**person.conv.nodes, **full.nodes})

    store.save(grown, since=person.conv)

    assert store.load(full.conversation_id) == full


def test_save_writes_only_changed_fields(store: ConversationStore) -> None:
    turn = plan_send(ConversationWriter().conv, "one", ConversationWriter().ids(), now=1.0)
    conv = turn.conversation
    store.create(conv)
    store.save_text(turn.reply_id, content="half an", reasoning="")

    store.save(set_title(conv, "Renamed"), since=conv)

    loaded = store.load(conv.conversation_id)
    assert loaded.nodes[turn.reply_id].content == "half an"
    assert loaded.title == "Renamed"


def test_save_stores_and_clears_the_choice_of_an_older_version(store: ConversationStore) -> None:
    person = ConversationWriter()
    first = person.send("one", "1")
    newest = person.regenerate(first.reply_id, "1b")
    store.create(person.conv)

    older = show_version(person.conv, first.reply_id)
    store.save(older, since=person.conv)
    assert store.load(older.conversation_id) == older

    back = show_version(older, newest.reply_id)
    store.save(back, since=older)
    assert store.load(back.conversation_id) == back


def test_save_text_works_only_until_the_reply_ends(store: ConversationStore) -> None:
    person = ConversationWriter()
    turn = generated(plan_send(person.conv, "one", person.ids(), now=1.0), GENERATION)
    store.create(turn.conversation)

    store.save_text(turn.reply_id, content="half", reasoning="h")

    half = store.load(turn.conversation.conversation_id).nodes[turn.reply_id]
    assert (half.content, half.reasoning, half.status) == ("half", "h", MessageStatus.STREAMING)

    done = finish_reply(turn.conversation, turn.reply_id, finished("half and half"))
    store.save(done, since=turn.conversation)
    store.save_text(turn.reply_id, content="late", reasoning="late")

    assert store.load(done.conversation_id) == done


def test_generation_set_after_the_turn_was_created_is_saved(store: ConversationStore) -> None:
    person = ConversationWriter()
    turn = plan_send(person.conv, "one", person.ids(), now=1.0)
    store.create(turn.conversation)

    named = set_generation(turn.conversation, turn.reply_id, GENERATION)
    store.save(named, since=turn.conversation)

    assert store.load(named.conversation_id) == named


def test_summaries_are_newest_first_without_deleted_conversations(store: ConversationStore) -> None:
    people = [ConversationWriter(name) for name in "ABC"]
    for now, person in enumerate(people):
        store.create(replace(person.conv, updated_at=float(now), title=f"Chat {now}"))

    store.delete(ConversationId("B"), now=10.0)

    assert [summary.title for summary in store.summaries()] == ["Chat 2", "Chat 0"]
    assert store.load(ConversationId("B")).deleted_at == 10.0

    store.restore(ConversationId("B"))

    assert [summary.title for summary in store.summaries()] == ["Chat 2", "Chat 1", "Chat 0"]
    assert store.summaries()[1] == summary_of(store.load(ConversationId("B")))


def test_purge_removes_a_deleted_conversation_after_thirty_days(
    store: ConversationStore, database: Database
) -> None:
    conv = _full_conversation()
    store.create(conv)
    store.delete(conv.conversation_id, now=0.0)

    assert store.purge(now=DELETED_KEPT_S - 1.0) == ()
    assert store.load(conv.conversation_id).nodes == conv.nodes
    assert store.purge(now=float(DELETED_KEPT_S)) == (conv.conversation_id,)

    with pytest.raises(ConversationMissingError) as missing:
        store.load(conv.conversation_id)
    assert missing.value.problem.title == "This chat no longer exists."
    assert database.rows("SELECT * FROM messages") == []
    assert database.rows("SELECT * FROM shown_versions") == []


def test_text_that_is_deleted_for_good_is_not_in_the_file(path: Path) -> None:
    person = ConversationWriter()
    person.send("The secret question", "The secret answer. " * 500)
    name = person.conv.conversation_id
    with closing(open_database(path).database) as database:
        store = ConversationStore(database)
        store.create(person.conv)
        store.delete(name, now=0.0)
        store.remove(name)
        assert database.rows("PRAGMA secure_delete") == [(1,)]
    assert b"secret answer" not in path.read_bytes()


def test_purge_removes_a_deleted_message_and_all_below_after_thirty_days(
    store: ConversationStore, database: Database
) -> None:
    person = ConversationWriter()
    first, second = person.send("one", "1"), person.send("two", "2")
    person.regenerate(first.reply_id, "1b")
    person.conv = show_version(person.conv, first.reply_id)
    store.create(person.conv)
    gone = delete_message(person.conv, first.reply_id, now=0.0)
    store.save(gone, since=person.conv)

    assert store.load(gone.conversation_id) == gone
    store.purge(now=DELETED_KEPT_S - 1.0)
    assert store.load(gone.conversation_id) == gone
    assert store.purge(now=float(DELETED_KEPT_S)) == ()

    left = store.load(gone.conversation_id)
    left.check_invariants()
    assert [node.content for node in left.nodes.values()] == ["one", "1b"]
    assert not {first.reply_id, second.user_id, second.reply_id} & left.nodes.keys()
    assert database.rows("SELECT * FROM shown_versions") == []


def test_reply_cut_off_by_a_crash_is_loaded_as_stopped_with_its_text(path: Path) -> None:
    person = ConversationWriter()
    turn = generated(plan_send(person.conv, "one", person.ids(), now=1.0), GENERATION)
    conv_id = turn.conversation.conversation_id
    with closing(open_store(path, now=0.0).store) as store:
        store.create(turn.conversation)
        store.save_text(turn.reply_id, content="half", reasoning="")

    with closing(open_store(path, now=0.0).store) as store:
        loaded = store.load(conv_id)

    reply = loaded.nodes[turn.reply_id]
    assert (reply.status, reply.content) == (MessageStatus.STOPPED, "half")
    assert TranscriptItems().of(loaded, {})[-1].cut == "Rejoinder ended during this answer"


def test_open_store_purges_old_deleted_conversations(path: Path) -> None:
    person = ConversationWriter()
    with closing(open_store(path, now=0.0).store) as store:
        store.create(person.conv)
        store.delete(person.conv.conversation_id, now=0.0)

    with (
        closing(open_store(path, now=DELETED_KEPT_S + 1.0).store) as store,
        pytest.raises(ConversationMissingError),
    ):
        store.load(person.conv.conversation_id)


def test_damaged_database_is_reported_and_replaced_by_an_empty_one(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.write_bytes(b"no database at all" * 1000)

    with caplog.at_level(logging.WARNING):
        opened = open_store(path, now=0.0)

    with closing(opened.store):
        assert opened.store.summaries() == ()
    assert opened.problem is not None
    assert opened.problem.title == "The file with your chats was damaged."
    assert "conversations.damaged-1.db" in opened.problem.cause


def test_save_after_a_full_disk_includes_the_failed_changes(
    store: ConversationStore, database: Database
) -> None:
    person = ConversationWriter()
    person.send("one")
    saved = person.conv
    store.create(saved)
    (pages,) = database.rows("PRAGMA page_count")[0]
    database.run(f"PRAGMA max_page_count = {pages}")

    person.send("two" * 10_000)
    with pytest.raises(DatabaseFullError):
        store.save(person.conv, since=saved)
    assert store.load(saved.conversation_id) == saved

    database.run("PRAGMA max_page_count = 100000")
    person.send("three")
    store.save(person.conv, since=saved)
    assert store.load(saved.conversation_id) == person.conv


def test_locked_database_fails_the_save_but_not_the_next_one(
    path: Path, store: ConversationStore, database: Database
) -> None:
    person = ConversationWriter()
    with closing(open_database(path).database) as other:
        other.run("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseLockedError):
            store.create(person.conv)
        assert store.summaries() == ()

    store.create(person.conv)
    assert store.load(person.conv.conversation_id) == person.conv


def test_messages_are_loaded_despite_broken_generation_and_setup(
    store: ConversationStore, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    conv = _full_conversation()
    store.create(conv)
    database.run("UPDATE messages SET generation = 'broken', problem = '[]'")
    database.run("""UPDATE conversations SET setup = '{"temperature": "hot"}'""")

    with caplog.at_level(logging.WARNING):
        loaded = store.load(conv.conversation_id)

    assert [node.content for node in loaded.nodes.values()] == [
        node.content for node in conv.nodes.values()
    ]
    assert loaded.setup == Setup()
    assert "Generation" in caplog.text


def test_nan_among_the_figures_loses_only_the_figures(store: ConversationStore) -> None:
    person = ConversationWriter()
    turn = generated(plan_send(person.conv, "one", person.ids(), now=1.0), GENERATION)
    event = finished("1")
    broken = replace(event, usage=replace(event.usage, decode_tok_s=float("nan")))
    conv = finish_reply(turn.conversation, turn.reply_id, broken)
    store.create(conv)

    reply = store.load(conv.conversation_id).nodes[turn.reply_id]

    assert reply.content == "1"
    assert reply.generation == replace(GENERATION, finish_reason=event.reason)


def test_model_path_that_is_not_valid_unicode_is_stored(store: ConversationStore) -> None:
    person = ConversationWriter()
    generation = replace(GENERATION, model_path="/models/\udcff")
    turn = generated(plan_send(person.conv, "one", person.ids(), now=1.0), generation)
    store.create(turn.conversation)

    assert store.load(person.conv.conversation_id) == turn.conversation


def test_unreadable_reasons_are_left_out(
    store: ConversationStore, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    person = ConversationWriter()
    turn = generated(plan_send(person.conv, "one", person.ids(), now=1.0), GENERATION)
    conv = finish_reply(turn.conversation, turn.reply_id, finished("1"))
    store.create(conv)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE messages SET reasons = replace(reasons, 'fault', 'from_later')")
        connection.commit()

    with caplog.at_level(logging.ERROR):  # hide the expected warning
        loaded = store.load(conv.conversation_id).nodes[turn.reply_id]

    assert loaded.generation is not None
    assert loaded.generation.usage == replace(USAGE, plan=replace(USAGE.plan, reasons=()))
