"""The cached state by conversation: its sums are those of the ledger and of the disk at every moment."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.cache.points import PointKind
from engine.cache.shares import shares_in_memory
from engine.cache_figures import CacheReport, HeldChat, HeldChats
from engine.events import Shutdown
from engine.questions import EvictWhat
from engine.types import ConversationId, Message
from tests.fakes.asking import ask, cache_of, reply_of, submit, user
from tests.fakes.cache_feeder import CacheFeeder
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak

A, B = ConversationId("A"), ConversationId("B")
TAIL = PointKind.TAIL
# Kinds of models, and the number of moments at which the bytes are compared.
WALKS = [("qwen3_5", 80), *((kind, 250) for kind in ("llama", "qwen3_5", "gemma3", "mamba2"))]
MET = {"shared", "shared on disk", "in use", "pinned", "only on disk"}


def numbers(start: int, num_tokens: int) -> list[int]:
    return list(range(start, start + num_tokens))


def chat_of(report: HeldChats, conversation_id: str) -> HeldChat:
    (found,) = (one for one in report.chats if one.conversation_id == conversation_id)
    return found


def close(client: InlineClient) -> None:
    client.send(Shutdown())
    client.core.run()


@dataclass
class Walker:
    """A random user of one engine, who compares the two reports of the same moment."""

    client: InlineClient
    rng: random.Random
    chats: dict[str, list[Message]] = field(default_factory=dict[str, list[Message]])
    num_moments: int = 0
    kinds: set[str] = field(default_factory=set[str])

    def compare(self) -> HeldChats:
        """Put both questions at one moment, and take one step of the engine."""
        cache, chats = self.client.report_cache(), self.client.report_chats()
        figures, report = self.client.answer(cache), self.client.answer(chats)
        self.num_moments += 1
        assert_equal(figures, report)
        self.kinds.update(kinds_of(report))
        return report

    def finish(self) -> None:
        """Compare after each step, until the engine has no work."""
        while self.client.core.step(wait=False):
            self.compare()

    def act(self) -> None:
        chat = self.rng.choice("ABCDE")
        match self.rng.randrange(12):
            case 0:
                self._forget(chat)
            case 1:
                self.client.answer(self.client.evict(self.rng.choice(list(EvictWhat))))
            case 2:
                pinned = self.rng.sample("ABCDE", self.rng.randrange(3))
                self.client.pin(frozenset(map(ConversationId, pinned)))
            case 3:
                cache_of(self.client).set_budget(self.rng.choice([60_000, 200_000, 1 << 30]))
            case 4:
                self.chats[chat] = list(self.chats.get(self.rng.choice("ABCDE"), ()))
            case 5:
                del self.chats.get(chat, [])[2:]
            case _:
                self._talk(chat)

    def _talk(self, chat: str) -> None:
        """Send a message. Another conversation may be forgotten meanwhile."""
        messages = self.chats.setdefault(chat, [])
        messages.append(user(f"{chat if self.rng.random() < 0.5 else 'hello'} " * 30))
        submit(self.client, *messages, chat=chat)
        while self.client.core.step(wait=False):
            self.compare()
            if self.rng.random() < 0.05:
                self._forget(self.rng.choice("ABCDE"))
        messages.pop()
        messages += [user("hello " * 30), user("more")][: self.rng.randrange(3)]

    def _forget(self, chat: str) -> None:
        """Forget a conversation. At least the bytes that only it used are free then."""
        before = self.compare()
        asked = self.client.forget(ConversationId(chat), on_disk=self.rng.random() < 0.5)
        self.client.answer(asked)
        known = [one for one in before.chats if one.conversation_id == chat]
        after = self.compare()
        if known and not any(one.is_in_use for one in before.chats):
            assert before.total_bytes - after.total_bytes >= known[0].memory_bytes


def assert_equal(figures: CacheReport, report: HeldChats) -> None:
    statistics = figures.statistics
    assert report.total_bytes == statistics.total_bytes
    assert report.disk_bytes == statistics.disk_bytes
    assert report.budget_bytes == statistics.budget_bytes
    assert len({chat.conversation_id for chat in report.chats}) == len(report.chats)
    sizes = [size for chat in report.chats for size in (chat.memory_bytes, chat.disk_bytes)]
    others = [report.shared_bytes, report.unused_bytes, report.shared_disk_bytes]
    assert min([*sizes, *others]) >= 0


def kinds_of(report: HeldChats) -> Iterator[str]:
    """Yield the kinds of state that a report has, so that the walk is known to meet all."""
    if report.shared_bytes:
        yield "shared"
    if report.shared_disk_bytes:
        yield "shared on disk"
    for chat in report.chats:
        if chat.is_in_use:
            yield "in use"
        if chat.is_pinned:
            yield "pinned"
        if chat.disk_tokens and not chat.memory_bytes:
            yield "only on disk"


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "moments"), rest_in_soak(WALKS, ("qwen3_5", 80)))
def test_bytes_of_chats_equal_the_ledger_at_random_moments(
    open_tiny: OpenTiny, tmp_path: Path, kind: str, moments: int
) -> None:
    walker = Walker(open_tiny(kind, disk_folder=tmp_path, max_hot=3), random.Random(7))
    # Walk on until all kinds are met: the thread that writes to disk decides the moments.
    while walker.num_moments < moments or (walker.kinds != MET and walker.num_moments < 5_000):
        walker.act()
        walker.finish()
    close(walker.client)

    assert walker.kinds == MET


def test_a_chat_has_its_bytes_its_newest_branch_and_its_records(
    open_tiny: OpenTiny, tmp_path: Path
) -> None:
    client = open_tiny("qwen3_5", disk_folder=tmp_path)
    client.pin(frozenset({A}))
    first = user("one " * 40)
    finished = ask(client, first, chat="A")
    reply = reply_of(finished)
    longer = ask(client, first, reply, user("two " * 90), chat="A").usage.plan.prompt_tokens
    report = client.answer(client.report_chats())
    chat = chat_of(report, "A")

    assert chat.is_pinned
    assert not chat.is_in_use
    assert chat.memory_tokens >= longer
    assert chat.disk_tokens == chat.memory_tokens
    assert chat.memory_bytes == report.total_bytes > 0
    assert chat.disk_bytes == report.disk_bytes > 0
    assert report.model_bytes == client.core.model.facts.weight_bytes  # pyright: ignore[reportOptionalMemberAccess]

    shorter = ask(client, first, reply, user("three"), chat="A").usage.plan.prompt_tokens
    newest = chat_of(client.answer(client.report_chats()), "A")
    assert shorter <= newest.memory_tokens < longer
    assert newest.disk_tokens == chat.disk_tokens
    close(client)


def test_state_of_two_chats_belongs_to_neither() -> None:
    feeder = CacheFeeder()
    system = numbers(0, 1_000)
    feeder.turn("A", [*system, *numbers(5_000, 500)], {1_000: PointKind.SYSTEM, 1_500: TAIL})
    feeder.turn("B", [*system, *numbers(6_000, 300)], {1_300: TAIL})
    shares = shares_in_memory(feeder.cache.holdings)
    per_token, snapshot = feeder.layout.kv_bytes_per_token, feeder.layout.snapshot_bytes

    assert shares.shared == 1_000 * per_token + snapshot
    assert shares.num_tokens == {A: 1_500, B: 1_300}
    assert sum(shares.own.values()) + shares.shared == feeder.cache.holdings.ledger().total_bytes


def test_state_of_a_side_request_belongs_to_no_chat() -> None:
    feeder = CacheFeeder()
    lease = feeder.cache.acquire(A, [7], feeder.adapter.new_caches, room=8, side=True)
    feeder.feed(lease, numbers(0, 50), {50: TAIL})
    shares = shares_in_memory(feeder.cache.holdings)

    assert not shares.users
    assert shares.unused == feeder.cache.holdings.ledger().total_bytes > 0
    feeder.cache.abandon(lease)
