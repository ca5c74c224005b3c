"""A program that changes a data folder until test_change_kill.py kills it.

Arguments: data folder, name of the run. It imports, continues, deletes and removes chats, backs up the
database and moves it. Before each action it prints a line that begins with "try", and after it one
that begins with "did".
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Event

from app.store.backups import make_backup
from app.store.conversations import ConversationStore
from app.store.merging import merge
from app.store.place import DataPlace
from app.words.problems import DATA_FOLDER_NAME
from engine.types import ConversationId
from tests.fakes.conversations import ConversationWriter, filed

NOON = 1_760_011_200.0
DAY_S = 24 * 3600
MAX_CHATS = 60


class Changes:
    """The data folder, and the chats that this run has written."""

    def __init__(self, home: Path, run: str) -> None:
        self._home = home
        self._run = run
        self._rng = random.Random(run)
        self._place = DataPlace(home)
        self._store: ConversationStore = self._place.open(now=NOON).store
        self._writers: dict[str, ConversationWriter] = {}
        self._number = 0

    def make_one(self) -> None:
        """Make a random change."""
        self._number += 1
        actions: list[Callable[[], None]] = [self._add] * 6
        if self._writers:
            actions += [self._grow] * 6 + [self._delete] * 2 + [self._remove] * 2
        if len(self._writers) > MAX_CHATS:
            actions = [self._remove]
        self._rng.choice([*actions, self._back_up, self._move])()

    def _add(self) -> None:
        name = f"{self._run}n{self._number}-"
        writer = self._writers[name] = ConversationWriter(name)
        for turn in range(self._rng.randrange(1, 8)):
            writer.send(f"message {turn}", "answer " * self._rng.choice((3, 800)))
        self._report(
            f"{name} {len(writer.conv.nodes)}", lambda: merge(self._store, filed(writer.conv))
        )

    def _grow(self) -> None:
        name = self._rng.choice(list(self._writers))
        writer = self._writers[name]
        before = writer.conv
        writer.send("one more", "answer " * 20)
        self._report(
            f"{name} {len(writer.conv.nodes)}",
            lambda: self._store.save(writer.conv, since=before),
        )

    def _delete(self) -> None:
        name = self._rng.choice(list(self._writers))
        del self._writers[name]
        self._report(f"{name} deleted", lambda: self._store.delete(ConversationId(name), now=NOON))

    def _remove(self) -> None:
        name = self._rng.choice(list(self._writers))
        del self._writers[name]

        def remove() -> None:
            self._store.delete(ConversationId(name), now=NOON)
            self._store.remove(ConversationId(name))

        self._report(f"{name} removed", remove)

    def _back_up(self) -> None:
        now = NOON + self._rng.randrange(1000) * DAY_S
        self._report("- backup", lambda: make_backup(self._place.database, now=now, stop=Event()))

    @property
    def _own_folders(self) -> tuple[Path, Path]:
        """The folder of the database, and the folder that was chosen for it."""
        folder = self._place.folder
        return folder, folder.parent if folder.name == DATA_FOLDER_NAME else folder

    def _move(self) -> None:
        places = [self._home, self._home / "one", self._home / "two"]
        target = self._rng.choice([one for one in places if one not in self._own_folders])

        def move() -> None:
            self._store.close()
            self._place.delete_old()
            self._place.move(target, progress=lambda _share: None, is_stopped=lambda: False)
            self._store = self._place.open(now=NOON).store

        self._report("- move", move)

    def _report(self, change: str, make: Callable[[], object]) -> None:
        print(f"try {change}", flush=True)
        make()
        print(f"did {change}", flush=True)


if __name__ == "__main__":
    changes = Changes(Path(sys.argv[1]), sys.argv[2])
    while True:
        changes.make_one()
