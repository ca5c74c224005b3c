from __future__ import annotations

from contextlib import closing
from functools import partial
from pathlib import Path

from pytestqt.qtbot import QtBot

from app.bridge.store_lane import StoreLane
from app.store.conversations import ConversationStore, open_store
from app.store.database import open_database
from tests.fakes.conversations import ConversationWriter


def test_messages_of_an_old_database_are_indexed_after_the_opening(
    qtbot: QtBot, tmp_path: Path
) -> None:
    path = tmp_path / "conversations.db"
    writer = ConversationWriter()
    for number in range(300):
        writer.send(f"apple {number}")
    with closing(open_database(path).database) as database:
        ConversationStore(database).create(writer.conv)
        # This is the state after the migration of a database of an earlier version.
        database.run("INSERT INTO message_search (message_search) VALUES ('delete-all')")
        database.run("UPDATE search_progress SET last = (SELECT max(message_number) FROM messages)")
    lane = StoreLane(partial(open_store, path, now=0.0))
    found: list[int] = []

    def has_all() -> bool:
        lane.run(_num_apples, found.append)
        return found[-1:] == [300]

    lane.open()
    qtbot.waitUntil(has_all)
    lane.close()


def _num_apples(store: ConversationStore) -> int:
    return sum(len(group.hits) for group in store.search.find("apple", limit=1000))
