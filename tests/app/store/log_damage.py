"""Damage to the write-ahead log that a killed app has left, and a judgement of what was said of it."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from app.store.backups import make_backup
from app.store.conversations import ConversationStore, open_store
from app.store.errors import DatabaseDamagedError
from tests.fakes.conversations import ConversationWriter

NAME = "conversations.db"
FRAME, HEADER = 4120, 32
NOON = 1_760_011_200.0


Damage = Callable[[Path, random.Random], object]  # arguments: path of the database, random numbers


@dataclass(frozen=True)
class Killed:
    """A data folder as a kill has left it, and the texts that were stored in it."""

    folder: Path
    texts: Mapping[str, str]  # by the id of the message


def make_killed(folder: Path, *, chats: int, turns: int) -> Killed:
    """Write chats, some of them before a backup, and copy the files while the database is open."""
    folder.mkdir()
    live = folder / "live"
    live.mkdir()
    texts: dict[str, str] = {}
    rng = random.Random(1)
    store = open_store(live / NAME, now=NOON).store
    with closing(store):
        for number in range(chats):
            writer = ConversationWriter(f"c{number}-")
            for turn in range(turns):
                before = writer.conv
                writer.send(f"question {number}.{turn}", _answer(rng, f"{number}.{turn}"))
                store.save(writer.conv, since=before) if turn else store.create(writer.conv)
            texts.update({key: node.content for key, node in writer.conv.nodes.items()})
            if number == chats // 4:
                make_backup(live / NAME, now=NOON, stop=Event())
        killed = folder / "killed"
        shutil.copytree(live, killed)
    return Killed(killed, texts)


def _answer(rng: random.Random, name: str) -> str:
    return f"answer {name} " * rng.choice((1, 30, 1000))


@dataclass(frozen=True)
class Outcome:
    """The result of a start after a damage."""

    num_lost: int
    num_changed: int
    is_told: bool  # True if the user has read a sentence about it


def start(killed: Killed, folder: Path, damage: Damage, seed: int) -> Outcome:
    """Damage a copy of the folder, and open it twice, as a user does who reads an error."""
    shutil.copytree(killed.folder, folder)
    damage(folder / NAME, random.Random(seed))
    found: dict[str, str] = {}
    is_told = False
    for _ in range(2):
        opened = open_store(folder / NAME, now=NOON)
        with closing(opened.store) as store:
            is_told |= opened.problem is not None
            try:
                found = _texts(store)
            except DatabaseDamagedError:
                is_told = True
    lost = killed.texts.keys() - found.keys()
    changed = [key for key in found.keys() & killed.texts.keys() if found[key] != killed.texts[key]]
    return Outcome(len(lost), len(changed), is_told)


def _texts(store: ConversationStore) -> dict[str, str]:
    texts: dict[str, str] = {}
    for summary in store.summaries():
        conv = store.load(summary.conversation_id)
        conv.check_invariants()
        texts.update({key: node.content for key, node in conv.nodes.items()})
    return texts


def damage_log(path: Path, rng: random.Random) -> None:
    """Damage the log in one of seven ways."""
    log = Path(f"{path}-wal")
    content = bytearray(log.read_bytes())
    num_frames = (len(content) - HEADER) // FRAME
    frame = HEADER + rng.randrange(num_frames) * FRAME
    kind = rng.randrange(7)
    if kind == 0:  # one bit
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif kind == 1:  # a sector of the disk
        start = rng.randrange(len(content) // 512) * 512
        content[start : start + 512] = rng.choice((rng.randbytes, bytes))(512)
    elif kind == 2:  # a whole frame, or its header
        size = rng.choice((FRAME, 24))
        content[frame : frame + size] = rng.choice((rng.randbytes, bytes))(size)
    elif kind == 3:  # several frames
        size = min(rng.choice((2, 10, 50)), num_frames) * FRAME
        content[frame : frame + size] = bytes(len(content[frame : frame + size]))
    elif kind == 4:  # the end
        del content[rng.randrange(len(content)) :]
    elif kind == 5:  # the header of the log
        content[rng.randrange(HEADER)] ^= 1 + rng.randrange(255)
    else:  # the whole log
        log.unlink()
        return
    log.write_bytes(content)


def damage_logs(folder: Path, number: int) -> bool:
    """Damage the logs of killed apps in many ways. Print what was lost, and whether it was said."""
    folder.mkdir(parents=True, exist_ok=True)
    # Logs of different lengths, before and after their pages were copied into the database.
    apps = [make_killed(folder / f"app-{chats}", chats=chats, turns=14) for chats in (10, 25, 40)]
    outcomes: list[Outcome] = []
    for seed in range(number):
        outcomes.append(start(apps[seed % len(apps)], folder / str(seed), damage_log, seed))
        shutil.rmtree(folder / str(seed))
    silent = [one for one in outcomes if (one.num_lost or one.num_changed) and not one.is_told]
    print(
        f"{number} damages of the log: {sum(one.is_told for one in outcomes)} reported;"
        f" {sum(one.num_lost for one in outcomes)} messages lost by"
        f" {sum(one.num_lost > 0 for one in outcomes)},"
        f" {sum(one.num_changed for one in outcomes)} texts changed;"
        f" {len(silent)} without a word"
    )
    return not silent
