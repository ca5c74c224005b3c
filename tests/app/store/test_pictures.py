"""The files of attached pictures: stored once, private, and removed when nothing names them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from app.conversation.attachments import (
    PICTURE_AREAS,
    AttachedPicture,
    PictureContent,
    PictureSize,
    size_for,
    view_size,
)
from app.store.backups import FOLDER, make_backup, pictures_in_backups
from app.store.conversations import open_store
from app.store.pictures import REMOVED_KEPT_S, UNUSED_KEPT_S, PictureFiles
from engine.types import ConversationId, Picture
from tests.app.store.picture_writer import content_of, picture_of
from tests.app.store.test_attachments import digests, photo, sent, with_draft
from tests.app.store.test_schema import make_format

NOON = 1_760_011_200.0
ROOT = Path(__file__).parents[3]
WRITER = Path(__file__).with_name("picture_writer.py")
CONTENT = PictureContent(b"original", b"view", b"thumbnail")


@pytest.fixture
def files(tmp_path: Path) -> PictureFiles:
    return PictureFiles(tmp_path / "pictures")


def picture(number: int, size: PictureSize = PictureSize.MEDIUM) -> AttachedPicture:
    found = photo(number, size).picture
    assert found is not None
    return found


def age(files: PictureFiles, seconds: float = UNUSED_KEPT_S + 60) -> None:
    """Let all files be older."""
    for path in files.folder.iterdir():
        then = path.stat().st_mtime - seconds
        os.utime(path, (then, then))


def test_files_of_a_picture_are_whole_private_and_stored_once(files: PictureFiles) -> None:
    assert files.total_bytes() == 0
    files.add(picture(1), CONTENT)
    written = files.original(picture(1)).stat().st_ino
    files.add(picture(1), CONTENT)

    paths = (
        files.original(picture(1)),
        files.view(picture(1).view),
        files.thumbnail(picture(1)),
    )
    assert [path.read_bytes() for path in paths] == [b"original", b"view", b"thumbnail"]
    assert set(files.folder.iterdir()) == set(paths)
    assert paths[0].stat().st_ino == written
    assert {stat.S_IMODE(path.stat().st_mode) for path in paths} == {0o600}
    assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700
    assert files.total_bytes() == len(b"originalviewthumbnail")


@pytest.mark.parametrize("damage", [b"", b"Original", b"original and more"])
def test_damaged_file_is_written_again(files: PictureFiles, damage: bytes) -> None:
    files.add(picture(1), CONTENT)
    files.original(picture(1)).write_bytes(damage)
    files.add(picture(1), CONTENT)
    assert files.original(picture(1)).read_bytes() == b"original"


def test_threads_can_add_the_same_picture(files: PictureFiles) -> None:
    threads = [threading.Thread(target=files.add, args=(picture(1), CONTENT)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(list(files.folder.iterdir())) == 3
    assert files.original(picture(1)).read_bytes() == b"original"


def test_other_size_gets_its_own_view_and_the_first_one_stays(files: PictureFiles) -> None:
    files.add(picture(1), CONTENT)
    large = AttachedPicture(
        original=picture(1).original,
        extension="jpg",
        width=4000,
        height=3000,
        size=PictureSize.MEDIUM,
        view=picture(1).view,
    )
    view = picture(1, PictureSize.SMALL).view
    asked: list[tuple[Path, PictureSize]] = []

    def make_view(path: Path, size: PictureSize) -> tuple[Picture, bytes]:
        asked.append((path, size))
        return view, b"small"

    small = files.resized(large, PictureSize.SMALL, make_view)

    assert asked == [(files.original(large), PictureSize.SMALL)]
    assert (small.size, small.view) == (PictureSize.SMALL, view)
    assert files.view(view).read_bytes() == b"small"
    assert files.view(large.view).exists()


def test_size_with_the_same_view_makes_no_new_one(files: PictureFiles) -> None:
    small = AttachedPicture(
        original=picture(1).original,
        extension="jpg",
        width=40,
        height=30,
        size=PictureSize.FULL,
        view=picture(1).view,
    )
    files.add(small, CONTENT)

    def make_view(_path: Path, _size: PictureSize) -> tuple[Picture, bytes]:
        raise AssertionError

    found = files.resized(small, PictureSize.SMALL, make_view)

    assert (found.size, found.view) == (PictureSize.SMALL, small.view)


def test_unused_files_are_removed_after_an_hour_and_others_stay(files: PictureFiles) -> None:
    for number in (1, 2):
        files.add(picture(number), CONTENT)
    part = files.folder / f"{picture(3).original}.jpg.part"
    part.write_bytes(b"cut")
    other = files.folder / "notes.txt"
    other.write_bytes(b"not ours")
    used = digests(photo(1))

    assert files.remove_unused(used) == 0, "they may not be saved yet"
    age(files)
    assert files.remove_unused(used, among={"0" * 64}) == 0
    assert files.remove_unused(used) == 4
    assert set(files.folder.iterdir()) == {
        files.original(picture(1)),
        files.view(picture(1).view),
        files.thumbnail(picture(1)),
        other,
    }


def test_picture_that_is_attached_again_is_as_young_as_a_new_one(files: PictureFiles) -> None:
    files.add(picture(1), CONTENT)
    age(files)
    files.add(picture(1), CONTENT)

    assert files.remove_unused(frozenset()) == 0
    assert files.remove_unused(frozenset(), now=time.time() + 2 * UNUSED_KEPT_S) == 3


def test_pictures_of_a_removed_chat_go_although_they_are_new(files: PictureFiles) -> None:
    files.add(picture(1), CONTENT)
    files.add(picture(2), CONTENT)
    age(files, REMOVED_KEPT_S + 5)
    files.add(picture(2), CONTENT)  # a draft gets it again
    gone = {one.original for one in (picture(1), picture(2))}

    assert files.remove_unused(frozenset(), among=gone) > 0

    assert not files.original(picture(1)).exists()
    assert files.original(picture(2)).exists()


def test_pictures_of_backups_are_known_and_unknown_if_one_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "conversations.db"
    assert pictures_in_backups(path) == frozenset()
    with closing(open_store(path, now=NOON).store) as store:
        store.create(sent(with_draft("A", photo(1))))
        make_backup(path, now=NOON, stop=Event())
        store.delete(ConversationId("A"), now=NOON)
        store.remove(ConversationId("A"))
        assert store.picture_digests() == frozenset()

    assert pictures_in_backups(path) == digests(photo(1))
    (tmp_path / FOLDER / "conversations-2025-10-08.db").write_bytes(b"\xa5" * 5000)
    assert pictures_in_backups(path) is None


def test_backup_of_an_older_format_has_no_pictures(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    for number in (7, 16, 17):
        make_format(tmp_path / FOLDER / f"conversations-2025-10-{number:02d}.db", number)

    found = pictures_in_backups(tmp_path / "conversations.db")

    assert found == {digit * 32 for digit in ("1a", "2b", "3c", "4d")}


@pytest.mark.parametrize("num_pictures", [1, 7, 30])
def test_killed_app_has_the_files_of_every_stored_draft(tmp_path: Path, num_pictures: int) -> None:
    with subprocess.Popen(
        [sys.executable, WRITER, tmp_path],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as writer:
        assert writer.stdout is not None
        reports = [writer.stdout.readline() for _ in range(num_pictures)]
        writer.kill()  # it writes without a pause, so the kill interrupts a write
        reports += writer.stdout.readlines()
    files = PictureFiles(tmp_path / "pictures")
    with closing(open_store(tmp_path / "conversations.db", now=0.0).store) as store:
        drafts = [store.load(one.conversation_id).draft_attachments for one in store.summaries()]
        assert len(drafts) >= len([line for line in reports if line.endswith("\n")])
        assert {file.picture for (file,) in drafts} == set(map(picture_of, range(len(drafts))))
        files.remove_unused(store.picture_digests(), now=time.time() + 2 * UNUSED_KEPT_S)
    assert len(list(files.folder.iterdir())) == 3 * len(drafts)
    for number in range(len(drafts)):
        picture, content = picture_of(number), content_of(number)
        assert files.original(picture).read_bytes() == content.original
        assert files.view(picture.view).read_bytes() == content.view
        assert files.thumbnail(picture).read_bytes() == content.thumbnail


@pytest.mark.parametrize("size", PictureSize)
@pytest.mark.parametrize(
    ("width", "height"),
    [(4032, 3024), (3024, 4032), (30_000, 3), (1, 30_000), (30_000, 3_333), (640, 480), (1, 1)],
)
def test_view_fits_its_area_and_is_never_larger(width: int, height: int, size: PictureSize) -> None:
    found = view_size(width, height, size)

    assert 1 <= found[0] <= width
    assert 1 <= found[1] <= height
    assert found[0] * found[1] <= PICTURE_AREAS[size]
    if width * height <= PICTURE_AREAS[size]:
        assert found == (width, height)
        assert size_for(width, height, size) is PictureSize.FULL
    else:
        assert size_for(width, height, size) is size
