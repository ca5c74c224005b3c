from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.conversation.tree import Conversation
from app.store.conversations import ConversationStore, open_store
from app.store.merging import PART_CHARS, PART_MESSAGES, Merged, Merging, merge
from engine.types import ConversationId
from tests.fakes.conversations import ConversationWriter, filed

NOW = 1_760_011_200.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "conversations.db"


@pytest.fixture
def store(path: Path) -> Iterator[ConversationStore]:
    with closing(open_store(path, now=NOW).store) as store:
        yield store


def chat(num_turns: int, answer: str = "yes") -> Conversation:
    writer = ConversationWriter("C")
    for turn in range(num_turns):
        writer.send(f"question {turn}", answer)
    return writer.conv


def shortened(conv: Conversation, num_messages: int) -> Conversation:
    nodes = dict(list(conv.nodes.items())[:num_messages])
    return replace(conv, nodes=nodes, children={}, shown={})


def test_long_chat_is_not_listed_before_its_last_part_is_written(store: ConversationStore) -> None:
    conv = chat(PART_MESSAGES)
    merging = Merging(filed(conv))

    assert merging.step(store) is None
    assert store.summaries() == store.deleted() == ()
    assert store.search.find("question") == ()
    assert merging.step(store) is Merged.ADDED
    assert store.load(conv.conversation_id) == conv
    assert len(store.summaries()) == 1


def test_chat_of_long_messages_is_written_in_parts(store: ConversationStore) -> None:
    merging = Merging(filed(chat(2, "a long answer " * (PART_CHARS // 14))))

    assert [merging.step(store) for _ in range(2)] == [None, Merged.ADDED]


def test_start_after_an_interrupted_import_removes_the_incomplete_chat(
    store: ConversationStore, path: Path
) -> None:
    conv = chat(PART_MESSAGES)
    Merging(filed(conv)).step(store)
    store.close()

    with closing(open_store(path, now=NOW).store) as opened:
        assert not opened.has(conv.conversation_id)
        assert opened.figures().num_messages == 0
        assert merge(opened, filed(conv)) is Merged.ADDED


def test_many_new_messages_of_a_stored_chat_appear_together(store: ConversationStore) -> None:
    conv = chat(PART_MESSAGES)
    first = shortened(conv, 2)
    store.create(first)
    merging = Merging(filed(conv))

    assert merging.step(store) is None
    assert len(store.load(conv.conversation_id).nodes) == 2
    assert merging.step(store) is Merged.GROWN
    assert store.load(conv.conversation_id) == conv
    assert store.figures().num_chats == 1


def test_interrupted_growth_of_a_chat_leaves_it_as_it_was(
    store: ConversationStore, path: Path
) -> None:
    conv = chat(PART_MESSAGES)
    store.create(shortened(conv, 2))
    Merging(filed(conv)).step(store)
    store.close()

    with closing(open_store(path, now=NOW).store) as opened:
        assert len(opened.load(conv.conversation_id).nodes) == 2
        assert opened.figures().num_messages == 2
        assert merge(opened, filed(conv)) is Merged.GROWN


def test_chat_that_is_removed_while_its_messages_are_imported_stays_removed(
    store: ConversationStore,
) -> None:
    conv = chat(PART_MESSAGES)
    store.create(shortened(conv, 2))
    merging = Merging(filed(conv))
    merging.step(store)
    store.delete(conv.conversation_id, now=NOW)
    store.remove(conv.conversation_id)

    assert merging.step(store) is Merged.PRESENT
    assert store.figures().num_messages == store.figures().num_chats == 0


def test_import_that_failed_begins_again_in_the_same_run(store: ConversationStore) -> None:
    conv = chat(PART_MESSAGES)
    Merging(filed(conv)).step(store)

    assert merge(store, filed(conv)) is Merged.ADDED
    assert store.load(ConversationId("C")) == conv


def test_removal_that_a_quit_interrupts_is_ended_by_the_next_start(
    store: ConversationStore, path: Path
) -> None:
    conv = chat(3 * PART_MESSAGES)
    store.create(conv)
    store.delete(conv.conversation_id, now=NOW)
    store.mark_removed([conv.conversation_id])

    assert store.remove_slice(conv.conversation_id)
    assert store.deleted() == store.summaries() == ()
    store.close()
    with closing(open_store(path, now=NOW).store) as opened:
        assert opened.figures().num_messages == opened.figures().num_chats == 0


def test_chat_that_is_not_deleted_is_not_removed(store: ConversationStore) -> None:
    conv = chat(2)
    store.create(conv)

    store.remove(conv.conversation_id)

    assert store.load(conv.conversation_id) == conv
