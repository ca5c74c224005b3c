from __future__ import annotations

import contextlib
import errno
import json
import os
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from app.stopping import StoppedError
from app.store import place as module
from app.store.backups import backups_of, make_backup
from app.store.errors import AlreadyRunningError, DatabaseFileError, DatabaseFullError
from app.store.place import DataPlace
from tests.app.store.picture_writer import content_of, picture_of
from tests.fakes.conversations import ConversationWriter

NOON = 1_760_011_200.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A data folder with a chat and a backup."""
    home = tmp_path / "home"
    home.mkdir()
    with closing(DataPlace(home).open(now=NOON).store) as store:
        writer = ConversationWriter()
        writer.send("a question", "an answer")
        store.create(writer.conv)
    assert make_backup(home / "conversations.db", now=NOON, stop=Event())
    return home


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "other disk"


def _move(place: DataPlace, folder: Path) -> None:
    place.move(folder, progress=lambda _share: None)


def _titles(place: DataPlace) -> list[str]:
    with closing(place.open(now=NOON).store) as store:
        found = [one.title for one in store.summaries()]
    place.release()
    return found


def test_move_is_used_by_the_next_start_and_keeps_the_old_copy(home: Path, target: Path) -> None:
    place = DataPlace(home)
    _move(place, target)
    place.release()

    place = DataPlace(home)
    assert place.folder == target
    assert place.old == (home,)
    assert _titles(place) == ["a question"]
    assert len(backups_of(place.database)) == 1
    assert (home / "conversations.db").exists()
    for file in (place.database, *backups_of(place.database)):
        assert file.stat().st_mode & 0o777 == 0o600
    assert target.stat().st_mode & 0o777 == 0o700


def _add(place: DataPlace, number: int) -> None:
    place.pictures.add(picture_of(number), content_of(number))


def _names(place: DataPlace) -> set[str]:
    return {path.name for path in place.pictures.folder.iterdir()}


def _has(place: DataPlace, number: int) -> bool:
    """Return True if all files of a picture are there, unchanged and private."""
    picture, content = picture_of(number), content_of(number)
    files = place.pictures
    found = {
        files.original(picture): content.original,
        files.view(picture.view): content.view,
        files.thumbnail(picture): content.thumbnail,
    }
    return all(
        path.read_bytes() == wanted and path.stat().st_mode & 0o777 == 0o600
        for path, wanted in found.items()
    )


def test_pictures_move_with_the_chats_and_the_old_copy_is_deleted_on_request(
    home: Path, target: Path
) -> None:
    place = DataPlace(home)
    _add(place, 1)
    _move(place, target)
    assert place.pictures.folder == target / "pictures"
    assert _has(place, 1)
    _add(place, 2)
    place.release()

    place = DataPlace(home)
    assert _has(place, 1)
    assert _has(place, 2)
    assert (home / "pictures").exists()
    place.delete_old()
    assert not (home / "pictures").exists()
    _move(place, home)
    assert place.pictures.folder == home / "pictures"
    assert _has(DataPlace(home), 1)
    assert _has(DataPlace(home), 2)
    place.release()


def test_picture_that_is_added_during_a_move_moves_too(home: Path, target: Path) -> None:
    place = DataPlace(home)
    _add(place, 1)

    def add(copied: float) -> None:
        if copied == 1.0:
            _add(place, 2)

    place.move(target, progress=add)
    assert place.pictures.folder == target / "pictures"
    assert _has(place, 2)
    place.release()


def test_only_files_of_pictures_are_moved_and_deleted(home: Path, target: Path) -> None:
    place = DataPlace(home)
    _add(place, 1)
    others = [home / "pictures" / name for name in ("notes.txt", f"{'a' * 64}.png.part")]
    for path in others:
        path.write_bytes(b"other")
    _move(place, target)
    assert len(_names(place)) == 3
    place.delete_old()
    assert sorted((home / "pictures").iterdir()) == sorted(others)
    place.release()


def test_pictures_that_stayed_at_home_are_kept_until_the_next_move(
    home: Path, target: Path
) -> None:
    place = DataPlace(home)
    _add(place, 1)
    _move(place, target)
    place.release()
    location = json.loads((home / "location.json").read_text())
    del location["pictures"]
    (home / "location.json").write_text(json.dumps(location))

    place = DataPlace(home)
    place.delete_old()
    assert place.pictures.folder == home / "pictures"
    assert _has(place, 1)
    third = target.with_name("third")
    _move(place, third)
    assert place.pictures.folder == third / "pictures"
    assert _has(place, 1)
    place.release()


def test_move_into_a_folder_with_files_makes_a_folder_inside(home: Path, target: Path) -> None:
    target.mkdir()
    (target / "letter.txt").write_text("mine")
    place = DataPlace(home)

    _move(place, target)

    assert place.folder == target / "Rejoinder Chats"


def test_old_copy_is_deleted_on_request_only(home: Path, target: Path) -> None:
    (home / "settings.json").write_text("{}")
    place = DataPlace(home)
    _move(place, target)

    place.delete_old()

    assert not (home / "conversations.db").exists()
    assert not (home / "Backups").exists()
    assert (home / "settings.json").exists()
    assert DataPlace(home).old == ()
    place.release()
    assert _titles(DataPlace(home)) == ["a question"]


def test_second_move_back_home_needs_the_old_copy_deleted(home: Path, target: Path) -> None:
    place = DataPlace(home)
    _move(place, target)

    with pytest.raises(DatabaseFileError, match="already has chats"):
        _move(place, target)
    place.delete_old()
    _move(place, home)

    assert place.folder == home
    place.release()
    assert _titles(DataPlace(home)) == ["a question"]


def test_folder_of_another_rejoinder_is_refused(home: Path, target: Path) -> None:
    place = DataPlace(home)
    _move(place, target)

    with pytest.raises(AlreadyRunningError):
        DataPlace(home).open(now=NOON)


@pytest.mark.parametrize("share", [0.0, 0.2, 0.4, 0.7])
def test_stopped_move_changes_nothing(home: Path, target: Path, share: float) -> None:
    place = DataPlace(home)
    _add(place, 1)

    def stop(copied: float) -> None:
        if copied >= share:
            raise StoppedError

    with pytest.raises(StoppedError):
        place.move(target, progress=stop)

    assert place.folder == home
    assert not target.exists()
    assert _titles(DataPlace(home)) == ["a question"]
    assert place.pictures.folder == home / "pictures"
    assert _has(DataPlace(home), 1)


class _KilledError(BaseException):
    """Stands for a kill."""


def test_incomplete_copy_of_a_killed_move_is_removed_by_the_next_start(
    home: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_args: object) -> None:
        raise _KilledError

    _add(DataPlace(home), 1)
    with monkeypatch.context() as patch:
        patch.setattr(DataPlace, "_use", kill)
        patch.setattr(DataPlace, "_remove_copy", kill)
        with pytest.raises(_KilledError):
            _move(DataPlace(home), target)
    assert (target / "conversations.db").exists()
    assert len(list(target.glob("pictures/*.png"))) == 2

    place = DataPlace(home)
    assert _titles(place) == ["a question"]
    assert place.folder == home
    assert _has(place, 1)
    assert not target.exists()
    _move(DataPlace(home), target)
    assert len(list(target.glob("pictures/*.png"))) == 2


def test_disk_that_fills_at_any_file_of_a_move_leaves_all_in_the_old_folder(
    home: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = DataPlace(home)
    _add(place, 1)
    fills_at = num_written = 0

    def write(_descriptor: int) -> None:
        nonlocal num_written
        num_written += 1
        if num_written == fills_at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    while place.folder == home:
        fills_at, num_written = fills_at + 1, 0
        with monkeypatch.context() as patch:
            patch.setattr(module.os, "fsync", write)
            with contextlib.suppress(DatabaseFileError):
                _move(place, target)
        assert _has(place, 1)
        if place.folder == home:
            assert not target.exists()
            assert _titles(DataPlace(home)) == ["a question"]
    assert fills_at > 6  # location.json, three files of a picture, the backup and the database
    place.release()


def test_copy_that_differs_is_refused(
    home: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(descriptor: int) -> None:
        for part in target.rglob("*.moving"):
            content = bytearray(part.read_bytes())
            content[100] ^= 1
            part.write_bytes(content)

    place = DataPlace(home)
    with monkeypatch.context() as patch:
        patch.setattr(module.os, "fsync", spoil)
        with pytest.raises(DatabaseFileError):
            _move(place, target)

    assert _titles(DataPlace(home)) == ["a question"]


def test_move_to_a_full_disk_is_refused(
    home: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SPARE_BYTES", 1 << 62)

    with pytest.raises(DatabaseFullError):
        _move(DataPlace(home), target)


def test_missing_folder_is_reported_and_no_empty_database_is_made(home: Path, target: Path) -> None:
    place = DataPlace(home)
    _move(place, target)
    place.release()
    away = target.with_name("unplugged")
    target.rename(away)

    with pytest.raises(DatabaseFileError, match="isn’t there"):
        DataPlace(home).open(now=NOON)

    away.rename(target)
    assert _titles(DataPlace(home)) == ["a question"]


def test_move_of_a_missing_folder_is_refused_and_its_chats_are_found_later(
    home: Path, target: Path
) -> None:
    place = DataPlace(home)
    _move(place, target)
    place.release()
    away = target.with_name("unplugged")
    target.rename(away)
    third = target.with_name("third")

    with pytest.raises(DatabaseFileError, match="isn’t there"):
        _move(DataPlace(home), third)

    assert not third.exists()
    away.rename(target)
    assert _titles(DataPlace(home)) == ["a question"]
