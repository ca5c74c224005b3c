from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.conversation.attachments import AttachedPicture, PictureSize, make_attachment
from app.conversation.folder import Folder, FolderColor, FolderDocument
from app.conversation.folding import search_text
from app.conversation.placement import NO_PLACE, FolderId, Placement
from app.conversation.preset import Preset
from app.conversation.tree import DraftEdit, MessageStatus, NodeId, Setup, shown_path
from app.store.conversations import open_store
from app.store.database import Database
from app.store.opening import migrate
from app.store.schema import MIGRATIONS
from engine.types import ConversationId, Picture
from tests.fakes.conversations import GENERATION, USAGE

FORMATS = Path(__file__).parent / "formats"
# The expected usage: the migration drops reasons, which format 1 stored as internal words of the
# engine.
# Stored reasons name their messages since format 15.
_NAMELESS = tuple(replace(reason, message=None) for reason in USAGE.plan.reasons)
WITH_REASONS = replace(USAGE, plan=replace(USAGE.plan, reasons=_NAMELESS))
WITHOUT_REASONS = replace(USAGE, plan=replace(USAGE.plan, reasons=()))
PHOTO = AttachedPicture(
    original="1a" * 32,
    extension="jpg",
    width=4032,
    height=3024,
    size=PictureSize.MEDIUM,
    view=Picture(digest="2b" * 32, width=1280, height=960),
)
SCREENSHOT = AttachedPicture(
    original="3c" * 32,
    extension="png",
    width=20,
    height=10,
    size=PictureSize.FULL,
    view=Picture(digest="4d" * 32, width=20, height=10),
)

RULES = FolderDocument(
    attachment=make_attachment("rules.txt", "text", "The rules.", source="/tmp/rules.txt"),
    size=10,
    modified_at=2.5,
)


def make_format(path: Path, number: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.create_function("search_text", 1, search_text, deterministic=True)
        connection.executescript((FORMATS / f"v{number}.sql").read_text())


@pytest.mark.parametrize("number", range(1, len(MIGRATIONS) + 1))
def test_a_database_of_every_format_opens(tmp_path: Path, number: int) -> None:
    path = tmp_path / "conversations.db"
    make_format(path, number)

    with closing(open_store(path, now=0.0).store) as store:
        conv = store.load(ConversationId("A"))
        presets = store.presets.load()
        (summary,) = store.summaries()
        folders = store.folders.load()
        unseen = store.unseen.load()

    conv.check_invariants()
    path_shown = shown_path(conv)
    assert [node.content for node in path_shown] == [
        "one",
        "1",
        "two",
        "2",
        "three",
        "",
        "four",
        "",
    ]
    assert path_shown[-1].status is MessageStatus.STOPPED, (
        "the last reply was streaming in the stored database"
    )
    reply = path_shown[3]
    assert reply.reply is not None
    assert reply.reply.token_ids == (5, 300, 4_000_000_000)
    assert reply.generation is not None
    usage = WITH_REASONS if number > 1 else WITHOUT_REASONS
    usage = replace(usage, saved_ms=USAGE.saved_ms if number >= 15 else 0.0)
    drafts = {"passes": 2, "drafted_tokens": 3, "accepted_tokens": 1} if number >= 4 else {}
    usage = replace(usage, **drafts)
    if number >= 6:
        plan = replace(usage.plan, restored_disk=2)
        usage = replace(usage, plan=plan, disk_ms=1.5, written_bytes=900)
    assert reply.generation.usage == usage
    assert reply.generation.sampling == GENERATION.sampling
    assert path_shown[5].problem is not None
    assert conv.setup == Setup(temperature=0.5, max_tokens=9, thinking=False)
    assert (conv.title, conv.draft, conv.read_system_prompt) == ("By hand", "five", "Be brief.")
    assert conv.keep_ready is (number >= 2)
    teacher = Preset(
        name="Teacher", system_prompt="Be patient.", setup=Setup(temperature=0.5, max_tokens=9)
    )
    assert presets.by_name == ({"Teacher": teacher} if number >= 3 else {})
    assert presets.by_model == ({"/models/tiny": "Teacher"} if number >= 3 else {})
    work = Folder(
        folder_id=FolderId("F"),
        name="Work",
        color=FolderColor.BLUE,
        created_at=1.0,
        system_prompt="Be exact.",
        preset="Teacher",
        documents=(RULES,) if number >= 18 else (),
    )
    place = Placement(pinned=True, folder_id=work.folder_id)
    assert (summary.placement, folders) == ((place, (work,)) if number >= 7 else (NO_PLACE, ()))
    files = [(one.name, one.text, one.picture) for one in path_shown[0].attachments]
    assert files == [
        *([("first.txt", "The first file.", None)] if number >= 8 else []),
        *([("photo.jpg", "", PHOTO)] if number >= 17 else []),
    ]
    from_folder = [one.name for one in path_shown[0].attachments if one.from_folder]
    assert from_folder == (["first.txt"] if number >= 18 else [])
    assert conv.without_documents is (number >= 18)
    assert conv.chosen_model == ("/models/other" if number >= 19 else "")
    drafts_of = [(one.name, one.num_pages, one.part, one.picture) for one in conv.draft_attachments]
    assert drafts_of == [
        *([("draft.pdf", 3, "Page 2", None)] if number >= 8 else []),
        *([("Screenshot.png", None, "", SCREENSHOT)] if number >= 17 else []),
    ]
    edits = (DraftEdit(NodeId("A3u"), "two and a half"),)
    assert conv.draft_edits == (edits if number >= 16 else ())
    gone = conv.nodes.get(NodeId("A6r"))
    assert (gone and gone.deleted_at) == (6.5 if number >= 3 else None)
    assert unseen == {"A"}, "the last reply was cut off"
    assert path_shown[0].chat_title == ("Counting" if number >= 12 else "")


def test_migration_accepts_an_unreadable_generation(tmp_path: Path) -> None:
    path = tmp_path / "conversations.db"
    make_format(path, 1)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE messages SET generation = '{' WHERE finish_reason = 'stop'")
        connection.commit()

    with closing(open_store(path, now=0.0).store) as store:
        reply = shown_path(store.load(ConversationId("A")))[3]

    assert (reply.content, reply.generation) == ("2", None)


@pytest.mark.parametrize("number", range(1, len(MIGRATIONS) + 1))
def test_released_migrations_still_make_the_same_tables(tmp_path: Path, number: int) -> None:
    then = tmp_path / "then.db"
    make_format(then, number)
    with closing(Database(tmp_path / "now.db", busy_timeout_s=0.0)) as now:
        migrate(now, MIGRATIONS[:number], since=0)

    assert _tables(tmp_path / "now.db") == _tables(then)


def _tables(path: Path) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL")
        return sorted((name, " ".join(sql.split())) for name, sql in rows)
