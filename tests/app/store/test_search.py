from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from app.conversation import folding
from app.conversation.actions import plan_send
from app.conversation.deletion import delete_message
from app.conversation.folding import fold, search_text
from app.conversation.replies import finish_reply, resume_reply, set_generation
from app.conversation.tree import Conversation, replace_node, set_title
from app.store import search as searching
from app.store.conversations import DELETED_KEPT_S, ConversationStore
from app.store.database import Database
from app.store.opening import open_database
from app.store.search import SearchFilter
from tests.fakes.conversations import GENERATION, ConversationWriter, finished


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with closing(open_database(tmp_path / "conversations.db").database) as opened:
        yield opened


@pytest.fixture
def store(database: Database) -> ConversationStore:
    return ConversationStore(database)


def stored(store: ConversationStore, *texts: str, name: str = "A") -> ConversationWriter:
    writer = ConversationWriter(name)
    for text in texts:
        writer.send(text, "Noted.")
    store.create(writer.conv)
    return writer


def found(store: ConversationStore, words: str, only: SearchFilter | None = None) -> list[str]:
    groups = store.search.find(words, only)
    return [hit.node_id for group in groups for hit in group.hits]


def marked(store: ConversationStore, words: str) -> str:
    excerpt = store.search.find(words)[0].hits[0].excerpt
    return excerpt.text[excerpt.start : excerpt.end]


def check_index(database: Database) -> None:
    """Compare the index with one that is built from the messages, word by word."""
    expected = {
        (word, number)
        for number, content in database.rows(
            "SELECT message_number, content FROM messages WHERE status <> 'streaming'"
        )
        for word in str(content).lower().replace(".", " ").split()
    }
    database.run(
        "CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5vocab(message_search, instance)"
    )
    assert {(term, doc) for term, doc in database.rows("SELECT term, doc FROM words")} == expected


@pytest.mark.parametrize(
    ("text", "words", "mark"),
    [
        ("The quick brown fox", "quick", "quick"),
        ("The quick brown fox", "qu", "qu"),
        ("The quick brown fox", "BROWN fo", "brown"),
        ("The quick brown fox", '"quick brown"', "quick brown"),
        ("The quick, brown fox", '"quick brown', "quick, brown"),
        ("Un café crème à Zürich", "cafe creme", "café"),
        ("A cafe", "café", "cafe"),
        ("Une école décomposée: e\u0301te\u0301", "été", "e\u0301te\u0301"),
        ("今天天气很好", "天气", "天气"),
        ("今天天气很好", "好", "好"),
        ("これは日本語です", "日本語", "日本語"),
        ("안녕하세요 세계", "하세", "하세"),
        ("full width \uff21\uff22\uff23", "abc", "\uff21\uff22\uff23"),
        ("I don't know", "don't", "don't"),
        ("call snake_case_name()", "snake_case", "snake_case"),
        ("plan a trip", "a trip", "a"),
    ],
)
def test_find_marks_the_place_of_the_match(
    store: ConversationStore, text: str, words: str, mark: str
) -> None:
    stored(store, text)

    assert found(store, words) == ["A1u"]
    assert marked(store, words) == mark


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The quick brown fox", "uick"),
        ("The quick brown fox", '"brown quick"'),
        ("The quick brown fox", "quick zebra"),
        ("The quick brown fox", "q"),
        ("The quick brown fox", ""),
        ("The quick brown fox", '"" * ( ^'),
        ("今天天气很好", "气天"),
        ("NEAR text", "NEAR(text)  \x00 \ud800 zebra"),
    ],
)
def test_find_without_a_match_returns_nothing(
    store: ConversationStore, text: str, words: str
) -> None:
    stored(store, text)

    assert found(store, words) == []


@given(words=st.text(max_size=60), text=st.text(max_size=60))
@settings(max_examples=100)
def test_excerpt_of_any_text_marks_a_part_of_it(words: str, text: str) -> None:
    terms = tuple(searching.query_terms(words)) or ("x",)
    excerpt = searching.excerpt(text, searching.match_pattern(terms))

    assert 0 <= excerpt.start <= excerpt.end <= len(excerpt.text)
    assert "\n" not in excerpt.text


@given(text=st.text())
def test_fold_offsets_are_ascending_and_end_at_the_length(text: str) -> None:
    folded, offsets = fold(text)

    assert len(offsets) == len(folded) + 1
    assert list(offsets) == sorted(offsets)
    assert offsets[-1] == len(text)


def test_find_groups_by_conversation_newest_first(store: ConversationStore) -> None:
    stored(store, "apple one", "apple two", name="A")
    stored(store, "apple three", name="B")

    groups = store.search.find("apple")

    assert [group.conversation_id for group in groups] == ["B", "A"]
    assert [hit.node_id for hit in groups[1].hits] == ["A2u", "A1u"]
    assert len(store.search.find("apple", limit=1)) == 1


def test_find_filters_by_date_and_model(store: ConversationStore) -> None:
    writer = stored(store, "apple one", "apple two")
    before = writer.conv
    turn = plan_send(before, "more", writer.ids(), now=3.0)
    started = set_generation(turn.conversation, turn.reply_id, GENERATION)
    store.save(finish_reply(started, turn.reply_id, finished("apple three")), since=before)

    assert found(store, "apple", SearchFilter(since=2.0)) == ["A3r", "A2u"]
    assert found(store, "apple", SearchFilter(since=1.0, until=2.0)) == ["A1u"]
    assert found(store, "apple", SearchFilter(model_name="Tiny 1B")) == ["A3r"]
    assert found(store, "apple", SearchFilter(model_name="Huge")) == []


def test_titles_by_model_are_those_of_chats_that_it_has_answered(store: ConversationStore) -> None:
    for number, path in enumerate(("/hub/x/snapshots/a", "/hub/x/snapshots/b", "/other")):
        before = stored(store, "Hello", name=f"C{number}").conv
        turn = plan_send(before, "more", ConversationWriter(f"D{number}").ids(), now=3.0 + number)
        generation = replace(GENERATION, model_path=path)
        store.save(set_generation(turn.conversation, turn.reply_id, generation), since=before)
    titles = store.search.titles_by_model("/hub/x/snapshots/a")
    assert len(titles) == 1
    assert len(store.search.titles_by_model("/hub/x/snapshots/a", "/hub/x/snapshots/")) == 2
    assert store.search.titles_by_model("/nothing") == ()


def test_find_leaves_out_what_is_deleted(store: ConversationStore) -> None:
    writer = stored(store, "apple one", "apple two")
    deleted = delete_message(writer.conv, writer.conv.children[None][0], now=9.0)
    store.save(deleted, since=writer.conv)
    assert found(store, "apple") == []

    stored(store, "apple three", name="B")
    store.delete(stored(store, "apple four", name="C").conv.conversation_id, now=9.0)
    assert found(store, "apple") == ["B1u"]


def _change(writer: ConversationWriter) -> Conversation:
    first = writer.conv.children[None][0]
    return replace_node(writer.conv, replace(writer.conv.nodes[first], content="pear"))


def test_the_index_follows_every_change(store: ConversationStore, database: Database) -> None:
    writer = stored(store, "apple one", "apple two")
    check_index(database)
    changed = _change(writer)
    store.save(changed, since=writer.conv)
    check_index(database)
    titled = set_title(changed, "New")
    store.save(titled, since=changed)
    turn = plan_send(titled, "three", writer.ids(), now=3.0)
    store.save(turn.conversation, since=titled)
    store.save_text(turn.reply_id, content="half an apple", reasoning="")
    check_index(database)
    ended = finish_reply(turn.conversation, turn.reply_id, finished("a whole apple"))
    store.save(ended, since=turn.conversation)
    check_index(database)
    again = resume_reply(ended, turn.reply_id)
    store.save(again, since=ended)
    check_index(database)
    store.stop_interrupted()
    check_index(database)
    store.delete(titled.conversation_id, now=0.0)
    store.purge(now=DELETED_KEPT_S + 1.0)
    check_index(database)
    assert database.rows("SELECT count(*) FROM messages") == [(0,)]


def test_old_messages_are_indexed_in_slices_while_messages_change(
    store: ConversationStore, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "SLICE_MESSAGES", 3)
    writer = stored(store, *(f"apple {number}" for number in range(8)))
    # This is the state after the migration of an old database.
    database.run("INSERT INTO message_search (message_search) VALUES ('delete-all')")
    database.run("UPDATE search_progress SET last = (SELECT max(message_number) FROM messages)")
    stored(store, "apple new", name="B")

    assert found(store, "apple") == ["B1u"]
    assert store.search.index_slice()
    assert found(store, "apple")[:2] == ["B1u", "A8u"]
    store.save(_change(writer), since=writer.conv)
    store.delete(writer.conv.conversation_id, now=0.0)
    while store.search.index_slice():
        pass

    check_index(database)
    store.purge(now=DELETED_KEPT_S + 1.0)
    check_index(database)
    assert found(store, "apple") == ["B1u"]


def test_a_slice_ends_at_its_size(
    store: ConversationStore, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "SLICE_BYTES", 10)
    stored(store, "word " * 100, "word " * 100)
    database.run("INSERT INTO message_search (message_search) VALUES ('delete-all')")
    database.run("UPDATE search_progress SET last = (SELECT max(message_number) FROM messages)")

    slices = 0
    while store.search.index_slice():
        slices += 1

    assert slices > 1
    check_index(database)


def test_titles_are_found_without_their_messages(store: ConversationStore) -> None:
    for name, title in (("A", "Zürich by train"), ("B", "Trains of Norway"), ("C", "Bread")):
        writer = stored(store, "one", name=name)
        store.save(set_title(writer.conv, title), since=writer.conv)
    titles = [one.title for one in store.search.find_titles("train")]
    assert sorted(titles) == ["Trains of Norway", "Zürich by train"]
    (found_title,) = store.search.find_titles("TRAIN zurich")
    assert (found_title.title, found_title.hits) == ("Zürich by train", ())
    assert len(store.search.find_titles("train", limit=1)) == 1
    assert store.search.find_titles("rain") == ()
    assert store.search.find_titles("...") == ()


def test_search_text_of_a_long_text_equals_that_of_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = "Zürich 今天 ﬁn e\u0301\n\u0301 at the start of a line\n" * 40 + "no break " * 20
    whole = search_text(text)
    monkeypatch.setattr(folding, "_PIECE", 50)
    assert search_text(text) == whole
