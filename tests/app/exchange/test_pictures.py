"""Pictures in exports and imports: they come back, and nothing in an imported file is trusted."""

from __future__ import annotations

import base64
import io
import json
import random
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from typing_extensions import override

from app.conversation.attachments import AttachedPicture, Attachment, prompt_text
from app.conversation.filed import FiledConversation
from app.conversation.tree import Conversation, replace_node, shown_path
from app.exchange import foreign_pictures, isolated, reading, sources
from app.exchange.exporting import export
from app.exchange.found import Unreadable
from app.exchange.importing import Import
from app.exchange.isolated import IsolatedImport
from app.extraction.extractor import Extractor
from app.settings import PictureSize
from app.store.conversations import open_store
from app.store.merging import Merged, merge
from app.store.pictures import PictureFiles
from app.words import attachments as attachment_words, exchange as words
from engine.errors import DiskError
from engine.types import ConversationId, Picture
from engine.worker.child import ChildProcess
from tests.fakes.conversations import ConversationWriter, filed
from tests.fakes.foreign_exports import EXPORTS, chatgpt, zipped
from tests.fakes.picture_files import SECRETS, saved, scene, with_metadata

PNG = saved(scene(), "PNG")
SIZES = (PictureSize.MEDIUM, PictureSize.SMALL)


@pytest.fixture
def files(tmp_path: Path) -> PictureFiles:
    return PictureFiles(tmp_path / "data" / "pictures")


@pytest.fixture
def imported(tmp_path: Path) -> PictureFiles:
    """The folder of pictures of another data folder, into which chats are imported."""
    return PictureFiles(tmp_path / "imported" / "pictures")


@pytest.fixture(scope="module")
def extractor() -> Iterator[Extractor]:
    with closing(Extractor()) as extractor:
        yield extractor


class _KeptChild(ChildProcess):
    """The import process of all tests. The end of an import does not end it."""

    @override
    def close(self) -> None:
        pass


class _KeptExtractor(Extractor):
    """The extraction process of all imports. The end of an import does not end it."""

    @override
    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def import_processes() -> Iterator[tuple[ChildProcess, Extractor]]:
    child, extractor = _KeptChild("app.exchange.program"), _KeptExtractor()
    yield child, extractor
    ChildProcess.close(child)
    Extractor.close(extractor)


@pytest.fixture(autouse=True)
def shared_processes(
    import_processes: tuple[ChildProcess, Extractor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let all imports of this module use the same two processes, which take 0.2 s to start."""
    child, extractor = import_processes

    def kept_child(_module: str) -> ChildProcess:
        return child

    monkeypatch.setattr(isolated, "ChildProcess", kept_child)
    monkeypatch.setattr(isolated, "Extractor", lambda: extractor)


def attached(
    extractor: Extractor,
    files: PictureFiles,
    content: bytes,
    size: PictureSize = PictureSize.MEDIUM,
    name: str = "photo.jpg",
) -> Attachment:
    extracted = extractor.decode(name, content, size)
    assert extracted.attachment.picture is not None
    assert extracted.content is not None
    files.add(extracted.attachment.picture, extracted.content)
    return extracted.attachment


def asked(name: str, *pictures: Attachment) -> Conversation:
    """Return a conversation whose first message has pictures."""
    writer = ConversationWriter(name)
    writer.send("What is this?", "A scene.")
    first = next(iter(writer.conv.nodes.values()))
    return replace_node(writer.conv, replace(first, attachments=pictures))


def found(*paths: Path, into: PictureFiles) -> tuple[list[FiledConversation], list[str]]:
    """Import files. Return the conversations, and "name: reason" of what could not be read."""
    chats: list[FiledConversation] = []
    unreadable: list[str] = []
    for one in IsolatedImport(paths, into, now=5.0).found():
        if isinstance(one, Unreadable):
            unreadable.append(f"{one.name}: {one.reason}")
        else:
            one.conversation.check_invariants()
            chats.append(one)
    return chats, unreadable


def of_first(chat: FiledConversation) -> tuple[Attachment, ...]:
    return shown_path(chat.conversation)[0].attachments


def all_files(files: PictureFiles) -> dict[str, bytes]:
    if not files.folder.is_dir():
        return {}
    return {path.name: path.read_bytes() for path in files.folder.iterdir()}


def has_files(files: PictureFiles, picture: AttachedPicture | None) -> bool:
    assert picture is not None
    paths = files.original(picture), files.view(picture.view), files.thumbnail(picture)
    return all(path.is_file() for path in paths)


def test_exported_pictures_are_imported_equal_with_their_files(
    tmp_path: Path, extractor: Extractor, files: PictureFiles, imported: PictureFiles
) -> None:
    small = attached(extractor, files, saved(scene(900, 700), "JPEG"), PictureSize.SMALL)
    other = attached(extractor, files, with_metadata("PNG", 6), name="turned.png")
    draft = attached(extractor, files, saved(scene(30, 30), "WEBP"), name="draft.webp")
    chats = [
        replace(asked("A", small, other), title="One", draft_attachments=(draft,)),
        replace(asked("B", small), title="Two"),
    ]
    path = tmp_path / "all.json"

    export(path, map(filed, chats), files)
    back, unreadable = found(path, into=imported)

    assert unreadable == []
    assert back == list(map(filed, chats))
    for name, content in all_files(files).items():
        assert all_files(imported)[name] == content
    values = json.loads(path.read_text())
    originals = [one["original"] for one in values if one["format"] == "rejoinder-picture"]
    assert len(originals) == len(set(originals)) == 3


def test_picture_of_a_deleted_message_is_not_exported(
    tmp_path: Path, extractor: Extractor, files: PictureFiles
) -> None:
    conv = asked("A", attached(extractor, files, PNG))
    writer = ConversationWriter("B")
    writer.send("Kept")
    deleted = {key: replace(node, deleted_at=1.0) for key, node in conv.nodes.items()}
    gone = replace(conv, nodes=deleted, children={}, shown={})
    path = tmp_path / "all.json"

    export(path, [filed(gone), filed(writer.conv)], files)

    assert all(one["format"] != "rejoinder-picture" for one in json.loads(path.read_text()))


def test_exported_chats_are_imported_into_the_store_once(
    tmp_path: Path, extractor: Extractor, files: PictureFiles, imported: PictureFiles
) -> None:
    conv = asked("A", attached(extractor, files, PNG))
    path = tmp_path / "all.json"
    export(path, [filed(conv)], files)

    with closing(open_store(tmp_path / "chats.db", now=0.0).store) as store:
        for expected in (Merged.ADDED, Merged.PRESENT):
            ((chat,), _) = found(path, into=imported)
            assert merge(store, chat) is expected
        loaded = store.load(ConversationId(conv.conversation_id))
        assert store.picture_digests() >= {of_first(chat)[0].digest}

    assert loaded.nodes == conv.nodes


def test_older_rejoinder_finds_the_chats_in_an_export_with_pictures(
    tmp_path: Path, extractor: Extractor, files: PictureFiles
) -> None:
    path = tmp_path / "all.json"
    export(path, [filed(asked("A", attached(extractor, files, PNG)))], files)

    values = json.loads(path.read_text())

    # It ignores objects of another format, and fields that it does not know.
    (chat,) = (one for one in values if one["format"] == "rejoinder-conversation")
    assert chat["version"] == 1
    assert chat["messages"][0]["attachments"][0]["name"] == "photo.jpg"


def own(folder: Path, *pictures: dict[str, object], stated: Attachment) -> Path:
    """Write an export by hand: objects of pictures, and a chat that has one picture."""
    path = folder / "export.json"
    export(path, [filed(asked("A", stated))], PictureFiles(folder / "none"))
    (chat,) = json.loads(path.read_text())
    path.write_text(json.dumps([*pictures, chat]))
    return path


def as_object(original: str, content: bytes, **more: object) -> dict[str, object]:
    fields = {"format": "rejoinder-picture", "version": 1, "original": original}
    return {**fields, "data": data_url(content), **more}


def bomb() -> bytes:
    """Return a PNG file that states 30,000 x 30,000 pixels."""
    header = struct.pack(">IIBBBBB", 30_000, 30_000, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    return PNG[:8] + struct.pack(">I", 13) + chunk + struct.pack(">I", zlib.crc32(chunk)) + PNG[33:]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"no picture", "image"),
        (b"<svg onload='x'/>\0", "image"),
        (PNG[:60], "damaged"),
        (bomb(), "picture_too_large"),
    ],
)
def test_picture_that_cannot_be_decoded_is_noted_and_the_message_keeps_text_and_name(
    tmp_path: Path,
    extractor: Extractor,
    files: PictureFiles,
    imported: PictureFiles,
    content: bytes,
    why: str,
) -> None:
    stated = attached(extractor, files, PNG)
    assert stated.picture is not None
    path = own(tmp_path, as_object(stated.picture.original, content), stated=stated)

    (chat,), unreadable = found(path, into=imported)

    first = shown_path(chat.conversation)[0]
    assert first.content == "What is this?"
    (file,) = first.attachments
    assert (file.name, file.picture) == ("photo.jpg", None)
    assert attachment_words.LOST_PICTURE in prompt_text((file,), "").content
    assert unreadable == [
        f"{chat.conversation.title}: {attachment_words.refused('photo.jpg', why)}"
    ]
    assert all_files(imported) == {}


@pytest.mark.parametrize(
    "objects",
    [
        [],
        [{"format": "rejoinder-picture"}],
        [{"format": "rejoinder-picture", "original": 5, "data": ""}],
        [
            {
                "format": "rejoinder-picture",
                "original": "../../x",
                "data": "data:image/png;base64,AAAA",
            }
        ],
        [
            {
                "format": "rejoinder-picture",
                "original": "x",
                "data": "data:image/png;base64,é",
                "size": "small",
            }
        ],
    ],
)
def test_picture_that_is_not_in_the_file_is_noted_by_its_name(
    tmp_path: Path,
    extractor: Extractor,
    files: PictureFiles,
    imported: PictureFiles,
    objects: list[dict[str, object]],
) -> None:
    path = own(tmp_path, *objects, stated=attached(extractor, files, PNG))

    (chat,), unreadable = found(path, into=imported)

    assert of_first(chat)[0].picture is None
    assert unreadable == [f"{chat.conversation.title}: “photo.jpg” is not in the file."]


def test_values_that_an_export_states_are_replaced_by_computed_ones(
    tmp_path: Path, extractor: Extractor, files: PictureFiles, imported: PictureFiles
) -> None:
    expected = attached(extractor, files, with_metadata("JPEG")).picture
    lie = "ab" * 32
    stated = replace(
        attached(extractor, files, PNG),
        picture=AttachedPicture(
            original=lie,
            extension="webp",
            width=7,
            height=9,
            size=PictureSize.FULL,
            view=Picture(digest=lie, width=5, height=5),
        ),
    )
    path = own(tmp_path, as_object(lie, with_metadata("JPEG")), stated=stated)

    (chat,), unreadable = found(path, into=imported)

    (file,) = of_first(chat)
    assert unreadable == []
    assert file.picture == expected
    assert file.digest == (expected and expected.view.digest)
    assert has_files(imported, file.picture)
    stored = b"".join(all_files(imported).values())
    assert not any(secret in stored for secret in SECRETS)
    assert lie not in "".join(all_files(imported))


def test_object_of_a_picture_may_be_larger_than_that_of_a_chat(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    extractor: Extractor,
    files: PictureFiles,
) -> None:
    picture = attached(extractor, files, saved(scene(900, 700), "PNG"))
    path = tmp_path / "all.json"
    export(path, [filed(asked("A", picture))], files)
    monkeypatch.setattr(reading, "MAX_VALUE_CHARS", 3000)
    monkeypatch.setattr(reading, "_CHUNK", 100)

    with path.open() as stream:
        values = [cast("dict[str, Any]", one) for one in reading.json_values(stream)]

    assert [one["format"] for one in values] == ["rejoinder-picture", "rejoinder-conversation"]
    assert len(values[0]["data"]) > 3000
    monkeypatch.setattr(reading, "MAX_CHARS_WITH_PICTURES", 3000)
    with path.open() as stream, pytest.raises(reading.UnreadableError):
        list(reading.json_values(stream))


@pytest.mark.parametrize(
    ("values", "is_read"),
    [
        (["data:image/png;base64," + "A" * 5000], True),
        (["data:image/png;base64," + "A" * 5000, "x" * 2900], True),
        (["data:image/png;base64," + "A" * 5000, "x" * 8000], False),
        (["data:image/png;base64," + "A" * 20_000], False),
        (["data:text/plain," + "A" * 5000], False),
        (["x data:image/png;base64," + "A" * 5000], False),
        (["data:image/"] * 400, False),
    ],
)
def test_only_data_urls_of_pictures_make_a_value_larger(
    monkeypatch: pytest.MonkeyPatch, values: list[str], *, is_read: bool
) -> None:
    monkeypatch.setattr(reading, "MAX_VALUE_CHARS", 3000)
    monkeypatch.setattr(reading, "MAX_CHARS_WITH_PICTURES", 15_000)
    monkeypatch.setattr(reading, "_CHUNK", 100)
    text = json.dumps([{"values": values}])

    if is_read:
        assert list(reading.json_values(io.StringIO(text))) == [{"values": values}]
    else:
        with pytest.raises(reading.UnreadableError):
            list(reading.json_values(io.StringIO(text)))


@pytest.mark.parametrize("kind", ["own", "chatgpt", "open_webui"])
@pytest.mark.parametrize("seed", range(5))
def test_damaged_export_with_pictures_gives_conversations_or_sentences(
    tmp_path: Path,
    extractor: Extractor,
    files: PictureFiles,
    imported: PictureFiles,
    kind: str,
    seed: int,
) -> None:
    path = tmp_path / ("export.zip" if kind == "chatgpt" else "export.json")
    if kind == "own":
        export(path, [filed(asked("A", attached(extractor, files, PNG)))], files)
    elif kind == "open_webui":
        path.write_text(json.dumps(open_webui_with({"type": "image", "url": data_url(PNG)})))
    else:
        value = json.dumps(chatgpt_with("file-service://file-1"))
        path.write_bytes(zipped({"conversations.json": value, "file-1.dat": PNG}))
    chance = random.Random(f"{kind} {seed}")
    data = bytearray(path.read_bytes())
    for _ in range(chance.randrange(1, 9)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data)

    chats, unreadable = found(path, into=imported)

    assert chats or unreadable
    assert all(line.endswith(".") for line in unreadable)
    for chat in chats:
        for node in chat.conversation.nodes.values():
            for file in node.attachments:
                assert file.text or has_files(imported, file.picture)


def test_missing_file_of_a_picture_leaves_the_chat_in_the_export(
    tmp_path: Path, extractor: Extractor, files: PictureFiles, imported: PictureFiles
) -> None:
    picture = attached(extractor, files, PNG)
    assert picture.picture is not None
    files.original(picture.picture).unlink()
    path = tmp_path / "all.json"

    assert export(path, [filed(asked("A", picture))], files) == 1

    _, unreadable = found(path, into=imported)
    assert len(unreadable) == 1


def test_page_has_the_thumbnail_and_other_texts_the_name(
    tmp_path: Path, extractor: Extractor, files: PictureFiles
) -> None:
    name = '"><script>.png'
    picture = attached(extractor, files, PNG, name=name)
    assert picture.picture is not None
    paths = {ending: tmp_path / f"chat.{ending}" for ending in ("html", "md", "txt")}
    for path in paths.values():
        export(path, [filed(asked("A", picture))], files)

    page = paths["html"].read_text()
    thumbnail = base64.b64encode(files.thumbnail(picture.picture).read_bytes()).decode()
    alt = "&quot;&gt;&lt;script&gt;.png"
    assert f'<img src="data:image/png;base64,{thumbnail}" alt="{alt}">' in page
    assert "img-src data:" in page
    assert "<script>" not in page
    assert f"[{name}]" in paths["md"].read_text()
    assert f"[{name}]" in paths["txt"].read_text()

    files.thumbnail(picture.picture).unlink()
    export(paths["html"], [filed(asked("A", picture))], files)
    page = paths["html"].read_text()
    assert "<img" not in page
    assert f"[{alt}]" in page


def test_full_disk_ends_the_import_with_a_sentence(
    tmp_path: Path, extractor: Extractor, files: PictureFiles
) -> None:
    path = tmp_path / "all.json"
    export(path, [filed(asked("A", attached(extractor, files, PNG)))], files)
    (tmp_path / "blocked").write_text("a file where the folder must be")

    with pytest.raises(DiskError, match="cannot be written"):
        found(path, into=PictureFiles(tmp_path / "blocked" / "pictures"))


def test_stopped_import_reports_no_lost_picture(
    tmp_path: Path,
    extractor: Extractor,
    files: PictureFiles,
    imported: PictureFiles,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Ends its processes, so it cannot use those of the other tests.
    monkeypatch.setattr(isolated, "ChildProcess", ChildProcess)
    monkeypatch.setattr(isolated, "Extractor", Extractor)
    path = tmp_path / "all.json"
    content = saved(scene(900, 700), "JPEG")
    # The view of the second picture is made when its conversation is read: by then the process has ended.
    medium, small = (attached(extractor, files, content, size) for size in SIZES)
    export(path, [filed(asked("A", medium)), filed(asked("B", small))], files)
    work = IsolatedImport([path], imported, now=5.0)
    items = work.found()
    next(items)

    work.stop()

    assert not list(items)


# Exports of other apps.


def chatgpt_with(
    *pointers: str, attachments: tuple[dict[str, str], ...] = (), role: str = "user"
) -> list[Any]:
    export = cast("list[Any]", chatgpt())
    message = export[0]["mapping"]["q2"]["message"]
    parts = [
        {"content_type": "image_asset_pointer", "asset_pointer": pointer, "width": 64}
        for pointer in pointers
    ]
    message["content"] = {"content_type": "multimodal_text", "parts": [*parts, "Two?"]}
    message["metadata"] = {"attachments": list(attachments)}
    message["author"]["role"] = role
    return export


def second(chat: FiledConversation) -> tuple[tuple[Attachment, ...], str]:
    """Return the pictures and the text of the second question."""
    node = shown_path(chat.conversation)[2]
    return node.attachments, node.content


@pytest.mark.parametrize(
    ("pointer", "name"),
    [
        # Exports up to 2025: the id, then the name of the file.
        ("file-service://file-Ab12", "file-Ab12-my photo.png"),
        ("sediment://file_0000a1", "user-xyz/file_0000a1-c7f1.png"),
        ("sediment://file_0000a1", "file_0000a1-sanitized.jpeg"),
        # Exports of 2026: the id, with the names in conversation_asset_file_names.json.
        ("file-service://file-Ab12", "file-Ab12.dat"),
        ("sediment://file_0000a1", "file_0000a1.dat"),
    ],
)
@pytest.mark.parametrize("in_archive", [True, False])
def test_picture_of_chatgpt_is_found_by_its_id(
    tmp_path: Path, imported: PictureFiles, pointer: str, name: str, *, in_archive: bool
) -> None:
    file_id = pointer.rpartition("/")[2]
    value = chatgpt_with(pointer, attachments=({"id": file_id, "name": "my photo.png"},))
    content: dict[str, str | bytes] = {
        "conversations-000.json": json.dumps(value),
        "conversation_asset_file_names.json": json.dumps({f"{file_id}.dat": "my photo.png"}),
        name: PNG,
        "file-Ab129-other.png": b"another file",
    }
    path = tmp_path / ("export.zip" if in_archive else "export")
    if in_archive:
        path.write_bytes(zipped(content))
    else:
        for one, data in content.items():
            (path / one).parent.mkdir(parents=True, exist_ok=True)
            (path / one).write_bytes(data.encode() if isinstance(data, str) else data)

    (chat,), unreadable = found(path, into=imported)

    (picture,), text = second(chat)
    assert unreadable == []
    assert (picture.name, text) == ("my photo.png", "Two?")
    assert has_files(imported, picture.picture)


def test_pictures_of_chatgpt_that_are_not_there_become_their_names(
    tmp_path: Path, imported: PictureFiles
) -> None:
    value = chatgpt_with(
        "file-service://file-1",
        "sediment://file_2#p_0.jpg",
        "../../etc/passwd",
        attachments=({"id": "file-1", "name": "cat.png"},),
    )
    path = tmp_path / "export.zip"
    path.write_bytes(zipped({"conversations.json": json.dumps(value), "file_2.dat": PNG}))

    (chat,), unreadable = found(path, into=imported)

    assert unreadable == []
    assert second(chat) == (
        (),
        f"(The picture “cat.png” was here.)\n\n{words.NO_TEXT}\n\n{words.NO_TEXT}\n\nTwo?",
    )


def test_picture_in_an_answer_becomes_text(tmp_path: Path, imported: PictureFiles) -> None:
    value = chatgpt_with("file-service://file-1", role="assistant")
    path = tmp_path / "export.zip"
    path.write_bytes(zipped({"conversations.json": json.dumps(value), "file-1.dat": PNG}))

    (chat,), _ = found(path, into=imported)

    assert words.NO_TEXT in shown_path(chat.conversation)[-1].content
    assert all_files(imported) == {}


def test_damaged_picture_in_an_archive_is_noted(tmp_path: Path, imported: PictureFiles) -> None:
    value = chatgpt_with("file-service://file-1")
    path = tmp_path / "export.zip"
    path.write_bytes(zipped({"conversations.json": json.dumps(value), "file-1.dat": b"\x89PNG\0"}))

    (chat,), unreadable = found(path, into=imported)

    (picture,), text = second(chat)
    assert (picture.name, picture.picture, text) == ("Picture", None, "Two?")
    assert unreadable == [f"Numbers: {attachment_words.refused('Picture', 'damaged')}"]


def unreadable_in(path: Path) -> list[str]:
    """Import in this process, whose limits a test has changed. Return what could not be read."""
    return [
        f"{one.name}: {one.reason}"
        for one in Import([path], now=5.0).found()
        if isinstance(one, Unreadable)
    ]


def test_picture_that_unpacks_to_too_much_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "MAX_PICTURE_BYTES", 100_000)
    value = chatgpt_with("file-service://file-1")
    path = tmp_path / "bomb.zip"
    big = b"\x89PNG\r\n\x1a\n" + bytes(5_000_000)
    path.write_bytes(zipped({"conversations.json": json.dumps(value), "file-1.dat": big}))

    assert path.stat().st_size < 50_000
    assert unreadable_in(path) == [f"file-1: {words.PICTURE_TOO_LARGE}"]


def test_too_many_pictures_are_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_pictures, "MAX_PICTURES", 2)
    value = chatgpt_with(*(f"file-service://file-{number}" for number in range(5)))
    path = tmp_path / "many.zip"
    pictures: dict[str, str | bytes] = {
        f"file-{number}.dat": saved(scene(seed=number), "PNG") for number in range(5)
    }
    path.write_bytes(zipped({"a.json": json.dumps(value), "b.json": json.dumps(value), **pictures}))

    assert unreadable_in(path) == [f"many.zip/a.json: {words.TOO_MANY_PICTURES}"]


def test_picture_alone_is_a_message(tmp_path: Path, imported: PictureFiles) -> None:
    value = chatgpt_with("file-service://file-1")
    value[0]["mapping"]["q2"]["message"]["content"]["parts"].pop()
    path = tmp_path / "export.zip"
    path.write_bytes(zipped({"conversations.json": json.dumps(value), "file-1.dat": PNG}))

    (chat,), _ = found(path, into=imported)

    (picture,), text = second(chat)
    assert has_files(imported, picture.picture)
    assert text == ""


def test_message_gets_no_more_pictures_than_it_can_have(
    tmp_path: Path, imported: PictureFiles
) -> None:
    value = chatgpt_with(*["file-service://file-1"] * 80)
    path = tmp_path / "export.zip"
    path.write_bytes(zipped({"conversations.json": json.dumps(value), "file-1.dat": PNG}))

    (chat,), unreadable = found(path, into=imported)

    assert unreadable == []
    assert len(second(chat)[0]) == 50


def open_webui_with(*files: object, **more: object) -> list[Any]:
    export = cast("list[Any]", EXPORTS["open_webui"]())
    export[0]["chat"]["history"]["messages"]["q2"] |= {"files": list(files), **more}
    return export


def data_url(content: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


@pytest.mark.parametrize(
    "fields",
    [
        {"files": [{"type": "image", "url": data_url(PNG), "name": "Picture"}]},
        {"files": [{"type": "image", "url": data_url(PNG)}]},
        {"images": [base64.b64encode(PNG).decode()]},
        {"images": [data_url(PNG)]},
        {"content": [{"type": "image_url", "image_url": {"url": data_url(PNG)}}, "Two?"]},
    ],
)
def test_picture_in_the_url_of_open_webui_is_imported(
    tmp_path: Path, imported: PictureFiles, fields: dict[str, object]
) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(open_webui_with(**fields)))

    (chat,), unreadable = found(path, into=imported)

    (picture,), text = second(chat)
    assert unreadable == []
    assert (picture.name, text) == ("Picture", "Two?")
    assert has_files(imported, picture.picture)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ({"type": "image", "url": "/api/v1/files/1/content"}, words.NO_TEXT),
        ({"type": "image", "url": "https://host/x.png", "name": "x.png"}, None),
        ({"type": "file", "url": "1", "name": "x.png", "content_type": "image/png"}, None),
        ({"type": "image", "url": "data:image/png,abc", "name": "x.png"}, None),
        ({"type": "image", "url": "data:image/png;base64,", "name": "x.png"}, None),
        ({"type": "image", "url": {"a": 1}, "name": "x.png"}, None),
    ],
)
def test_picture_on_the_server_of_open_webui_becomes_its_name(
    tmp_path: Path, imported: PictureFiles, file: dict[str, object], text: str | None
) -> None:
    path = tmp_path / "export.json"
    path.write_text(json.dumps(open_webui_with(file)))

    (chat,), unreadable = found(path, into=imported)

    assert unreadable == []
    expected = text or "(The picture “x.png” was here.)"
    assert second(chat) == ((), f"{expected}\n\nTwo?")


def lm_studio_with(identifier: object) -> dict[str, Any]:
    export = cast("dict[str, Any]", EXPORTS["lm_studio"]())
    part = {"type": "file", "fileType": "image", "fileIdentifier": identifier, "sizeBytes": 7}
    export["messages"][2]["versions"][0]["content"].insert(0, part)
    return export


IDENTIFIER = "1784921393420 - 431.png"


@pytest.mark.parametrize("chosen", [".", "conversations", "conversations/Work/1.conversation.json"])
def test_picture_of_lm_studio_is_found_beside_its_conversations(
    tmp_path: Path, imported: PictureFiles, chosen: str
) -> None:
    home = tmp_path / "lmstudio"
    chats, pictures = home / "conversations" / "Work", home / "user-files"
    chats.mkdir(parents=True)
    pictures.mkdir()
    (chats / "1.conversation.json").write_text(json.dumps(lm_studio_with(IDENTIFIER)))
    (pictures / IDENTIFIER).write_bytes(PNG)
    (pictures / f"{IDENTIFIER}.metadata.json").write_text('{"type": "image"}')

    (chat,), unreadable = found(home / chosen, into=imported)

    (picture,), text = second(chat)
    assert unreadable == []
    assert (picture.name, text) == (IDENTIFIER, "Two?")
    assert has_files(imported, picture.picture)


@pytest.mark.parametrize("identifier", ["../../secret.png", "secret.png", "", 5, "link.png"])
def test_name_of_lm_studio_leads_to_no_other_folder(
    tmp_path: Path, imported: PictureFiles, identifier: object
) -> None:
    home = tmp_path / "lmstudio"
    (home / "conversations").mkdir(parents=True)
    (home / "user-files").mkdir()
    (tmp_path / "secret.png").write_bytes(PNG)
    (home / "user-files" / "link.png").symlink_to(tmp_path / "secret.png")
    path = home / "conversations" / "1.conversation.json"
    path.write_text(json.dumps(lm_studio_with(identifier)))

    (chat,), unreadable = found(path, into=imported)

    assert unreadable == []
    pictures, text = second(chat)
    assert pictures == ()
    assert text.endswith("Two?")
    assert "was here" in text


def test_version_of_a_message_has_the_pictures_of_the_messages_that_it_joins(
    tmp_path: Path, imported: PictureFiles
) -> None:
    value = open_webui_with({"type": "image", "url": data_url(PNG)})
    messages = value[0]["chat"]["history"]["messages"]
    messages["q2"]["childrenIds"] = ["q3", "q4"]
    for key in ("q3", "q4"):
        messages[key] = {"id": key, "parentId": "q2", "role": "user", "content": key}
    path = tmp_path / "export.json"
    path.write_text(json.dumps(value))

    (chat,), _ = found(path, into=imported)

    nodes = chat.conversation.nodes.values()
    versions = [node for node in nodes if node.content.startswith("Two?\n\nq")]
    assert [len(node.attachments) for node in versions] == [1, 1]
