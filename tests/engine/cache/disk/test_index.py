"""The index of records and the folder that holds them."""

from __future__ import annotations

import os
import random
import stat
from array import array
from pathlib import Path

import pytest

from engine.cache.disk.folder import FolderInUseError, FolderLock, RecordFolder
from engine.cache.disk.index import Index, IndexedRecord, PathPosition, entry_of, packed
from engine.cache.disk.record import RecordKey, RecordKind, read_header, write_record
from engine.cache.feeding import Feed
from engine.cache.radix import TokenRun

NAMESPACE = "one"


def _run(ids: list[int], *cuts: int) -> TokenRun:
    """Return a run from token 0 whose passes end at the given positions."""
    ends = [*cuts, len(ids)]
    starts = [0, *cuts]
    feeds = [Feed(a, b, one_by_one=b == a + 1) for a, b in zip(starts, ends, strict=True)]
    return TokenRun(tuple(ids), tuple(feeds))


def _kv(parent: IndexedRecord | None, run: TokenRun, user: str = "chat") -> IndexedRecord:
    key = RecordKey(NAMESPACE, RecordKind.KV, parent.address if parent else "", run)
    return _entry(key, user)


def _state(parent: IndexedRecord, position: int, user: str = "chat") -> IndexedRecord:
    run = TokenRun((), (), position)
    return _entry(RecordKey(NAMESPACE, RecordKind.STATE, parent.address, run), user)


def _entry(key: RecordKey, user: str) -> IndexedRecord:
    folder = Path("/tmp") / f"records-{os.getpid()}"
    folder.mkdir(exist_ok=True)
    write_record(folder, key, {"conversation": user}, {})
    path = folder / f"{key.address}.safetensors"
    entry = entry_of(read_header(path, NAMESPACE), key.address, last_used=1.0)
    path.unlink()
    folder.rmdir()
    return entry


def _tree() -> tuple[Index, IndexedRecord, IndexedRecord, IndexedRecord]:
    """Return tokens 0..9 with a state at 8, and a branch [6, 9) with a state at its end."""
    whole = _run(list(range(10)))
    first = _kv(None, whole)
    ids = [0, 1, 2, 3, 4, 5, 50, 51, 52]
    branch_run = TokenRun(tuple(ids[6:]), (Feed(6, 9, one_by_one=False),), 6)
    branch = _kv(first, branch_run, "other")
    state = _state(branch, 9, "other")
    index = Index()
    assert index.add_all([state, _state(first, 8), branch, first]) == []
    return index, first, branch, state


def test_a_prompt_finds_the_points_of_its_own_path_only() -> None:
    index, first, branch, _ = _tree()

    def found(ids: list[int]) -> list[tuple[IndexedRecord, int]]:
        return [(p.entry, p.num_tokens) for p in index.resume_points(ids, needs_state=True)]

    assert found(list(range(20))) == [(first, 8)]
    assert found([0, 1, 2, 3, 4, 5, 50, 51, 52, 53]) == [(branch, 9)]
    assert found([0, 1, 2, 3, 4, 5, 50, 51, 52]) == []  # a token must be left to feed
    assert found([0, 1, 2, 3]) == []
    assert found([7]) == []


def test_longest_path_of_a_conversation_ends_with_its_resume_point() -> None:
    index, first, branch, state = _tree()

    assert index.longest_path("other") == [first, branch, state]
    assert index.longest_path("chat") == [first]
    assert index.longest_path("nobody") == []


def test_without_states_a_prompt_resumes_anywhere() -> None:
    index, first, _, _ = _tree()
    ends = [p.num_tokens for p in index.resume_points([0, 1, 2, 3], needs_state=False)]
    assert ends == [3]
    assert first.end == 10


def test_the_run_of_a_branch_joins_the_tokens_and_passes_of_its_records() -> None:
    index, _, branch, _ = _tree()
    run = index.path_run(PathPosition(branch, 8))
    assert run.token_ids == (0, 1, 2, 3, 4, 5, 50, 51)
    assert run.feeds == (Feed(0, 10, one_by_one=False), Feed(6, 9, one_by_one=False))


def test_coverage_compares_the_passes_too() -> None:
    index, first, branch, _ = _tree()
    same = index.covered(TokenRun(tuple(range(12)), (Feed(0, 10, one_by_one=False),)))
    assert same == PathPosition(first, 10)
    assert index.covered(_run(list(range(10)), 5)) is None
    on_branch = index.covered(index.path_run(PathPosition(branch, 9)))
    assert on_branch == PathPosition(branch, 9)


def test_removal_takes_the_records_that_need_it() -> None:
    index, first, branch, state = _tree()
    assert set(index.remove(branch.address)) == {branch, state}
    assert index.nbytes == sum(entry.nbytes for entry in index.entries.values())
    assert len(index.remove(first.address)) == 2
    assert not index.entries
    assert index.nbytes == 0


def test_users_of_a_record_use_the_records_that_lie_on_its_path_completely() -> None:
    index, first, branch, _ = _tree()
    after = _kv(branch, TokenRun((60,), (Feed(9, 10, one_by_one=True),), 9), "third")
    assert index.add(after)
    assert first.users == {"chat"}
    assert branch.users == {"other", "third"}


def test_forgotten_text_is_removed_even_from_shared_records() -> None:
    index, _, _, _ = _tree()
    assert len(index.forget("other")) == 2
    assert len(index.forget("chat")) == 2
    index, first, _, _ = _tree()
    assert first in index.forget("chat")
    assert not index.entries


@pytest.mark.parametrize(
    ("user", "forgotten"),
    [
        ("chat/answer-2", "chat"),
        ("documents:work:9f", "documents:work:"),
    ],
)
def test_answers_of_a_chat_and_documents_of_a_folder_are_forgotten_with_it(
    user: str, forgotten: str
) -> None:
    index, first, branch, _ = _tree()
    for entry in (first, branch):
        entry.users.clear()
        entry.users.add(user)
    assert not index.forget("cha") + index.forget("documents:wo") + index.forget("documents:other:")
    assert first in index.forget(forgotten)


def test_a_record_outside_of_its_parent_is_not_used() -> None:
    index, first, _, _ = _tree()
    far = _state(first, 11)
    assert index.add_all([far]) == [far]


def _filled(root: Path, count: int) -> list[IndexedRecord]:
    folder = RecordFolder(root, NAMESPACE)
    entries: list[IndexedRecord] = []
    for number in range(count):
        run = _run([number, *range(20)])
        key = RecordKey(NAMESPACE, RecordKind.KV, "", run)
        write_record(folder.path, key, {"conversation": f"chat {number}"}, {})
        path = folder.path / f"{key.address}.safetensors"
        entries.append(entry_of(read_header(path, NAMESPACE), key.address, last_used=1.0))
    folder.save_index(packed(entries, {"written": 5}))
    return entries


def _known(root: Path) -> list[tuple[str, set[str], array[int]]]:
    folder = RecordFolder(root, NAMESPACE)
    return sorted((e.address, e.users, e.ids) for e in folder.index.entries.values())


def test_the_index_is_made_again_if_it_is_lost(tmp_path: Path) -> None:
    _filled(tmp_path / "cache", 20)
    saved = _known(tmp_path / "cache")
    (tmp_path / "cache" / NAMESPACE / "index").unlink()
    assert len(saved) == 20
    assert _known(tmp_path / "cache") == saved


def test_a_changed_index_changes_nothing(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    _filled(root, 5)
    saved = _known(root)
    path = root / NAMESPACE / "index"
    whole = path.read_bytes()
    rng = random.Random(2)
    for _ in range(300):
        changed = bytearray(whole)
        changed[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(changed[: rng.choice([len(whole), rng.randrange(len(whole))])])
        assert _known(root) == saved


def test_records_that_are_gone_or_damaged_are_left_out(tmp_path: Path) -> None:
    root = tmp_path / "cache"
    entries = _filled(root, 5)
    (root / NAMESPACE / "index").unlink()
    (root / NAMESPACE / f"{entries[0].address}.safetensors").unlink()
    (root / NAMESPACE / f"{entries[1].address}.safetensors").write_bytes(b"no record")
    (root / NAMESPACE / "half.part").write_bytes(b"interrupted")
    (root / NAMESPACE / f"{'0' * 64}.safetensors").mkdir()
    assert len(_known(root)) == 3
    assert len(list((root / NAMESPACE).iterdir())) == 3


def test_the_folder_is_private_and_used_by_one_process(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "cache"
    lock = FolderLock(root)
    folder = RecordFolder(root, NAMESPACE)
    for path in (root, folder.path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert (root / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f068868")
    with pytest.raises(FolderInUseError):
        FolderLock(root)
    lock.release()
    FolderLock(root).release()
