from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings

from app.conversation.attachments import make_attachment
from app.conversation.filed import FiledConversation
from app.conversation.folder import FolderColor
from app.conversation.tree import Conversation, replace_node, set_title
from app.exchange.documents import message_markdown, to_html, to_markdown, to_text
from app.exchange.exporting import WRITERS, ExportKindError, export
from app.exchange.importing import Import
from app.exchange.own_json import from_value, to_json
from app.exchange.reading import UnreadableError
from app.store.pictures import PictureFiles
from app.words.exchange import KINDS
from engine.errors import DiskError
from tests.fakes.conversations import ConversationWriter, filed
from tests.fakes.trees import filed_conversations, without_deleted

NO_PICTURES = PictureFiles(Path("/nowhere"))


def written(*texts: str, answer: str = "Yes.") -> ConversationWriter:
    writer = ConversationWriter()
    for text in texts:
        writer.send(text, answer)
    return writer


def answered(answer: str) -> str:
    writer = written("Hi", answer=answer)
    return message_markdown(list(writer.conv.nodes.values())[1])


@pytest.mark.slow
@given(chat=filed_conversations())
@settings(max_examples=100)
def test_exported_json_of_a_random_tree_is_imported_equal(chat: FiledConversation) -> None:
    check_round_trip(chat)


def check_round_trip(chat: FiledConversation) -> None:
    chat.conversation.check_invariants()

    expected = replace(chat, conversation=without_deleted(chat.conversation))
    assert from_value(json.loads(to_json(chat))) == expected


def test_export_of_several_conversations_is_imported_equal(tmp_path: Path) -> None:
    chat = written("one", "two").conv
    convs = [filed(replace(chat, title=f"Chat {n}")) for n in range(5)]
    path = tmp_path / "all.json"

    assert export(path, convs, NO_PICTURES) == 5
    assert list(Import([path], now=0.0).found()) == convs
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "change",
    [
        {"folder": {"name": "Work"}},
        {"folder": {"folder_id": "F", "name": 7}},
        {"folder": {"folder_id": "a\u0000b", "name": "Work"}},
        {"folder": "Work"},
        {"pinned": 1},
    ],
)
def test_own_json_with_a_wrong_place_is_refused(change: dict[str, object]) -> None:
    value = json.loads(to_json(filed(written("one").conv))) | change

    with pytest.raises(UnreadableError):
        from_value(value)


def test_folder_in_a_file_is_cleaned() -> None:
    value = json.loads(to_json(filed(written("one").conv)))
    value["folder"] = {"folder_id": "F", "name": "A\nB " * 90, "color": "ultraviolet"}

    folder = from_value(value).folder

    assert folder is not None
    assert folder.color is FolderColor.GRAY
    assert folder.name.startswith("A B A B")
    assert len(folder.name) == 80


def test_export_of_no_conversation_is_valid_json(tmp_path: Path) -> None:
    path = tmp_path / "none.json"
    export(path, [], NO_PICTURES)

    assert json.loads(path.read_text()) == []


@pytest.mark.parametrize("ending", ["md", "html", "txt", "JSON"])
def test_export_has_the_branch_on_show(tmp_path: Path, ending: str) -> None:
    writer = written("What is a boat?")
    writer.edit(writer.conv.children[None][0], "What is a ship?", "A large boat.")
    path = tmp_path / f"chat.{ending}"

    export(path, [filed(set_title(writer.conv, "Ships & boats"))], NO_PICTURES)

    text = path.read_text(encoding="utf-8")
    assert "What is a ship?" in text
    assert "A large boat." in text
    assert ("What is a boat?" in text) == (ending == "JSON")


def test_each_kind_of_the_dialog_is_written_in_its_own_form(tmp_path: Path) -> None:
    paths = [tmp_path / f"chat{ending}" for ending in KINDS]
    for path in paths:
        export(path, [filed(written("What is a boat?").conv)], NO_PICTURES)
    assert len({path.read_text(encoding="utf-8") for path in paths}) == len(KINDS)
    assert set(WRITERS) == set(KINDS)


def test_export_to_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ExportKindError):
        export(tmp_path / "chat.docx", [], NO_PICTURES)

    assert list(tmp_path.iterdir()) == []


def test_failed_export_leaves_the_existing_file(tmp_path: Path) -> None:
    path = tmp_path / "chat.md"
    path.write_text("old")

    def cancelled() -> Iterator[FiledConversation]:
        yield filed(written("one").conv)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(path, cancelled(), NO_PICTURES)

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_export_to_a_missing_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(DiskError):
        export(tmp_path / "missing" / "chat.md", [], NO_PICTURES)


def test_html_of_a_message_with_html_is_escaped() -> None:
    hostile = '<script>alert(1)</script> [x](javascript:alert(1)) <img src="http://x/y.png">'
    conv = set_title(written(hostile, answer=hostile).conv, "<b>Title</b>")

    page = to_html(conv)

    assert "<script" not in page
    assert "<img" not in page
    assert 'href="javascript' not in page
    assert "&lt;b&gt;Title" in page


def test_html_keeps_the_lines_and_indentation_of_the_user() -> None:
    page = to_html(written("one\ntwo\n  three\n\n* item\n\n```\na\n  b\n```", answer="x\ny").conv)
    assert "<p>one<br>\ntwo<br>\n&nbsp;&nbsp;three</p>" in page
    assert "<li>item</li>" in page
    assert "<code>a\n  b\n</code>" in page
    assert "<p>x<br />\ny</p>" in page, "an answer keeps its lines too"


def test_markdown_closes_an_open_code_block() -> None:
    assert answered("```python\nprint()") == "```python\nprint()\n```"
    assert answered("```\na\n```\ntext") == "```\na\n```\ntext"
    assert answered("````\n```\na") == "````\n```\na\n````"


def test_markdown_quotes_thoughts() -> None:
    writer = written("Hi", answer="Yes.")
    reply = replace(list(writer.conv.nodes.values())[1], reasoning="One\n\nTwo")
    writer.conv = replace_node(writer.conv, reply)

    assert message_markdown(reply) == "> **Thoughts**\n>\n> One\n>\n> Two\n\nYes."


@pytest.mark.parametrize(
    "change",
    [
        {"conversation_id": ""},
        {"conversation_id": "x" * 101},
        {"conversation_id": 5},
        {"created_at": -1},
        {"created_at": True},
        {"updated_at": "out-of-range"},
        {"title": None},
        {"setup": {"temperature": "hot"}},
        {"messages": "none"},
        {"messages": [{"node_id": "A1u"}]},
    ],
)
def test_own_json_with_a_wrong_field_is_refused(change: dict[str, object]) -> None:
    value = json.loads(to_json(filed(written("one").conv))) | change

    with pytest.raises(UnreadableError):
        from_value(value)


@pytest.mark.parametrize(
    "change",
    [
        {"node_id": "A1r"},
        {"parent": "A1r"},
        {"parent": "missing"},
        {"role": "assistant"},
        {"role": "tool"},
        {"status": "lost"},
        {"content": None},
        {"created_at": 1e30},
        {"reply": {"token_ids": [-1], "answer_start": 0, "tokenizer_hash": ""}},
        {"reply": {"token_ids": [2**32], "answer_start": 0, "tokenizer_hash": ""}},
        {"reply": {"token_ids": [1], "answer_start": 2, "tokenizer_hash": ""}},
        {"generation": {"model_name": 5}},
    ],
)
def test_own_json_with_a_wrong_message_is_refused(change: dict[str, object]) -> None:
    value = json.loads(to_json(filed(written("one").conv)))
    value["messages"][0] |= change

    with pytest.raises(UnreadableError):
        from_value(value)


def with_files() -> Conversation:
    conv = written("Question").conv
    files = (make_attachment("a.pdf", "pdf", "One\n```\ntwo", num_pages=3, part="Page 2"),)
    first = next(iter(conv.nodes.values()))
    changed = replace_node(conv, replace(first, attachments=files))
    return replace(changed, draft_attachments=files)


def test_attachments_are_exported_and_imported_without_their_paths() -> None:
    conv = with_files()
    file = replace(conv.draft_attachments[0], source="/home/me/a.pdf")
    exported = to_json(filed(replace(conv, draft_attachments=(file,))))
    assert "/home/me" not in exported
    assert from_value(json.loads(exported)) == filed(conv)


def test_attachment_that_is_too_long_is_refused() -> None:
    value = json.loads(to_json(filed(with_files())))
    value["draft_attachments"][0]["text"] = "x" * 4_000_001
    with pytest.raises(UnreadableError):
        from_value(value)


def test_exported_texts_name_the_attachments() -> None:
    conv = with_files()
    for text in (to_markdown(conv), to_text(conv), to_html(conv)):
        assert "[a.pdf, Page 2]" in text
        assert "Question" in text
