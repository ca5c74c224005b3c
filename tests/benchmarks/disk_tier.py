"""Figures of cached state on disk: `python -m tests.benchmarks.disk_tier`.

    index      time to open 10,000 records, with the saved index and from their headers
    read       rate of verified reads / rate of plain reads of the same files, both from the disk
               and both by several threads. On Linux only: elsewhere the files stay in memory.
    mutations  damaged records and indexes: how many are taken for whole (must be 0)

One line of JSON for each.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

from engine.cache.disk.folder import RecordFolder
from engine.cache.disk.index import entry_of, packed
from engine.cache.disk.record import (
    RecordError,
    RecordKey,
    RecordKind,
    StoredArray,
    read_header,
    read_record,
    write_record,
)
from engine.cache.feeding import Feed
from engine.cache.radix import TokenRun

NAMESPACE = "model"


def _key(number: int, length: int) -> RecordKey:
    ids = (number, *range(1, length))
    return RecordKey(NAMESPACE, RecordKind.KV, "", TokenRun(ids, (Feed(0, length, False),)))


def write_records(root: Path, count: int, length: int = 500) -> None:
    """Write records without arrays, of `length` tokens each, and no saved index."""
    folder = RecordFolder(root, NAMESPACE)
    os.sync()
    fsync, os.fsync = os.fsync, lambda _: None  # pyright: ignore — writing is not measured
    for number in range(count):
        write_record(folder.path, _key(number, length), {"conversation": str(number)}, {})
    os.fsync = fsync


def time_index(root: Path, count: int = 10_000, length: int = 500) -> dict[str, object]:
    write_records(root, count, length)
    start = time.perf_counter()
    folder = RecordFolder(root, NAMESPACE)
    rebuilt = time.perf_counter() - start
    folder.save_index(packed(list(folder.index.entries.values()), {}))
    times: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        folder = RecordFolder(root, NAMESPACE)
        times.append(time.perf_counter() - start)
    assert len(folder.index.entries) == count
    return {"records": count, "open_ms": min(times) * 1e3, "rebuild_ms": rebuilt * 1e3}


def time_reads(root: Path, count: int = 16, nbytes: int = 32 << 20) -> dict[str, object]:
    folder = RecordFolder(root, NAMESPACE)
    data = os.urandom(nbytes)
    paths: list[Path] = []
    for number in range(count):
        key = _key(number, 8)
        tensors = {"0": StoredArray("U8", (nbytes,), memoryview(data))}
        write_record(folder.path, key, {}, tensors)
        paths.append(folder.path / f"{key.address}.safetensors")
    best = {"plain": 0.0, "verified": 0.0}
    total = count * nbytes
    with ThreadPoolExecutor(4) as readers:
        for _ in range(5):
            _drop_from_memory(paths)
            start = time.perf_counter()
            for data in readers.map(Path.read_bytes, paths):
                assert len(data) > nbytes
            best["plain"] = max(best["plain"], total / (time.perf_counter() - start))
            _drop_from_memory(paths)
            start = time.perf_counter()
            for record in readers.map(read_record, paths, repeat(NAMESPACE)):
                assert record.tensors
            best["verified"] = max(best["verified"], total / (time.perf_counter() - start))
    return {**best, "ratio": best["verified"] / best["plain"], "cores": os.cpu_count()}


def _drop_from_memory(paths: Sequence[Path]) -> None:
    """Let the system forget the contents of files, as after a restart of the machine."""
    os.sync()
    for path in paths if sys.platform == "linux" else ():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def count_mutations(root: Path, count: int = 1000) -> dict[str, object]:
    folder = RecordFolder(root, NAMESPACE)
    rng = random.Random(0)
    data = rng.randbytes(4096)
    keys = [_key(number, 40) for number in range(20)]
    for key in keys:
        tensors = {"0": StoredArray("F32", (1, 2, 64, 8), memoryview(data))}
        write_record(folder.path, key, {"conversation": "A"}, tensors)
    paths = [folder.path / f"{key.address}.safetensors" for key in keys]
    entries = [entry_of(read_header(p, NAMESPACE), p.stem, last_used=0) for p in paths]
    whole = {path: path.read_bytes() for path in paths}
    index = packed(entries, {})
    accepted = wrong_index = 0
    for _ in range(count):
        path, other = rng.sample(paths, 2)
        changed = bytearray(whole[path])
        match rng.randrange(4):
            case 0:
                changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
            case 1:
                del changed[rng.randrange(len(changed)) :]
            case 2:
                changed = bytearray(whole[other])
            case _:
                changed = changed.replace(b"rejoinder-2", b"rejoinder-1")
        path.write_bytes(changed)
        try:
            read_record(path, NAMESPACE)
            accepted += 1
        except RecordError:
            pass
        path.write_bytes(whole[path])
        damaged = bytearray(index)
        damaged[rng.randrange(len(index))] ^= 1 << rng.randrange(8)
        (folder.path / "index").write_bytes(damaged)
        found = RecordFolder(root, NAMESPACE).index.entries
        wrong_index += set(found) != {entry.address for entry in entries}
    return {"mutations": count, "taken_for_whole": accepted, "wrong_index": wrong_index}


def main() -> None:
    for measure in (count_mutations, time_reads, time_index):
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps({"figure": measure.__name__, **measure(Path(folder) / "state")}))


if __name__ == "__main__":
    main()
