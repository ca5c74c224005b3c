"""Records of cached state: read back bit for bit, or refused."""

from __future__ import annotations

import json
import os
import random
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from engine.cache.disk.record import (
    MAX_TOKENS,
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

RUN = TokenRun((5, 6, 7, 8, 9), (Feed(8, 16, one_by_one=False), Feed(13, 15, one_by_one=True)), 10)
KEY = RecordKey("one model", RecordKind.KV, "a" * 64, RUN)
DATA = bytes(range(240))
TENSORS = {
    "0.0": StoredArray("BF16", (1, 2, 5, 4), memoryview(DATA[:80])),
    "0.1": StoredArray("F32", (1, 2, 5, 4), memoryview(DATA[80:])),
    "empty": StoredArray("U32", (0, 7), memoryview(b"")),
}


def _written(folder: Path, key: RecordKey = KEY) -> Path:
    write_record(folder, key, {"point": "tail"}, TENSORS)
    return folder / f"{key.address}.safetensors"


def test_a_record_reads_back_bit_for_bit(tmp_path: Path) -> None:
    path = _written(tmp_path)

    record = read_record(path, "one model")

    assert record.header == read_header(path, "one model")
    assert record.header.key == KEY
    assert record.header.notes == {"point": "tail"}
    assert record.header.nbytes == path.stat().st_size
    assert record.tensors == TENSORS
    assert [bytes(t.data) for t in record.tensors.values()] == [DATA[:80], DATA[80:], b""]


def test_a_record_is_a_private_file_in_the_safetensors_format(tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.numpy")
    key = RecordKey("one model", RecordKind.STATE, "a" * 64, TokenRun((), (), 10))
    tensors = {"x": StoredArray("F32", (2,), memoryview(b"\0\0\x80?\0\0\0@"))}

    write_record(tmp_path, key, {}, tensors)

    path = tmp_path / f"{key.address}.safetensors"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert safetensors.load_file(path)["x"].tolist() == [1.0, 2.0]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_each_part_of_the_identity_changes_the_address() -> None:
    others = [
        RecordKey("another model", RecordKind.KV, "a" * 64, RUN),
        RecordKey("one model", RecordKind.STATE, "a" * 64, RUN),
        RecordKey("one model", RecordKind.KV, "b" * 64, RUN),
        RecordKey("one model", RecordKind.KV, "a" * 64, TokenRun((5, 6, 7, 8, 8), RUN.feeds, 10)),
        RecordKey("one model", RecordKind.KV, "a" * 64, TokenRun(RUN.token_ids, RUN.feeds[:1], 10)),
        RecordKey("one model", RecordKind.KV, "a" * 64, TokenRun(RUN.token_ids, RUN.feeds, 11)),
    ]
    assert len({key.address for key in [KEY, *others]}) == 7


@pytest.mark.slow
def test_every_flipped_bit_is_refused(tmp_path: Path) -> None:
    path = _written(tmp_path)
    whole = path.read_bytes()
    rng = random.Random(1)
    for _ in range(1500):
        changed = bytearray(whole)
        changed[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        with pytest.raises(RecordError):
            read_record(path, "one model")


def test_every_cut_record_is_refused(tmp_path: Path) -> None:
    path = _written(tmp_path)
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(RecordError):
            read_record(path, "one model")


def _renamed(path: Path) -> None:
    other = RecordKey("one model", RecordKind.KV, "", TokenRun((1,), (Feed(0, 1, True),), 0))
    path.write_bytes(_written(path.parent, other).read_bytes())


def _newer(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"rejoinder-2", b"rejoinder-3"))


def _huge_header(path: Path) -> None:
    path.write_bytes((1 << 60).to_bytes(8, "little") + path.read_bytes()[8:])


def _deep_header(path: Path) -> None:
    text = b"[" * 500_000
    path.write_bytes(len(text).to_bytes(8, "little") + text)


def _sparse_tensor(path: Path) -> None:
    table = {"__metadata__": {}, "tokens": {"dtype": "U8", "shape": [1 << 47], "data_offsets": [0]}}
    text = json.dumps(table).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)


def _named_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


@pytest.mark.parametrize(
    "harm",
    [_renamed, _newer, _huge_header, _deep_header, _sparse_tensor, _named_pipe, _folder, _link],
)
def test_a_hostile_record_is_refused(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    path = _written(tmp_path)
    harm(path)
    with pytest.raises((RecordError, OSError)):
        read_record(path, "one model")
    with pytest.raises((RecordError, OSError)):
        read_header(path, "one model")


def test_a_record_of_another_namespace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError):
        read_record(_written(tmp_path), "another model")


def test_a_record_with_too_many_tokens_is_refused(tmp_path: Path) -> None:
    ids = tuple(range(MAX_TOKENS + 1))
    run = TokenRun(ids, (Feed(0, len(ids), one_by_one=False),), 0)
    with pytest.raises(RecordError):
        read_header(_written(tmp_path, RecordKey("one model", RecordKind.KV, "", run)), "one model")


def test_passes_that_skip_tokens_are_refused(tmp_path: Path) -> None:
    feeds = (Feed(0, 2, one_by_one=False), Feed(3, 4, one_by_one=True))
    key = RecordKey("one model", RecordKind.KV, "", TokenRun((1, 2, 3, 4), feeds, 0))
    with pytest.raises(RecordError):
        read_record(_written(tmp_path, key), "one model")


def test_a_write_that_fails_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        _written(tmp_path)
    assert not list(tmp_path.iterdir())
