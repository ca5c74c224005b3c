"""A program that changes a data folder until test_change_kill.py kills it.

Arguments: data folder, name of the run. It imports chats, answers and edits in them, attaches files,
deletes and removes them, backs up the database and moves it. Before each action it prints a line with
"try", the kind of the action, the chat and its state afterwards, and after it one with "did".
"""

from __future__ import annotations

import random
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event

from app.conversation.actions import plan_send
from app.conversation.attachments import Attachment, digest_of
from app.conversation.replies import finish_reply
from app.conversation.tree import Conversation, set_draft_attachments
from app.store.backups import make_backup
from app.store.conversations import ConversationStore
from app.store.merging import PART_MESSAGES, merge
from app.store.place import DataPlace
from app.words.problems import DATA_FOLDER_NAME
from engine.types import ConversationId
from tests.fakes.conversations import ConversationWriter, filed, finished

NOON = 1_760_011_200.0
DAY_S = 24 * 3600
MAX_CHATS = 60


def state_of(conv: Conversation) -> str:
    """Return the number of messages of a chat, and a checksum of all its texts and files."""
    texts = [
        (node.node_id, node.content, *(file.text for file in node.attachments))
        for node in conv.nodes.values()
    ]
    drafts = [file.text for file in conv.draft_attachments]
    return f"{len(texts)}x{zlib.crc32(repr((texts, drafts)).encode()):08x}"


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
        actions: list[Callable[[], None]] = [self._import] * 6
        if self._writers:
            actions += [self._import_more, self._attach, self._edit] * 3
            actions += [self._answer] * 6 + [self._delete] * 2 + [self._remove] * 2
        if len(self._writers) > MAX_CHATS:
            actions = [self._remove]
        self._rng.choice([*actions, self._back_up, self._move])()

    def _import(self) -> None:
        name = f"{self._run}n{self._number}-"
        writer = self._writers[name] = ConversationWriter(name)
        for turn in range(self._rng.choice((1, 3, 7, PART_MESSAGES))):
            writer.send(f"message {turn}", "answer " * self._rng.choice((3, 800)))
        self._merge("import", writer.conv)

    def _import_more(self) -> None:
        writer = self._any()
        if writer.conv.draft_attachments:  # an import does not send the draft
            return
        for turn in range(self._rng.choice((1, PART_MESSAGES))):
            writer.send(f"more {turn}", "answer " * 20)
        self._merge("import-more", writer.conv)

    def _merge(self, kind: str, conv: Conversation) -> None:
        self._report(kind, conv, lambda: merge(self._store, filed(conv)))

    def _answer(self) -> None:
        """Stream an answer, which is saved several times."""
        writer = self._any()
        before = writer.conv
        turn = plan_send(before, "one more", writer.ids(), now=writer.now())
        conv = turn.conversation
        self._save("answer", conv, before)
        for length in range(200, 2000, 600):
            node = replace(conv.nodes[turn.reply_id], content="answer " * length)
            part = replace(conv, nodes={**conv.nodes, turn.reply_id: node})
            save = partial(self._store.save_text, turn.reply_id, content=node.content, reasoning="")
            self._report("answer", part, save)
        writer.conv = finish_reply(conv, turn.reply_id, finished("answer " * 2000))
        self._save("answer", writer.conv, conv)

    def _attach(self) -> None:
        writer = self._any()
        before = writer.conv
        text = f"file {self._number} " * self._rng.choice((10, 20_000))
        file = Attachment(name="a.txt", kind="text", text=text, digest=digest_of(text))
        writer.conv = set_draft_attachments(before, (*before.draft_attachments, file))
        self._save("attach", writer.conv, before)

    def _edit(self) -> None:
        writer = self._any()
        before = writer.conv
        writer.edit(next(iter(before.nodes)), f"edited {self._number}", "answer " * 50)
        self._save("edit", writer.conv, before)

    def _save(self, kind: str, conv: Conversation, before: Conversation) -> None:
        self._report(kind, conv, lambda: self._store.save(conv, since=before))

    def _any(self) -> ConversationWriter:
        return self._writers[self._rng.choice(list(self._writers))]

    def _delete(self) -> None:
        name = self._rng.choice(list(self._writers))
        del self._writers[name]
        self._print(
            "delete", name, "deleted", lambda: self._store.delete(ConversationId(name), now=NOON)
        )

    def _remove(self) -> None:
        name = self._rng.choice(list(self._writers))
        del self._writers[name]

        def remove() -> None:
            self._store.delete(ConversationId(name), now=NOON)
            self._store.remove(ConversationId(name))

        self._print("remove", name, "removed", remove)

    def _back_up(self) -> None:
        now = NOON + self._rng.randrange(1000) * DAY_S
        self._print(
            "backup", "-", "-", lambda: make_backup(self._place.database, now=now, stop=Event())
        )

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
            self._place.move(target, progress=lambda _share: None)
            self._store = self._place.open(now=NOON).store

        self._print("move", "-", "-", move)

    def _report(self, kind: str, conv: Conversation, make: Callable[[], object]) -> None:
        self._print(kind, conv.conversation_id, state_of(conv), make)

    def _print(self, kind: str, name: str, state: str, make: Callable[[], object]) -> None:
        print(f"try {kind} {name} {state}", flush=True)
        make()
        print(f"did {kind} {name} {state}", flush=True)


if __name__ == "__main__":
    changes = Changes(Path(sys.argv[1]), sys.argv[2])
    while True:
        changes.make_one()
