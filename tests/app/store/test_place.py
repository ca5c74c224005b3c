from __future__ import annotations

from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from app.stopping import StoppedError
from app.store import place as module
from app.store.backups import backups_of, make_backup
from app.store.errors import AlreadyRunningError, DatabaseFileError, DatabaseFullError
from app.store.place import DataPlace
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

    def stop(copied: float) -> None:
        if copied >= share:
            raise StoppedError

    with pytest.raises(StoppedError):
        place.move(target, progress=stop)

    assert place.folder == home
    assert not list(target.rglob("*.db"))
    assert _titles(DataPlace(home)) == ["a question"]


class _KilledError(BaseException):
    """Stands for a kill."""


def test_incomplete_copy_of_a_killed_move_is_removed_by_the_next_start(
    home: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(*_args: object) -> None:
        raise _KilledError

    with monkeypatch.context() as patch:
        patch.setattr(DataPlace, "_use", kill)
        patch.setattr(DataPlace, "_remove_copy", kill)
        with pytest.raises(_KilledError):
            _move(DataPlace(home), target)
    assert (target / "conversations.db").exists()

    place = DataPlace(home)
    assert _titles(place) == ["a question"]
    assert place.folder == home
    assert not target.exists()
    _move(DataPlace(home), target)


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
