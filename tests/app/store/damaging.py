"""Databases that a test damages, and a judgement of what must still be there after the rescue.

The text of each message consists of words that are in no other message, so the pages of a message
are found in the raw file without SQLite. The search index has them in lower case. A message whose pages the damage has spared must be rescued
with its whole text.
"""

from __future__ import annotations

import random
import re
import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from app.conversation.tree import Conversation, NodeId
from app.store.conversations import open_store
from app.store.errors import DatabaseDamagedError
from engine.types import ConversationId
from tests.fakes.conversations import ConversationWriter

PAGE = 4096
CHATS, TURNS = 12, 12
_WORD = re.compile(rb"W(\w+?)X\d+Z")


@dataclass(frozen=True)
class Library:
    """A stored library, with the pages of each message."""

    chats: tuple[Conversation, ...]
    pages: dict[NodeId, frozenset[int]]


def make_library(path: Path) -> Library:
    chats: list[Conversation] = []
    rng = random.Random(1)
    with closing(open_store(path, now=0.0).store) as store:
        for number in range(CHATS):
            writer = ConversationWriter(f"c{number}q")
            for turn in range(TURNS):
                size = rng.choice((3, 20, 60, 900))
                writer.send(
                    _text(f"c{number}q{turn + 1}u", 5), _text(f"c{number}q{turn + 1}r", size)
                )
            chats.append(writer.conv)
            store.create(writer.conv)
        while store.search.index_slice():
            pass
    content = path.read_bytes()
    pages: dict[str, set[int]] = {}
    for chat in chats:  # a row begins with the id of its message and the id of its chat
        for node_id in chat.nodes:
            start = content.index(f"{node_id}{chat.conversation_id}".encode())
            pages[node_id] = {start // PAGE}
    for found in _WORD.finditer(content):
        at = {found.start() // PAGE, (found.end() - 1) // PAGE}
        pages.setdefault(found[1].decode().lower(), set()).update(at)
    return Library(tuple(chats), {NodeId(key): frozenset(of) for key, of in pages.items()})


def _text(node_id: str, size: int) -> str:
    return " ".join(f"w{node_id}x{number}z" for number in range(size)).upper()


def check_rescue(path: Path, library: Library, damaged_pages: set[int]) -> tuple[int, str]:
    """Open a damaged database as the app does, again if it asks for that.

    Assert that every chat opens, and that spared messages are there. Return the number of messages
    that are lost or changed, and the sentences that the user has read.
    """
    sentences: list[str] = []
    stored: dict[ConversationId, Conversation] = {}
    for _ in range(2):
        opened = open_store(path, now=0.0)
        with closing(opened.store) as store:
            if opened.problem is not None:
                sentences.append(opened.problem.cause)
            try:
                stored = {
                    one.conversation_id: store.load(one.conversation_id)
                    for one in store.summaries()
                }
                while store.search.index_slice():
                    pass
                store.search.find("wc1q1ux0z")
            except DatabaseDamagedError:
                continue  # the sentence asks to open the app again
    num_lost = 0
    texts = {node.content for conv in stored.values() for node in conv.nodes.values()}
    for conv in stored.values():
        conv.check_invariants()
    for chat in library.chats:
        for node in chat.nodes.values():
            if node.content in texts:
                continue
            num_lost += 1
            pages = library.pages[node.node_id]
            assert pages & damaged_pages, f"{node.node_id} was readable: {sorted(pages)}"
    return num_lost, " ".join(sentences)


def damage_often(folder: Path, number: int) -> bool:
    """Damage copies of a library in many ways. Print how many were rescued, and what was lost."""
    folder.mkdir(parents=True, exist_ok=True)
    library = make_library(folder / "original.db")
    num_reported = num_lost = 0
    for seed in range(number):
        path = folder / f"{seed}" / "conversations.db"
        path.parent.mkdir()
        shutil.copy(folder / "original.db", path)
        lost, sentence = check_rescue(path, library, mutate(path, random.Random(seed)))
        num_reported += bool(sentence)
        num_lost += lost
        shutil.rmtree(path.parent)
    print(
        f"{number} damages: every message on whole pages was there; {num_reported} reported,"
        f" {num_lost} messages on damaged pages lost or changed"
    )
    return True


def mutate(path: Path, rng: random.Random) -> set[int]:
    """Damage a closed database file in one of six ways. Return the pages that were changed."""
    content = bytearray(path.read_bytes())
    num_pages = len(content) // PAGE
    page = rng.choice((0, rng.randrange(num_pages)))
    start = page * PAGE
    kind = rng.randrange(6)
    if kind == 0:  # random bytes of one page
        for _ in range(rng.choice((1, 8, 200))):
            content[start + rng.randrange(PAGE)] = rng.randrange(256)
        changed = {page}
    elif kind == 1:  # the header of a page
        content[start : start + 100] = rng.randbytes(100)
        changed = {page}
    elif kind == 2:  # some pages in a row
        count = min(rng.choice((1, 3, 30)), num_pages - page)
        content[start : start + count * PAGE] = rng.choice((rng.randbytes, bytes))(count * PAGE)
        changed = set(range(page, page + count))
    elif kind == 3:  # bytes everywhere
        places = [rng.randrange(len(content)) for _ in range(rng.choice((3, 40)))]
        for place in places:
            content[place] ^= 1 << rng.randrange(8)
        changed = {place // PAGE for place in places}
    elif kind == 4:  # the end is cut off
        size = rng.randrange(len(content))
        changed = set(range(size // PAGE, num_pages))
        del content[size:]
    else:  # a page in the place of another one
        source = rng.randrange(num_pages) * PAGE
        content[start : start + PAGE] = content[source : source + PAGE]
        changed = {page}
    path.write_bytes(content)
    return changed
