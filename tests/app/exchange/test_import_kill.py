"""Tests that kill a process with kill -9 at random moments while it imports.

`python -m tests.soak exchange` kills 30 processes, one after another.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from app.conversation.tree import Conversation
from app.exchange.exporting import export
from app.store.conversations import open_store
from app.store.merging import Merged, merge
from app.store.opening import open_database
from app.store.pictures import PictureFiles
from engine.types import ConversationId
from tests.fakes.conversations import ConversationWriter, filed

ROOT = Path(__file__).parents[3]
WRITER = Path(__file__).with_name("import_writer.py")
CHATS = 200


def chats() -> list[Conversation]:
    made: list[Conversation] = []
    for number in range(CHATS):
        writer = ConversationWriter(f"C{number}-")
        for turn in range(10):
            writer.send(f"message {turn} " * 20, "answer " * 50)
        made.append(replace(writer.conv, conversation_id=ConversationId(f"C{number}")))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_killed_import_leaves_all_or_none_of_each_conversation(tmp_path: Path, seed: int) -> None:
    check_kill(tmp_path, seed)


def check_kill(folder: Path, seed: int) -> None:
    expected = {chat.conversation_id: chat for chat in chats()}
    file, path = folder / "all.json", folder / "conversations.db"
    export(file, map(filed, expected.values()), PictureFiles(folder / "pictures"))
    reported = _import_until_killed(path, file, random.Random(seed).randrange(1, CHATS // 2))
    with closing(open_database(path).database) as database:
        assert database.rows("PRAGMA integrity_check") == [("ok",)]
    with closing(open_store(path, now=0.0).store) as store:
        stored = {one.conversation_id for one in store.summaries()}
        assert set(reported) <= stored
        assert len(stored) < CHATS, "the import was not killed in time"
        for conversation_id in stored:
            assert store.load(conversation_id) == expected[conversation_id]
        # The same import again stores the rest, without doubles.
        merged = [merge(store, filed(chat)) for chat in expected.values()]
        assert merged.count(Merged.PRESENT) == len(stored)
        assert len(store.summaries()) == CHATS


def _import_until_killed(path: Path, file: Path, number: int) -> list[str]:
    with subprocess.Popen(
        [sys.executable, WRITER, path, file],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as writer:
        assert writer.stdout is not None
        reports = [writer.stdout.readline() for _ in range(number)]
        writer.kill()
        reports += writer.stdout.readlines()
    return [line.strip() for line in reports if line.endswith("\n")]
