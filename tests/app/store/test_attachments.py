from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.conversation.actions import TurnIds, plan_send
from app.conversation.attachments import (
    AttachedPicture,
    Attachment,
    PictureSize,
    make_attachment,
    make_picture,
    prompt_text,
)
from app.conversation.deletion import DELETED_KEPT_S
from app.conversation.replies import stop_reply
from app.conversation.tree import Conversation, NodeId, new_conversation, set_draft_attachments
from app.store.conversations import ConversationStore, open_store
from app.store.search import file_matches, match_pattern
from app.words import attachments as words
from engine.types import ConversationId, Picture

MANUAL = make_attachment(
    "manual.pdf", "pdf", "The zebra lives in the Café.", num_pages=2, source="/tmp/manual.pdf"
)
NOTES = make_attachment("notes.txt", "text", "Ordinary notes.")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    with closing(open_store(tmp_path / "chats.db", now=0.0).store) as store:
        yield store


def with_draft(name: str, *files: Attachment) -> Conversation:
    conv = new_conversation(ConversationId(name), now=1.0)
    return set_draft_attachments(conv, files)


def sent(conv: Conversation) -> Conversation:
    name = conv.conversation_id
    ids = TurnIds(user=NodeId(f"{name}u"), reply=NodeId(f"{name}r"))
    turn = plan_send(conv, "A question", ids, now=2.0)
    return stop_reply(turn.conversation, ids.reply, content="Answer", reasoning="")


def texts(folder: Path) -> list[str]:
    """Return the stored texts, in the order of the alphabet."""
    with closing(sqlite3.connect(folder / "chats.db")) as connection:
        return [
            text for (text,) in connection.execute("SELECT text FROM attachment_texts ORDER BY 1")
        ]


def test_files_of_messages_and_drafts_are_loaded_as_saved(store: ConversationStore) -> None:
    before = with_draft("A", MANUAL, NOTES)
    store.create(before)
    assert store.load(before.conversation_id) == before

    after = set_draft_attachments(sent(before), (NOTES,))
    store.save(after, since=before)

    assert store.load(before.conversation_id) == after


def test_text_is_stored_once_and_is_gone_with_the_last_message(
    store: ConversationStore, tmp_path: Path
) -> None:
    one, two = sent(with_draft("A", MANUAL)), sent(with_draft("B", MANUAL, NOTES))
    store.create(one)
    store.create(two)
    assert texts(tmp_path) == ["Ordinary notes.", MANUAL.text]

    for name in "AB":
        store.delete(ConversationId(name), now=5.0)
    store.purge(now=5.0 + DELETED_KEPT_S - 1)
    assert len(texts(tmp_path)) == 2, "deleted chats can be restored for 30 days"
    store.remove(ConversationId("B"))
    assert texts(tmp_path) == [MANUAL.text]
    store.purge(now=5.0 + DELETED_KEPT_S)
    assert texts(tmp_path) == []


def test_text_of_a_deleted_message_is_gone_after_30_days(
    store: ConversationStore, tmp_path: Path
) -> None:
    conv = sent(with_draft("A", MANUAL))
    user = NodeId("Au")
    node = replace(conv.nodes[user], deleted_at=7.0)
    store.create(replace(conv, nodes={**conv.nodes, user: node}))
    store.purge(now=7.0 + DELETED_KEPT_S - 1)
    assert len(texts(tmp_path)) == 1
    store.purge(now=7.0 + DELETED_KEPT_S)
    assert texts(tmp_path) == []


def test_changed_draft_keeps_no_text_of_removed_files(
    store: ConversationStore, tmp_path: Path
) -> None:
    before = with_draft("A", MANUAL, NOTES)
    store.create(before)
    moved = set_draft_attachments(before, (NOTES, MANUAL))
    store.save(moved, since=before)
    assert store.load(before.conversation_id).draft_attachments == (NOTES, MANUAL)

    store.save(set_draft_attachments(moved, ()), since=moved)

    assert texts(tmp_path) == []


def test_search_finds_the_text_of_files_with_their_names(store: ConversationStore) -> None:
    store.create(sent(with_draft("A", MANUAL, NOTES)))

    (found,) = store.search.find("zebra cafe")

    (hit,) = found.hits
    assert hit.node_id == "Au"
    assert hit.file == "manual.pdf"
    assert hit.excerpt.text.startswith("The zebra")
    assert hit.excerpt.text[hit.excerpt.start : hit.excerpt.end] == "zebra"
    store.delete(ConversationId("A"), now=3.0)
    assert store.search.find("zebra") == ()


def test_message_that_matches_by_itself_is_found_once(store: ConversationStore) -> None:
    question = make_attachment("q.txt", "text", "Another question.")
    store.create(sent(with_draft("A", question)))

    (found,) = store.search.find("question")

    assert [hit.excerpt.text for hit in found.hits] == ["A question"]


def test_match_far_inside_a_long_file_is_shown(store: ConversationStore) -> None:
    long = make_attachment("long.txt", "text", "filler words é " * 40_000 + "the zebra end")
    store.create(sent(with_draft("A", long)))

    (found,) = store.search.find("zebra")

    assert "the zebra end" in found.hits[0].excerpt.text


def test_document_of_a_folder_is_found_in_its_newest_chat_only(store: ConversationStore) -> None:
    file = make_attachment("zoo.txt", "text", "the zebra")
    store.create(sent(with_draft("A", file)))
    for name in ("B", "C", "D"):
        store.create(sent(with_draft(name, replace(file, from_folder=True))))

    found = store.search.find("zebra")
    assert [one.conversation_id for one in found] == ["D", "A"]
    assert [(hit.file, hit.excerpt.text) for one in found for hit in one.hits] == [
        ("zoo.txt", "the zebra")
    ] * 2
    store.delete(ConversationId("D"), now=1.0)
    assert [one.conversation_id for one in store.search.find("zebra")] == ["C", "A"]


def test_places_in_a_long_file_are_found_across_slices() -> None:
    text = "zebras é azebra " * 3_000 + "Zébra"
    places = list(file_matches(text, match_pattern(["zebra"])))
    assert len(places) == 3_001
    assert {text[one.start : one.end] for one in places} == {"zebra", "Zébra"}
    assert text[places[-1].start :] == "Zébra"


def test_database_with_files_is_private(store: ConversationStore, tmp_path: Path) -> None:
    store.create(with_draft("A", MANUAL))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.glob("chats.db*")}
    assert modes == {0o600}


def photo(number: int = 1, size: PictureSize = PictureSize.MEDIUM) -> Attachment:
    view = Picture(digest=f"{number:02d}{size.value[0].encode().hex()}" * 16, width=40, height=30)
    picture = AttachedPicture(
        original=f"{number:02d}ff" * 16,
        extension="jpg",
        width=400,
        height=300,
        size=size,
        view=view,
    )
    return make_picture(f"photo {number}.jpg", picture, source=f"/tmp/{number}.jpg")


def digests(*photos: Attachment) -> frozenset[str]:
    found = [one.picture for one in photos if one.picture is not None]
    return frozenset(digest for one in found for digest in (one.original, one.view.digest))


def test_pictures_of_messages_and_drafts_are_loaded_as_saved(
    store: ConversationStore, tmp_path: Path
) -> None:
    before = with_draft("A", photo(1), MANUAL, photo(2))
    store.create(before)
    assert store.load(before.conversation_id) == before

    after = set_draft_attachments(sent(before), (photo(1, PictureSize.SMALL),))
    store.save(after, since=before)

    assert store.load(before.conversation_id) == after
    assert texts(tmp_path) == [MANUAL.text], "a picture has no text"
    used = digests(photo(1), photo(2), photo(1, PictureSize.SMALL))
    assert store.picture_digests() == used
    assert store.picture_digests(ConversationId("B")) == frozenset()


def test_picture_is_named_until_the_last_chat_with_it_is_gone(store: ConversationStore) -> None:
    for name in "AB":
        store.create(sent(with_draft(name, photo(1))))
        store.delete(ConversationId(name), now=5.0)
    store.remove(ConversationId("A"))
    assert store.picture_digests() == digests(photo(1)), "a deleted chat can be restored"
    store.remove(ConversationId("B"))
    assert store.picture_digests() == frozenset()


def test_damaged_value_of_a_picture_names_no_other_file_and_the_chat_opens(
    store: ConversationStore, tmp_path: Path
) -> None:
    store.create(sent(with_draft("A", photo(1))))
    with closing(sqlite3.connect(tmp_path / "chats.db")) as connection:
        connection.execute("UPDATE attachments SET picture = replace(picture, '01ff', '/../')")
        connection.commit()

    (file,) = store.load(ConversationId("A")).nodes[NodeId("Au")].attachments

    assert (file.name, file.picture) == ("photo 1.jpg", None)
    assert words.attached(file.name, file.part) == "[photo 1.jpg, can’t be read]"
    prompt = prompt_text((file,), "A question")
    assert prompt.pictures == ()
    assert words.LOST_PICTURE in prompt.content


@pytest.mark.parametrize(
    "values",
    [
        {"original": "../" * 21 + "a"},
        {"original": "AB" * 32},
        {"extension": "png/../x"},
        {"extension": "svg"},
        {"width": 0},
        {"view": Picture(digest="x" * 64, width=1, height=1)},
        {"view": Picture(digest="0" * 64, width=1, height=-1)},
    ],
)
def test_picture_with_values_that_are_no_file_names_is_refused(values: dict[str, Any]) -> None:
    picture = photo(1).picture
    assert picture is not None
    with pytest.raises(ValueError, match="a picture has"):
        replace(picture, **values)
