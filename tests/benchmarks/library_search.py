"""Search over a large library: time of a query, growth of the database, time of one index slice.

    python -m tests.benchmarks.library_search [--conversations 20000] [--messages 1000000]

The text is drawn from the words of the installed packages' documentation, with their frequencies.
Each reply has token ids, about one for four characters, as in a real database.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory

import numpy as np

from app.store.conversations import ConversationStore
from app.store.database import Database
from app.store.opening import open_database

WORDS_PER_MESSAGE = 170
MEGABYTE = 1_000_000


def real_words(limit_bytes: int = 20 * MEGABYTE) -> Counter[str]:
    words: Counter[str] = Counter()
    read = 0
    for folder in map(Path, sys.path):
        for file in sorted(folder.glob("**/*.py")) if folder.name == "site-packages" else ():
            text = file.read_text(encoding="utf-8", errors="ignore")
            prose = " ".join(re.findall(r'"""(.*?)"""', text, re.DOTALL))
            words.update(re.findall(r"[A-Za-z]{2,20}", prose))
            read += len(prose)
            if read > limit_bytes:
                return words
    return words


def messages(words: Counter[str], conversations: int, number: int) -> Iterator[Sequence[object]]:
    rng = np.random.default_rng(1)
    names = np.array(list(words), dtype=object)
    shares = np.array([words[name] for name in names], dtype=float)
    steps = np.cumsum(shares / shares.sum())
    each = number // conversations
    for conversation in range(conversations):
        lengths = rng.poisson(WORDS_PER_MESSAGE, each)
        drawn = names[np.searchsorted(steps, rng.random(int(lengths.sum())) * 0.9999999)]
        start = 0
        for index, length in enumerate(lengths):
            content = " ".join(drawn[start : start + length])
            start += int(length)
            is_reply = index % 2 == 1
            parent = f"{conversation}-{index - 1}" if index else None
            tokens = rng.bytes(len(content) // 4 * 4) if is_reply else None
            role = "assistant" if is_reply else "user"
            own = (f"{conversation}-{index}", str(conversation), parent, role, "complete")
            yield (*own, float(conversation), content, "", tokens, 0 if is_reply else None)


def fill(database: Database, words: Counter[str], conversations: int, number: int) -> None:
    # No trigger indexes a message: the index is built afterwards, as for an old database.
    database.run("UPDATE search_progress SET last = ?", (2**62,))
    with database.transaction():
        for conversation in range(conversations):
            database.run(
                "INSERT INTO conversations (conversation_id, title, title_is_manual, created_at,"
                " updated_at, setup, system_prompt, draft) VALUES (?, ?, 0, 0, 0, '{}', '', '')",
                (str(conversation), f"Chat {conversation}"),
            )
        database.run_many(
            "INSERT INTO messages (node_id, conversation_id, parent, role, status, created_at,"
            " content, reasoning, token_ids, answer_start) VALUES (?,?,?,?,?,?,?,?,?,?)",
            messages(words, conversations, number),  # pyright: ignore[reportArgumentType]
        )
    database.run("UPDATE search_progress SET last = (SELECT max(message_number) FROM messages)")


def num_bytes(database: Database) -> int:
    database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    ((pages,),) = database.rows("PRAGMA page_count")
    ((size,),) = database.rows("PRAGMA page_size")
    assert isinstance(pages, int)
    assert isinstance(size, int)
    return pages * size


def p95(seconds: Sequence[float]) -> float:
    return round(1000 * quantiles(seconds, n=20)[-1], 1)


def timed_queries(store: ConversationStore, queries: Sequence[str]) -> dict[str, float]:
    times: list[float] = []
    cpu_times: list[float] = []  # on a machine with other work, the wall time says little
    hits = 0
    for query in queries:
        begin, cpu_begin = time.perf_counter(), time.process_time()
        hits += sum(len(group.hits) for group in store.search.find_anywhere(query))
        times.append(time.perf_counter() - begin)
        cpu_times.append(time.process_time() - cpu_begin)
    return {
        "p95_ms": p95(times),
        "cpu_p95_ms": p95(cpu_times),
        "max_ms": round(1000 * max(times), 1),
        "hits": hits,
    }


def measure(folder: Path, conversations: int, number: int) -> dict[str, object]:
    words = real_words()
    with closing(open_database(folder / "conversations.db").database) as database:
        begin = time.perf_counter()
        fill(database, words, conversations, number)
        before = num_bytes(database)
        filled = time.perf_counter()
        store = ConversationStore(database)
        slices: list[float] = []
        more = True
        while more:
            start = time.perf_counter()
            more = store.search.index_slice()
            slices.append(time.perf_counter() - start)
        indexed = time.perf_counter()
        after = num_bytes(database)
        pick = random.Random(1)
        # Half of the words are drawn by frequency, so that common words are among them.
        common = pick.choices(list(words), weights=list(words.values()), k=100)
        real = [*common, *pick.sample(sorted(words), 100)]
        nonsense = ["".join(pick.choices("bcdfghjklmnpqrstvwxz", k=9)) for _ in range(50)]
        return {
            "messages": number,
            "conversations": conversations,
            "database_mb": round(before / MEGABYTE),
            "growth_percent": round(100 * (after / before - 1), 1),
            "fill_s": round(filled - begin),
            "index_s": round(indexed - filled),
            "slice_p95_ms": p95(slices),
            "slice_max_ms": round(1000 * max(slices), 1),
            "words": timed_queries(store, real),
            "prefixes_of_two": timed_queries(store, [word[:2] for word in real]),
            "prefixes_of_three": timed_queries(store, [word[:3] for word in real]),
            "prefixes_of_four": timed_queries(store, [word[:4] for word in real]),
            "pairs": timed_queries(store, [f"{a} {b}" for a, b in pairwise(real)]),
            "nonsense": timed_queries(store, nonsense),
            "words_and_nonsense": timed_queries(store, real + nonsense),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--conversations", type=int, default=20_000)
    parser.add_argument("--messages", type=int, default=1_000_000)
    args = parser.parse_args()
    with TemporaryDirectory(prefix="rejoinder-search-") as folder:
        print(json.dumps(measure(Path(folder), args.conversations, args.messages), indent=2))


if __name__ == "__main__":
    main()
