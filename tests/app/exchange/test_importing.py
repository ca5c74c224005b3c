from __future__ import annotations

import json
import os
import random
import sys
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from app.conversation.filed import FiledConversation
from app.conversation.folder import Folder
from app.conversation.placement import NO_PLACE, FolderId, Placement
from app.conversation.tree import Conversation, MessageStatus, shown_path, versions
from app.exchange import foreign, reading, sources
from app.exchange.foreign import ForeignChat, ForeignMessage, to_conversation
from app.exchange.found import Unreadable
from app.exchange.importing import Import
from app.exchange.reading import UnreadableError
from app.store.conversations import ConversationStore, open_store
from app.store.errors import MessagesTakenError
from app.store.merging import Merged, merge
from app.viewmodels.items import TranscriptItems
from app.viewmodels.transcript import ItemStatus
from app.words import exchange as words
from engine.types import ConversationId, Role
from tests.fakes.conversations import ConversationWriter, filed
from tests.fakes.foreign_exports import EXPORTS, START, chatgpt, jan_files, write_export, zipped

KINDS = (*EXPORTS, "jan")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConversationStore]:
    with closing(open_store(tmp_path / "conversations.db", now=0.0).store) as opened:
        yield opened


def found(*paths: Path) -> tuple[list[Conversation], list[str]]:
    """Import files. Return the conversations, and "name: reason" of what could not be read."""
    conversations: list[Conversation] = []
    unreadable: list[str] = []
    for one in Import(paths, now=5.0).found():
        if isinstance(one, Unreadable):
            unreadable.append(f"{one.name}: {one.reason}")
        elif isinstance(one, FiledConversation):
            one.conversation.check_invariants()
            conversations.append(one.conversation)
    return conversations, unreadable


def reasons(path: Path) -> list[str]:
    return [one.split(": ", 1)[1] for one in found(path)[1]]


def written(folder: Path, value: object, name: str = "export.json") -> Path:
    path = folder / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def chat(*messages: ForeignMessage) -> Conversation:
    built = to_conversation(
        ForeignChat(kind="test", key="c", title="T", messages=messages), now=5.0
    )
    built.check_invariants()
    return built


def said(conv: Conversation) -> list[tuple[str, str]]:
    return [(node.role.value, node.content) for node in shown_path(conv)]


@pytest.mark.parametrize("kind", KINDS)
def test_import_reads_the_export_of_each_app(tmp_path: Path, kind: str) -> None:
    (conv,), unreadable = found(write_export(tmp_path, kind))

    assert unreadable == []
    assert conv.title == "Numbers"
    assert int(conv.created_at) == START
    question, answer, second, last = shown_path(conv)
    assert (question.content, answer.content) == ("One?", "One, again.")
    assert second.content.endswith("Two?")
    assert (last.content, last.status) == ("Two.", MessageStatus.COMPLETE)
    if kind != "jan":
        first, shown = versions(conv, answer.node_id)
        assert (conv.nodes[first].content, shown) == ("One.", answer.node_id)
        assert answer.reasoning == "Hm."


@pytest.mark.parametrize("kind", KINDS)
def test_import_twice_adds_nothing_the_second_time(
    tmp_path: Path, store: ConversationStore, kind: str
) -> None:
    path = write_export(tmp_path, kind)

    for expected in (Merged.ADDED, Merged.PRESENT):
        ((conv,), _) = found(path)
        assert merge(store, filed(conv)) is expected
    assert len(store.summaries()) == 1
    stored = store.load(conv.conversation_id)
    stored.check_invariants()
    assert dict(stored.nodes) == dict(conv.nodes)


def test_import_of_a_longer_export_adds_the_new_messages(
    tmp_path: Path, store: ConversationStore
) -> None:
    writer = ConversationWriter("A")
    writer.send("one")
    store.create(writer.conv)
    writer.send("two")

    assert merge(store, filed(writer.conv)) is Merged.GROWN
    assert store.load(writer.conv.conversation_id) == writer.conv


def test_import_restores_a_deleted_conversation(store: ConversationStore) -> None:
    writer = ConversationWriter("A")
    writer.send("one")
    store.create(writer.conv)
    store.delete(writer.conv.conversation_id, now=1.0)

    assert merge(store, filed(writer.conv)) is Merged.PRESENT
    assert len(store.summaries()) == 1


def in_folder(name: str, folder: Folder) -> FiledConversation:
    writer = ConversationWriter(name)
    writer.send("one")
    place = Placement(pinned=True, folder_id=folder.folder_id)
    return FiledConversation(conversation=writer.conv, placement=place, folder=folder)


def test_import_adds_the_folder_and_the_place_of_a_new_conversation(
    store: ConversationStore,
) -> None:
    folder = Folder(folder_id=FolderId("F"), name="Work", system_prompt="Be brief.", preset="Poet")
    chat = in_folder("A", folder)

    assert merge(store, chat) is Merged.ADDED

    assert store.folders.load() == (folder,)
    assert store.load_filed(chat.conversation.conversation_id) == chat
    assert store.summaries()[0].placement == chat.placement


def test_import_keeps_the_stored_folder_and_restores_a_deleted_one(
    store: ConversationStore,
) -> None:
    folder = Folder(folder_id=FolderId("F"), name="Work")
    store.folders.save(replace(folder, name="Renamed", deleted_at=4.0))

    merge(store, in_folder("A", folder))

    assert store.folders.load() == (replace(folder, name="Renamed"),)


def test_import_keeps_the_place_of_a_stored_conversation(store: ConversationStore) -> None:
    chat = in_folder("A", Folder(folder_id=FolderId("F"), name="Work"))
    store.create(chat.conversation)

    assert merge(store, chat) is Merged.PRESENT

    assert store.summaries()[0].placement == NO_PLACE
    assert store.folders.load() == ()


def test_conversation_in_a_deleted_folder_is_exported_without_it(store: ConversationStore) -> None:
    folder = Folder(folder_id=FolderId("F"), name="Work")
    chat = in_folder("A", folder)
    merge(store, chat)
    store.folders.save(replace(folder, deleted_at=4.0))

    assert store.load_filed(chat.conversation.conversation_id).folder is None


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("chatgpt", {"is_archived": True}, Placement(archived=True)),
        ("lm_studio", {"pinned": True}, Placement(pinned=True)),
        ("open_webui", {"pinned": True, "archived": True}, Placement(pinned=True, archived=True)),
    ],
)
def test_pin_and_archive_of_another_app_are_imported(
    tmp_path: Path, kind: str, fields: dict[str, object], expected: Placement
) -> None:
    export = EXPORTS[kind]()
    chat = cast("dict[str, object]", export[0] if isinstance(export, list) else export)
    path = written(tmp_path, chat | fields)

    (found_chat,) = Import([path], now=0.0).found()

    assert isinstance(found_chat, FiledConversation)
    assert found_chat.placement == expected


def test_import_with_ids_of_another_conversation_changes_nothing(store: ConversationStore) -> None:
    writer, thief = ConversationWriter("A"), ConversationWriter("A")
    writer.send("mine")
    store.create(writer.conv)
    thief.send("theirs")
    conv = Conversation(
        conversation_id=ConversationId("B"),
        created_at=0.0,
        updated_at=0.0,
        nodes=thief.conv.nodes,
        children=thief.conv.children,
    )

    with pytest.raises(MessagesTakenError):
        merge(store, filed(conv))

    assert store.load(writer.conv.conversation_id) == writer.conv
    assert len(store.summaries()) == 1


def test_messages_of_one_role_become_one_message() -> None:
    conv = chat(
        ForeignMessage(key="1", parent=None, role=Role.SYSTEM, text="Be brief."),
        ForeignMessage(key="2", parent="1", role=Role.USER, text="One"),
        ForeignMessage(key="3", parent="2", role=Role.USER, text="Two"),
        ForeignMessage(key="4", parent="3", role=None, text="tool"),
        ForeignMessage(key="5", parent="4", role=Role.ASSISTANT, text="Yes", reasoning="Hm"),
        ForeignMessage(key="6", parent="5", role=Role.ASSISTANT, text="No", reasoning="Ah"),
    )

    assert conv.system_prompt == "Be brief."
    assert said(conv) == [("user", "One\n\nTwo"), ("assistant", "Yes\n\nNo")]
    assert shown_path(conv)[1].reasoning == "Hm\n\nAh"


def test_two_messages_below_one_of_the_same_role_become_versions() -> None:
    conv = chat(
        ForeignMessage(key="1", parent=None, role=Role.USER, text="One"),
        ForeignMessage(key="2", parent="1", role=Role.USER, text="Two"),
        ForeignMessage(key="3", parent="1", role=Role.USER, text="Three"),
        ForeignMessage(key="4", parent="2", role=Role.ASSISTANT, text="Yes"),
    )

    texts = [conv.nodes[node_id].content for node_id in conv.children[None]]
    assert texts == ["One", "One\n\nTwo", "One\n\nThree"]


def test_an_answer_at_the_start_follows_a_user_message() -> None:
    conv = chat(ForeignMessage(key="1", parent="missing", role=Role.ASSISTANT, text="Hello"))

    assert said(conv) == [("user", words.NO_QUESTION), ("assistant", "Hello")]


def test_a_question_without_an_answer_gets_an_empty_one_that_nothing_stopped() -> None:
    conv = chat(ForeignMessage(key="1", parent=None, role=Role.USER, text="Hello"))

    assert said(conv) == [("user", "Hello"), ("assistant", "")]
    assert shown_path(conv)[1].status is MessageStatus.STOPPED
    item = TranscriptItems().of(conv, {})[1]
    assert (item.status, item.cut) == (ItemStatus.UNANSWERED, "No answer")


def test_a_title_is_made_from_the_first_message(tmp_path: Path) -> None:
    value = chatgpt()
    value[0]["title"] = None  # pyright: ignore[reportIndexIssue]

    assert found(written(tmp_path, value))[0][0].title == "One?"


def test_conversations_before_a_damaged_one_are_kept(tmp_path: Path) -> None:
    text = json.dumps(chatgpt())[:-1] + ', {"mapping": {"x": '

    conversations, unreadable = found(written(tmp_path, text))

    assert len(conversations) == 1
    assert unreadable == [f"export.json, chat 2: {words.DAMAGED}"]


def test_a_file_larger_than_one_chunk_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_CHUNK", 7)
    assert len(found(written(tmp_path, chatgpt() * 3))[0]) == 3


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", words.UNKNOWN),
        ("{}", words.UNKNOWN),
        ("17", words.UNKNOWN),
        ("not JSON", words.DAMAGED),
        ('[{"mapping":', words.DAMAGED),
        (DEEP, words.TOO_DEEP),
        ('{"mapping": {"a": ' + DEEP, words.TOO_DEEP),
        ('{"mapping": {"a": 5, "b": {"message": 7, "parent": ["x"]}}}', words.EMPTY),
        ('{"chat_messages": [1, null, {"uuid": 4, "sender": [], "text": {}}]}', words.EMPTY),
        ('{"messages": [{"versions": 5, "currentlySelected": 1e999}]}', words.EMPTY),
        ('{"chat": {"history": {"messages": [], "currentId": NaN}}}', words.EMPTY),
        ('{"format": "rejoinder-conversation", "version": 99}', words.NEWER),
        ('{"format": "rejoinder-conversation", "version": 1}', words.BAD_CONVERSATION),
    ],
)
def test_a_file_that_cannot_be_read_is_described_by_one_sentence(
    tmp_path: Path, text: str, reason: str
) -> None:
    assert reasons(written(tmp_path, text)) == [reason]


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "latin.json"
    path.write_bytes(b'[{"mapping": "\xe9"}]')

    assert reasons(path) == [words.NOT_TEXT]


def test_a_missing_file_is_described(tmp_path: Path) -> None:
    assert found(tmp_path / "missing.json") == (
        [],
        ["missing.json: It cannot be read: No such file or directory."],
    )


def test_a_value_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MAX_VALUE_CHARS", 1000)
    monkeypatch.setattr(reading, "_CHUNK", 100)

    assert reasons(written(tmp_path, chatgpt() * 3)) == [words.TOO_LARGE]


def test_an_archive_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MAX_TOTAL_BYTES", 1_000_000)
    path = tmp_path / "bomb.zip"
    path.write_bytes(zipped({"conversations.json": b" " * 5_000_000}))

    assert path.stat().st_size < 10_000
    assert reasons(path) == [words.TOO_MUCH]


def test_an_archive_with_too_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MAX_FILES", 10)
    path = tmp_path / "many.zip"
    path.write_bytes(zipped({f"{number}.json": "{}" for number in range(11)}))

    assert reasons(path) == [words.TOO_MANY_FILES]


def test_an_archive_with_another_compression_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lzma.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("conversations.json", json.dumps(chatgpt()))

    assert reasons(path) == [words.BAD_ZIP]


@pytest.mark.parametrize("limit", ["MAX_MESSAGES", "MAX_VERSIONS"])
def test_too_many_messages_are_refused(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(foreign, limit, 10)
    roots = [
        ForeignMessage(key=f"{number}", parent=None, role=Role.USER, text="x")
        for number in range(11)
    ]
    with pytest.raises(UnreadableError):
        chat(*roots)


def test_texts_that_multiply_in_branches_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "MAX_VALUE_CHARS", 10_000)
    messages = [ForeignMessage(key="0", parent=None, role=Role.USER, text="x" * 100)]
    for number in range(1, 100):
        for key in (f"{number}", f"leaf {number}"):
            parent = f"{number - 1}"
            messages.append(ForeignMessage(key=key, parent=parent, role=Role.USER, text="y"))
    with pytest.raises(UnreadableError):
        chat(*messages)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(20))
def test_a_damaged_file_gives_conversations_or_sentences(
    tmp_path: Path, kind: str, seed: int
) -> None:
    check_damaged_file(tmp_path, kind, seed)


def check_damaged_file(tmp_path: Path, kind: str, seed: int) -> None:
    pick = random.Random(f"{kind} {seed}")
    path = write_export(tmp_path, kind)
    victim = path if path.is_file() else pick.choice(sorted(path.rglob("*.json*")))
    data = bytearray(victim.read_bytes())
    for _ in range(pick.randrange(1, 20)):
        place = pick.randrange(len(data))
        match pick.randrange(4):
            case 0:
                data[place] = pick.randrange(256)
            case 1:
                del data[place:]
                data += b" "
            case 2:
                data[place:place] = pick.choice([b"[", b"{", b'"', b"1e999", b"null", b"\x00"])
            case _:
                end = min(len(data), place + pick.randrange(50))
                data[place:end] = b"7"
    victim.write_bytes(data)

    conversations, unreadable = found(path)

    assert conversations or unreadable
    assert all(line.endswith(".") for line in unreadable)


def test_jan_thread_without_messages_is_described(tmp_path: Path) -> None:
    assert reasons(written(tmp_path, jan_files()["thread.json"], "thread.json")) == [words.UNKNOWN]


def test_a_huge_number_of_digits_is_refused(tmp_path: Path) -> None:
    digits = "9" * (sys.get_int_max_str_digits() + 1)
    path = written(tmp_path, '{"mapping": {}, "create_time": ' + digits + "}")

    assert reasons(path) == [words.EMPTY]


def test_import_of_a_pipe_or_a_device_is_refused_at_once(tmp_path: Path) -> None:
    pipe, endless = tmp_path / "pipe.json", tmp_path / "endless.json"
    os.mkfifo(pipe)
    endless.symlink_to("/dev/zero")

    for path in (pipe, endless):
        (reason,) = reasons(path)
        assert "a pipe or a device" in reason


def test_messages_in_a_cycle_of_parents_are_kept() -> None:
    messages = (
        ForeignMessage(key="a", parent="c", role=Role.USER, text="one"),
        ForeignMessage(key="b", parent="a", role=Role.ASSISTANT, text="two"),
        ForeignMessage(key="c", parent="b", role=Role.USER, text="three"),
        ForeignMessage(key="d", parent=None, role=Role.USER, text="four"),
    )

    conv = chat(*messages)

    texts = {node.content for node in conv.nodes.values()}
    assert texts >= {"one", "two", "three", "four"}


def test_messages_of_one_id_are_all_kept_with_the_same_ids_each_time() -> None:
    messages = [ForeignMessage(key="a", parent=None, role=Role.USER, text=t) for t in "xyz"]
    messages.append(ForeignMessage(key="b", parent="a", role=Role.ASSISTANT, text="answer"))

    conv = chat(*messages)

    assert {node.content for node in conv.nodes.values()} >= {"x", "y", "z", "answer"}
    assert chat(*messages).nodes.keys() == conv.nodes.keys()


def test_reasoning_without_an_end_is_read_in_linear_time(tmp_path: Path) -> None:
    # A search for both tags at once takes hours for this text.
    text = '<details type="reasoning"' * 40_000 + '<details type="reasoning">' * 40_000
    text += "<summary>" * 100_000
    message = {"id": "m", "role": "user", "parentId": None, "content": text}
    history = {"messages": {"m": message}, "currentId": "m"}

    ((conv,), _) = found(written(tmp_path, [{"id": "c", "chat": {"history": history}}]))

    assert next(iter(conv.nodes.values())).content == text


@pytest.mark.parametrize("broken", [{"mapping": "nonsense"}, {"chat_messages": {"a": 1}}])
def test_conversation_with_another_form_of_messages_is_reported_and_the_others_imported(
    tmp_path: Path, broken: dict[str, object]
) -> None:
    good = {"uuid": "g", "name": "Good", "chat_messages": [{"sender": "human", "text": "Hello"}]}
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([good, {"title": "Broken", **broken}]))

    conversations, unreadable = found(path)

    assert [one.title for one in conversations] == ["Good"]
    assert len(unreadable) == 1
    assert "Its messages have a form that Rejoinder does not know." in unreadable[0]
