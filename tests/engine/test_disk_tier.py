"""Conversations after a restart: their state comes from disk, bit for bit."""

from __future__ import annotations

import gc
import random
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from weakref import ref

import pytest

from engine.cache.disk import saving, writer
from engine.cache.disk.folder import FolderLock
from engine.cache.disk.index import IndexedRecord
from engine.cache.disk.rates import Rates
from engine.cache.disk.reader import RecordReader
from engine.cache.disk.record import Record, RecordKind, read_header
from engine.events import LoadModel, ReadAhead, RequestFinished, Shutdown, UnloadModel
from engine.questions import (
    AnyQuestion,
    ClearDisk,
    Evict,
    EvictWhat,
    Forget,
    ForgetUnknown,
    NextPrompt,
)
from engine.types import ConversationId, Message, Request, RequestId, Role
from tests.fakes.asking import ask, cache_of, reply_of, submit, user
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template

LONG = "a long question about nothing in particular " * 2
KINDS = ["qwen3_5", "qwen3_5_moe", "lfm2", "falcon_h1", "mamba2", "gemma3", "llama"]


def _close(client: InlineClient) -> None:
    client.send(Shutdown())
    client.core.run()


def _turns(client: InlineClient, count: int, chat: str = "A") -> list[Message]:
    messages: list[Message] = []
    for number in range(count):
        messages.append(user(f"{LONG} {chat} {number}"))
        messages.append(reply_of(ask(client, *messages, chat=chat)))
    return messages


def _answer(finished: RequestFinished) -> tuple[object, ...]:
    return finished.content, finished.reasoning, finished.reply


@pytest.mark.slow
@pytest.mark.parametrize("kind", rest_in_soak(KINDS, "qwen3_5", "gemma3", "mamba2"))
def test_a_conversation_goes_on_after_a_restart(
    open_tiny: OpenTiny, tmp_path: Path, kind: str
) -> None:
    without = open_tiny(kind)
    messages = _turns(without, 2)
    expected = ask(without, *messages, user("more"))

    first = open_tiny(kind, disk_folder=tmp_path / "disk")
    assert _turns(first, 2) == messages
    _close(first)
    second = open_tiny(kind, disk_folder=tmp_path / "disk")
    again = ask(second, *messages, user("more"))

    assert _answer(again) == _answer(expected)
    plan, usual = again.usage.plan, expected.usage.plan
    assert (plan.restored, plan.read, plan.replayed) == (
        usual.restored, usual.read, usual.replayed
    )  # fmt: skip
    assert plan.restored_disk == plan.restored > 0
    assert again.usage.disk_ms > 0
    _close(second)


def _two_runs(open_tiny: OpenTiny, folder: Path, kind: str = "lfm2") -> list[Message]:
    """Write a conversation of two turns to disk, and close the engine."""
    first = open_tiny(kind, disk_folder=folder)
    messages = _turns(first, 2)
    _close(first)
    return messages


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*/*.safetensors"))


@pytest.mark.parametrize("kind", ["lfm2", "llama"])
def test_files_read_during_a_load_are_those_that_the_next_request_of_the_shown_chat_needs(
    open_tiny: OpenTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    messages = _two_runs(open_tiny, tmp_path, kind)
    client = open_tiny(kind, disk_folder=tmp_path)
    _turns(client, 2, chat="B")
    assert client.core.model is not None
    load = LoadModel(client.core.model.facts.path)
    early: list[str] = []
    needed: list[str] = []

    def read_through(paths: Sequence[Path], *_: object) -> int:
        early.extend(path.stem for path in paths)
        return 0

    read_all = RecordReader.read_all

    def noting(self: RecordReader, entries: Sequence[IndexedRecord]) -> list[Record]:
        needed.extend(entry.address for entry in entries)
        return read_all(self, entries)

    monkeypatch.setattr("engine.cache.disk.early.read_through", read_through)
    monkeypatch.setattr(RecordReader, "read_all", noting)
    client.send(UnloadModel())
    client.send(load)
    client.want(lambda wanted: replace(wanted, shown=ConversationId("A")))
    client.run_until_idle()
    for thread in threading.enumerate():
        if thread.name == "early state":
            thread.join()
    plan = ask(client, *messages, user("more")).usage.plan

    assert plan.restored == plan.restored_disk > 0
    assert early == needed
    _close(client)


@pytest.mark.slow
def test_branches_and_new_versions_resume_after_a_restart(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    first = open_tiny("lfm2", disk_folder=tmp_path)
    start = _turns(first, 1)
    left = [*start, user("left")]
    left.append(reply_of(ask(first, *left)))
    right = [*start, user("right")]
    right.append(reply_of(ask(first, *right)))
    ask(first, *right, user("on"))
    usual = [ask(first, *path, user("go")).usage.plan.restored for path in (left, right)]
    _close(first)

    second = open_tiny("lfm2", disk_folder=tmp_path)
    plans = [ask(second, *path, user("?")).usage.plan for path in (left, right)]
    assert [plan.restored for plan in plans] == usual
    assert plans[0].restored_disk == usual[0]
    redrawn = ask(second, *right, user("on")).usage.plan
    assert redrawn.restored == redrawn.prompt_tokens
    _close(second)


@pytest.mark.slow
def test_a_template_that_strips_thoughts_resumes_after_a_restart(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    options = {"template": Template.THINKING, "idle_work": True, "disk_folder": tmp_path}
    first = open_tiny("qwen3_5", **options)
    messages = _turns(first, 2)
    _close(first)
    second = open_tiny("qwen3_5", **options)
    plan = ask(second, *messages, user("more")).usage.plan
    assert plan.replayed == 0
    assert plan.restored_disk == plan.restored > 0
    _close(second)


def test_nothing_is_written_twice(open_tiny: OpenTiny, tmp_path: Path) -> None:
    messages = _two_runs(open_tiny, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in _files(tmp_path)}
    second = open_tiny("lfm2", disk_folder=tmp_path)
    ask(second, *messages, user("more"))
    after = {path: path.stat().st_mtime_ns for path in _files(tmp_path)}
    new_kv = sum(p.stat().st_size for p in set(after) - set(before))
    assert {path: after[path] for path in before} == before
    assert cache_of(second).holdings.counters.evictions == 0
    assert 0 < new_kv < sum(path.stat().st_size for path in before)
    _close(second)
    assert {path: path.stat().st_mtime_ns for path in _files(tmp_path)} == after


def test_forgetting_deletes_what_no_other_conversation_uses(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    first = open_tiny("lfm2", disk_folder=tmp_path)
    system = Message(role=Role.SYSTEM, content=LONG * 2)
    shared = [
        ask(first, system, user(f"{chat} asks"), chat=chat).usage.plan.prompt_tokens
        for chat in ("A", "B")
    ]
    both = len(_files(tmp_path))
    first.ask(Forget(ConversationId("A")))
    first.run_until_idle()
    _close(first)
    assert 0 < len(_files(tmp_path)) < both
    second = open_tiny("lfm2", disk_folder=tmp_path)
    again = ask(second, system, user("B asks"), chat="B").usage.plan
    assert again.restored_disk == again.prompt_tokens == shared[1]
    second.ask(ForgetUnknown(frozenset({ConversationId("B")})))
    second.run_until_idle()
    assert len(_files(tmp_path)) > 0
    second.ask(ForgetUnknown(frozenset({ConversationId("A")})))
    second.run_until_idle()
    _close(second)
    assert not _files(tmp_path)


def test_report_counts_conversations_in_memory_and_on_disk(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    client = open_tiny("llama", disk_folder=tmp_path)
    for chat in ("A", "B"):
        _turns(client, 1, chat)
    client.ask(Forget(ConversationId("A"), on_disk=False))
    found = client.answer(client.report_cache()).statistics
    assert (found.num_conversations, found.disk_conversations) == (1, 2)
    _close(client)


def test_damaged_records_are_fed_again(open_tiny: OpenTiny, tmp_path: Path) -> None:
    expected_messages = _two_runs(open_tiny, tmp_path)
    rng = random.Random(3)
    for path in _files(tmp_path):
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 4
        path.write_bytes(data)
    second = open_tiny("lfm2", disk_folder=tmp_path)
    again = ask(second, *expected_messages, user("more"))
    assert again.usage.plan.restored == 0
    without = open_tiny("lfm2")
    _turns(without, 2)
    assert _answer(again) == _answer(ask(without, *expected_messages, user("more")))
    assert second.core.disk is not None
    assert second.core.disk.statistics().damaged > 0
    _close(second)


@pytest.mark.slow
def test_another_quantisation_of_the_cache_is_a_miss(open_tiny: OpenTiny, tmp_path: Path) -> None:
    messages = _two_runs(open_tiny, tmp_path, "llama")
    second = open_tiny("llama", disk_folder=tmp_path, kv_bits=8)
    assert ask(second, *messages, user("more")).usage.plan.restored == 0
    _close(second)


def test_a_second_engine_on_the_same_folder_goes_on_without_it(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    first = open_tiny("llama", disk_folder=tmp_path)
    second = open_tiny("llama", disk_folder=tmp_path)
    assert ask(second, user("hello")).usage.written_bytes == 0
    assert second.core.disk is None
    _close(second)
    _close(first)


@pytest.mark.slow
def test_a_full_disk_switches_the_tier_off_with_one_sentence(
    open_tiny: OpenTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer, "write_record", full)
    client = open_tiny("llama", disk_folder=tmp_path)
    messages = _turns(client, 4)
    assert client.core.disk is not None
    problem = client.core.disk.problem
    assert problem == "Cached state is not kept on disk any more: No space left on device."
    assert ask(client, *messages, user("on")).usage.plan.restored > 0
    assert not _files(tmp_path)
    _close(client)


@pytest.mark.slow
def test_the_folder_keeps_to_its_budget(open_tiny: OpenTiny, tmp_path: Path) -> None:
    client = open_tiny("llama", disk_folder=tmp_path, disk_budget_bytes=200_000)
    for chat in "ABCDEFGH":
        _turns(client, 1, chat)
    assert client.core.disk is not None
    _close(client)
    used = sum(path.stat().st_size for path in _files(tmp_path))
    assert 100_000 < used <= 200_000


@pytest.mark.slow
def test_the_daily_limit_ends_writing_for_all_models(open_tiny: OpenTiny, tmp_path: Path) -> None:
    client = open_tiny("llama", disk_folder=tmp_path, disk_daily_bytes=150_000)
    for chat in "ABCDEFGH":
        _turns(client, 1, chat)
    _close(client)
    written = _files(tmp_path)
    assert 50_000 < sum(path.stat().st_size for path in written) <= 150_000
    other = open_tiny("lfm2", disk_folder=tmp_path, disk_daily_bytes=150_000)
    _turns(other, 2)
    assert other.core.disk is not None
    assert other.core.disk.statistics().written_today_bytes > 100_000
    other.ask(ClearDisk())
    other.run_until_idle()
    assert other.core.disk.statistics().written_today_bytes > 100_000, "clearing unwrites nothing"
    _close(other)
    assert len(_files(tmp_path)) <= 3, "another model has what is left of the day"


def test_forgetting_in_memory_keeps_the_records(open_tiny: OpenTiny, tmp_path: Path) -> None:
    client = open_tiny("llama", disk_folder=tmp_path)
    messages = _turns(client, 3)
    written = _files(tmp_path)
    client.ask(Forget(ConversationId("A"), on_disk=False))
    client.run_until_idle()
    assert _files(tmp_path) == written
    plan = ask(client, *messages, user("more")).usage.plan
    assert plan.restored_disk > 0, "a restored chat is not read again"
    client.ask(Forget(ConversationId("A")))
    client.run_until_idle()
    _close(client)
    assert not _files(tmp_path)


def test_disk_is_switched_off_and_on_while_the_model_is_loaded(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    client = open_tiny("llama", disk_folder=tmp_path)
    messages = _turns(client, 2)
    client.set_disk(str(tmp_path), enabled=False, budget_bytes=None)
    client.run_until_idle()
    written = _files(tmp_path)
    assert written
    messages = (*messages, user("without"), reply_of(ask(client, *messages, user("without"))))
    assert _files(tmp_path) == written
    client.set_disk(str(tmp_path), enabled=True, budget_bytes=50_000_000)
    client.run_until_idle()
    assert client.core.disk is not None
    assert client.core.disk.limits.budget_bytes == 50_000_000
    plan = ask(client, *messages, user("with")).usage.plan
    assert plan.replayed == 0
    _close(client)
    assert len(_files(tmp_path)) > len(written)


@pytest.mark.slow
def test_clear_deletes_the_records_of_all_models(open_tiny: OpenTiny, tmp_path: Path) -> None:
    _two_runs(open_tiny, tmp_path, "llama")
    other = open_tiny("llama", disk_folder=tmp_path, kv_bits=8)
    messages = _turns(other, 2)
    assert len({path.parent for path in _files(tmp_path)}) == 2
    report = other.answer(other.clear_disk())
    assert report.statistics.disk_records == 0
    assert len({path.parent for path in _files(tmp_path)}) <= 1, "only new state is written"
    plan = ask(other, *messages, user("on")).usage.plan
    assert plan.replayed == 0
    _close(other)


@pytest.mark.parametrize("cause", ["unloaded", "set aside", "switched off"])
def test_statistics_without_a_tier_have_the_size_of_the_folder(
    open_tiny: OpenTiny, tmp_path: Path, cause: str
) -> None:
    folder = tmp_path / "cache"
    client = open_tiny("llama", disk_folder=folder)
    _turns(client, 2)
    if cause == "switched off":
        client.set_disk(str(folder), enabled=False, budget_bytes=None)
    elif cause == "set aside":
        client.unload_model()
    else:
        client.send(UnloadModel())
    client.run_until_idle()
    assert client.core.disk is None
    size = sum(file.stat().st_size for file in folder.glob("*/*"))
    found = client.answer(client.report_cache()).statistics
    assert found.disk_bytes == size > 0
    assert (found.disk_model_bytes, found.disk_conversations) == (0, 0)
    assert found.disk_written_today_bytes > 0
    assert bool(found.disk_budget_bytes) is (cause != "switched off")
    assert client.answer(client.report_chats()).other_disk_bytes == size

    cleared = client.answer(client.clear_disk()).statistics
    assert cleared.disk_bytes == 0
    assert client.answer(client.report_chats()).other_disk_bytes == 0


def test_statistics_without_a_folder_have_no_bytes_on_disk(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    client = open_tiny("llama")
    for folder in (None, str(tmp_path / "none")):
        if folder is not None:
            client.set_disk(folder, enabled=False, budget_bytes=None)
        found = client.answer(client.report_cache()).statistics
        assert (found.disk_bytes, found.disk_budget_bytes, found.disk_problem) == (0, 0, None)


@pytest.mark.parametrize(("holder", "reason"), [("1", "Another Rejoinder"), ("", "Off until")])
def test_statistics_have_the_reason_why_the_tier_is_off(
    open_tiny: OpenTiny, tmp_path: Path, holder: str, reason: str
) -> None:
    lock = FolderLock(tmp_path)
    if holder:
        (tmp_path / "lock").write_text(holder)
    client = open_tiny("llama", disk_folder=tmp_path)
    report = client.answer(client.report_cache())
    lock.release()
    assert client.core.disk is None
    assert report.statistics.disk_problem is not None
    assert report.statistics.disk_problem.startswith(reason)


@pytest.mark.slow
@pytest.mark.parametrize("kind", rest_in_soak(["qwen3_5", "llama"], "qwen3_5"))
def test_evicted_state_is_written_before_it_is_removed(
    open_tiny: OpenTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    one = open_tiny(kind)
    _turns(one, 2)
    budget = 3 * cache_of(one).holdings.ledger().total_bytes // 2
    client = open_tiny(kind, disk_folder=tmp_path, cache_bytes=budget)
    # On battery, nothing is written in idle time.
    monkeypatch.setattr(client.core, "_on_battery", lambda: True)
    chats = {chat: _turns(client, 2, chat) for chat in "ABC"}
    assert cache_of(client).holdings.counters.evictions > 0
    for chat, messages in chats.items():
        plan = ask(client, *messages, user("more"), chat=chat).usage.plan
        assert plan.replayed == 0
        assert plan.restored_disk > 0 or chat == "C"
    _close(client)


@pytest.mark.slow
def test_small_disk_and_memory_budgets_give_the_same_answers(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    usual = open_tiny("qwen3_5")
    expected = {chat: _turns(usual, 2, chat) for chat in "ABC"}
    total = cache_of(usual).holdings.ledger().total_bytes
    client = open_tiny(
        "qwen3_5", disk_folder=tmp_path, cache_bytes=total // 4, disk_budget_bytes=total // 8
    )
    for _ in range(2):
        for chat, messages in expected.items():
            assert _turns(client, 2, chat) == messages
    _close(client)
    assert sum(path.stat().st_size for path in _files(tmp_path)) <= total // 8


@pytest.mark.slow
@pytest.mark.parametrize("kind", rest_in_soak(["qwen3_5", "llama"], "qwen3_5"))
def test_state_is_fetched_ahead_into_free_memory(
    open_tiny: OpenTiny, tmp_path: Path, kind: str
) -> None:
    messages = _two_runs(open_tiny, tmp_path, kind)
    second = open_tiny(kind, disk_folder=tmp_path, idle_work=True)
    request = Request(
        request_id=RequestId("counted"),
        conversation_id=ConversationId("A"),
        messages=(*messages, user("more")),
        new_messages=frozenset({len(messages)}),
    )
    before = second.answer(second.count_tokens(request))
    second.send(
        ReadAhead(conversation_id=ConversationId("A"), messages=tuple(messages), fetch_only=True)
    )
    second.run_until_idle()
    after = second.answer(second.count_tokens(request))
    assert before.num_on_disk == before.num_cached == after.num_cached > 0
    assert after.num_on_disk == 0, "it is in memory now"
    assert second.core.disk is not None
    assert second.core.disk.statistics().read_bytes > 0

    first = ask(second, *messages, user("more"))
    plan = first.usage.plan
    assert plan.restored_disk == plan.restored > plan.read > 0, "its state came from disk"
    assert plan.replayed == 0
    plan = ask(second, *messages, user("more"), reply_of(first), user("?")).usage.plan
    assert plan.restored > plan.restored_disk == 0
    _close(second)


@pytest.mark.slow
def test_state_that_was_fetched_for_another_prompt_does_not_count_as_from_disk(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    messages = _two_runs(open_tiny, tmp_path, "lfm2")
    second = open_tiny("lfm2", disk_folder=tmp_path, idle_work=True)
    chat = ConversationId("A")
    second.send(ReadAhead(conversation_id=chat, messages=tuple(messages), fetch_only=True))
    second.run_until_idle()
    changed = (Message(role=Role.SYSTEM, content="Be brief."), *messages)
    second.send(ReadAhead(conversation_id=chat, messages=changed))
    second.run_until_idle()

    plan = ask(second, *changed, user("more")).usage.plan
    assert plan.restored == plan.restored_ahead > plan.restored_disk == 0
    _close(second)


def _points(folder: Path) -> int:
    """Return the number of state records in a folder."""
    headers = [read_header(path, path.parent.name) for path in _files(folder)]
    return sum(header.key.kind is RecordKind.STATE for header in headers)


@pytest.mark.slow
def test_counted_tokens_on_disk_are_those_that_a_request_restores(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    messages = _two_runs(open_tiny, tmp_path)
    second = open_tiny("lfm2", disk_folder=tmp_path)
    prompt = NextPrompt(
        conversation_id=ConversationId("A"), messages=(*messages, user("more")), is_draft=True
    )
    counted = second.answer(second.count_tokens(prompt))
    plan = ask(second, *messages, user("more"), chat="A").usage.plan
    assert counted.num_cached == plan.restored_disk == plan.restored > 0
    _close(second)


def test_states_are_written_once_a_conversation_has_rested(
    open_tiny: OpenTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1e9
    monkeypatch.setattr(time, "time", lambda: now)
    client = open_tiny("qwen3_5", disk_folder=tmp_path, disk_rest_s=3600.0)
    messages = [user("short")]
    messages.append(reply_of(ask(client, *messages)))
    client.run_until_idle()
    assert not _files(tmp_path), "the state is larger than the K/V that it saves"
    now += 3600.0
    client.run_until_idle()
    written = _points(tmp_path)
    assert written > 0
    ask(client, *messages, user("more"))
    client.run_until_idle()
    assert _points(tmp_path) == written
    _close(client)
    assert _points(tmp_path) > written, "nothing waits at closing"


@pytest.mark.parametrize(("text", "token_s"), [(LONG * 4, 1e-6), ("short", 1.0)])
def test_a_state_that_saves_much_memory_or_time_does_not_wait(
    open_tiny: OpenTiny, tmp_path: Path, text: str, token_s: float
) -> None:
    client = open_tiny("qwen3_5", disk_folder=tmp_path, disk_rest_s=3600.0)
    assert client.core.disk is not None
    client.core.disk.rates.token_s = token_s
    ask(client, user(text))
    client.run_until_idle()
    # A quick writer has also saved the state at the end of the prompt, while that was read.
    assert _points(tmp_path) in (1, 2)
    _close(client)


@pytest.mark.slow
@pytest.mark.parametrize(
    "removal", [Forget(ConversationId("A")), Evict(EvictWhat.ALL)], ids=["forget", "evict"]
)
def test_states_that_wait_are_freed_when_they_leave_memory(
    open_tiny: OpenTiny, tmp_path: Path, removal: AnyQuestion
) -> None:
    client = open_tiny("qwen3_5", disk_folder=tmp_path, disk_rest_s=3600.0)
    _turns(client, 2)
    client.run_until_idle()
    nodes = [ref(node) for node in cache_of(client).holdings.tree.nodes()]
    assert nodes

    client.ask(removal)
    client.run_until_idle()

    gc.collect()
    assert [node() for node in nodes if node() is not None] == []
    _close(client)


def test_a_record_that_is_mostly_unused_is_not_read(open_tiny: OpenTiny, tmp_path: Path) -> None:
    client = open_tiny("llama", disk_folder=tmp_path)
    messages = [user(f"Shared words first. {LONG * 4}")]
    messages.append(reply_of(ask(client, *messages)))
    _close(client)

    client = open_tiny("llama", disk_folder=tmp_path)
    assert client.core.disk is not None
    per_token = cache_of(client).holdings.kv_bytes_per_token
    # Reading a token takes half as long as feeding it.
    client.core.disk.rates = Rates(byte_s=0.5 / per_token, token_s=1.0)
    other = ask(client, user("Shared words first. Then others."), chat="B").usage
    assert other.plan.restored_disk == 0
    same = ask(client, *messages, user("more")).usage
    assert same.plan.restored_disk > 0
    _close(client)


def test_fetching_ahead_evicts_nothing(open_tiny: OpenTiny, tmp_path: Path) -> None:
    messages = _two_runs(open_tiny, tmp_path)
    second = open_tiny("lfm2", disk_folder=tmp_path, idle_work=True, cache_bytes=1 << 16)
    second.send(
        ReadAhead(conversation_id=ConversationId("A"), messages=tuple(messages), fetch_only=True)
    )
    second.run_until_idle()
    assert second.core.disk is not None
    assert second.core.disk.statistics().read_bytes == 0
    _close(second)


class SameThread:
    """An executor that does its work at once."""

    def __init__(self, *_args: object, **_options: object) -> None:
        pass

    def submit(self, work: Callable[..., object], *args: object) -> Future[object]:
        future = Future[object]()
        future.set_result(work(*args))
        return future

    def shutdown(self, *, wait: bool) -> None:
        pass


@pytest.mark.parametrize("kind", rest_in_soak(KINDS, "qwen3_5", "llama"))
def test_a_prompt_that_a_crash_ends_resumes_near_the_place(
    open_tiny: OpenTiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    options = {"cell_len": 32, "stride_len": 64}
    turns = [user(LONG), Message(role=Role.ASSISTANT, content="fine"), user(LONG * 3)]
    expected = ask(open_tiny(kind, **options), *turns)
    with monkeypatch.context() as patch:
        patch.setattr(writer, "ThreadPoolExecutor", SameThread)
        first = open_tiny(kind, disk_folder=tmp_path / "disk", **options)
    disk = first.core.disk
    assert disk is not None
    monkeypatch.setattr(saving, "COSTLY_S", 1e-6)
    disk.rates.token_s = 1e-12  # reading takes longer than is expected
    submit(first, *turns)

    assert first.core.model is not None
    needs_state = first.core.model.layout.needs_snapshot
    saved: list[int] = []
    while first.step() and not any(isinstance(one, RequestFinished) for one in first.new_events()):
        written = disk.statistics().written_bytes
        if written > sum(saved):
            saved.append(written - sum(saved))
            shutil.copytree(tmp_path / "disk", tmp_path / f"crash {len(saved)}")
            assert _points(tmp_path / "disk") == needs_state, (
                "a later state replaces the one before"
            )
    assert len(saved) >= 3, "state is written while the prompt is read"
    _close(first)

    restored: list[int] = []
    for number in (1, len(saved)):
        second = open_tiny(kind, disk_folder=tmp_path / f"crash {number}", **options)
        again = ask(second, *turns)
        assert _answer(again) == _answer(expected)
        assert again.usage.plan.restored_disk == again.usage.plan.restored
        restored.append(again.usage.plan.restored)
        _close(second)
    assert 0 < restored[0] < restored[1], "a later crash loses less"
