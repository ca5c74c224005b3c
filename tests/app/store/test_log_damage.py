"""Starts after a kill whose log was damaged. `python -m tests.soak log` damages seventy logs."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from app.store.conversations import open_store
from app.store.wal import Log
from tests.app.store.log_damage import (
    FRAME,
    HEADER,
    NAME,
    NOON,
    Damage,
    Killed,
    damage_log,
    make_killed,
    start,
)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    return make_killed(tmp_path_factory.mktemp("killed") / "original", chats=6, turns=6)


def cut(path: Path, _rng: random.Random) -> None:
    log = Path(f"{path}-wal")
    log.write_bytes(log.read_bytes()[: HEADER + 3 * FRAME])


def change_a_frame(path: Path, _rng: random.Random) -> None:
    log = Path(f"{path}-wal")
    content = bytearray(log.read_bytes())
    content[HEADER + 2 * FRAME + 1000] ^= 1
    log.write_bytes(content)


def change_the_header(path: Path, _rng: random.Random) -> None:
    log = Path(f"{path}-wal")
    content = bytearray(log.read_bytes())
    content[20] ^= 1
    log.write_bytes(content)


def remove(path: Path, _rng: random.Random) -> None:
    Path(f"{path}-wal").unlink()


def test_log_of_a_killed_app_is_whole(killed: Killed, tmp_path: Path) -> None:
    outcome = start(killed, tmp_path / "copy", lambda _path, _rng: None, 0)

    assert (outcome.num_lost, outcome.num_changed, outcome.is_told) == (0, 0, False)


def test_frame_of_a_commit_that_did_not_end_is_no_damage(killed: Killed, tmp_path: Path) -> None:
    def add_half_a_commit(path: Path, rng: random.Random) -> None:
        with Path(f"{path}-wal").open("ab") as log:
            log.write(rng.randbytes(FRAME + 100))

    outcome = start(killed, tmp_path / "copy", add_half_a_commit, 0)

    assert (outcome.num_lost, outcome.num_changed, outcome.is_told) == (0, 0, False)


@pytest.mark.parametrize("damage", [cut, remove])
def test_lost_commits_of_a_log_are_reported(killed: Killed, tmp_path: Path, damage: Damage) -> None:
    outcome = start(killed, tmp_path / "copy", damage, 0)

    assert outcome.num_lost > 0
    assert outcome.is_told


@pytest.mark.parametrize("damage", [change_a_frame, change_the_header])
def test_commits_behind_a_damaged_frame_are_rescued(
    killed: Killed, tmp_path: Path, damage: Damage
) -> None:
    outcome = start(killed, tmp_path / "copy", damage, 0)

    assert outcome.num_lost <= 1
    assert outcome.is_told


@pytest.mark.parametrize("seed", range(3))
def test_random_damage_of_a_log_loses_nothing_without_a_report(
    killed: Killed, tmp_path: Path, seed: int
) -> None:
    outcome = start(killed, tmp_path / "copy", damage_log, seed)

    assert outcome.is_told or not (outcome.num_lost or outcome.num_changed)


def test_changed_letter_that_sqlite_accepts_is_reported_and_taken_from_the_backup(
    killed: Killed, tmp_path: Path
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(killed.folder, folder)
    open_store(folder / NAME, now=NOON).store.close()  # the log goes into the database

    def change_a_letter(path: Path, _rng: random.Random) -> None:
        content = path.read_bytes()
        path.write_bytes(content.replace(b"question 0.1", b"question 9.1"))

    outcome = start(Killed(folder, killed.texts), tmp_path / "damaged", change_a_letter, 0)

    assert outcome.is_told
    assert (outcome.num_lost, outcome.num_changed) == (0, 0)


def test_clean_end_leaves_no_log(killed: Killed, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(killed.folder, folder)
    with closing(open_store(folder / NAME, now=NOON).store):
        pass

    assert not Log(folder / NAME).is_damaged
    assert not Path(f"{folder / NAME}-wal").exists()
