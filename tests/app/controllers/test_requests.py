from __future__ import annotations

from pathlib import Path

from app.controllers.requests import foreign_messages
from app.conversation.actions import plan_send
from app.conversation.replies import set_generation
from tests.app.conversation.test_readers import written_by
from tests.fakes.conversations import ConversationWriter
from tests.fakes.rig import card

SNAPSHOTS = "/hub/models--owner--Tiny-9B/snapshots"


def test_messages_that_an_earlier_revision_read_are_not_foreign() -> None:
    person = ConversationWriter()
    turn = person.send("one")
    person.conv = set_generation(person.conv, turn.reply_id, written_by(f"{SNAPSHOTS}/old"))
    turn = plan_send(person.conv, "two", person.ids(), now=9.0)
    cards = (card(path=Path(SNAPSHOTS, "new")),)
    assert foreign_messages(turn, f"{SNAPSHOTS}/new", cards) == frozenset()
    assert foreign_messages(turn, "/models/b", cards) == {0, 1}
