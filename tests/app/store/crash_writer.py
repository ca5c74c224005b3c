"""A program that streams replies into a database until test_crash.py kills it.

Arguments: path of the database, random seed. After each save the program prints the number of the
turn, and the number of characters of its reply that are saved.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from app.conversation.actions import TurnIds, plan_send
from app.conversation.replies import finish_reply
from app.conversation.tree import NodeId, new_conversation
from app.store.conversations import open_store
from engine.types import ConversationId
from tests.fakes.conversations import GENERATION, finished, generated

REPLY_LEN = 20_000


def text_of(turn: int, length: int) -> str:
    """Return the first `length` characters of the reply in turn number `turn`."""
    return (f"reply {turn}, word " * (length // 10 + 1))[:length]


def main(path: Path, seed: int) -> None:
    delta_lens = random.Random(seed)
    store = open_store(path, now=0.0).store
    conv = new_conversation(ConversationId("A"), now=0.0)
    store.create(conv)
    turn = 0
    while True:
        ids = TurnIds(user=NodeId(f"u{turn}"), reply=NodeId(f"r{turn}"))
        plan = generated(plan_send(conv, f"message {turn}", ids, now=float(turn)), GENERATION)
        store.save(plan.conversation, since=conv)
        length = 0
        while length < REPLY_LEN:
            length += delta_lens.randrange(1, 400)
            store.save_text(ids.reply, content=text_of(turn, length), reasoning="")
            sys.stdout.write(f"{turn} {length}\n")
            sys.stdout.flush()
        conv = finish_reply(plan.conversation, ids.reply, finished(text_of(turn, length)))
        store.save(conv, since=plan.conversation)
        turn += 1


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
