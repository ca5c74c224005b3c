"""The prefix cache behind a real engine: restoring, sharing, evicting, copying and failing."""

from __future__ import annotations

import gc
import time
import weakref
from typing import Any, cast

import mlx.core as mx
import pytest

from engine.cache import kv
from engine.cache.eviction import Eviction
from engine.cache.points import PointKind
from engine.cache.trees import map_arrays
from engine.events import LoadModel, ModelLoaded, ModelLoading, RequestFailed, Submit
from engine.models.adapter import ModelAdapter
from engine.questions import Evict, EvictWhat, Forget
from engine.runner.closing import Closing
from engine.runner.sequence import Sequence
from engine.sequences import common_prefix_len
from engine.types import ConversationId, Message, Request, RequestId, Role
from tests.fakes.asking import ask, cache_of, reply_of, user
from tests.fakes.cache_feeder import CacheFeeder
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import Template


def fail_to_answer(client: InlineClient, *messages: Message) -> None:
    request = Request(
        request_id=RequestId("broken"),
        conversation_id=ConversationId("A"),
        messages=messages,
        new_messages=frozenset({len(messages) - 1}),
    )
    client.send(Submit(request, time.perf_counter()))
    assert isinstance(client.run_until_idle()[-1], RequestFailed)


def test_continuing_and_switching_copy_nothing(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    first = ask(client, user("one"))
    other = ask(client, user("six"), chat="B")
    before = cache_of(client).holdings.counters.copied_bytes
    again = ask(client, user("one"), reply_of(first), user("more"))
    ask(client, user("six"), reply_of(other), user("more"), chat="B")

    assert cache_of(client).holdings.counters.copied_bytes == before
    assert again.usage.plan.replayed == 0
    assert again.usage.plan.restored > again.usage.plan.read


def test_forgotten_chat_leaves_the_state_that_it_shared_with_another(open_tiny: OpenTiny) -> None:
    client = open_tiny("lfm2")
    system = Message(role=Role.SYSTEM, content="You are brief. " * 4)
    ask(client, system, user("one"), chat="A")
    other = ask(client, system, user("two"), chat="B")
    client.ask(Forget(ConversationId("A")))
    client.ask(Evict(EvictWhat.HOT))

    again = ask(client, system, user("two"), reply_of(other), user("more"), chat="B")

    assert again.usage.plan.replayed == 0
    assert again.usage.plan.restored >= len(other.prompt_ids)


def test_side_request_leaves_the_cache_as_it_was(open_tiny: OpenTiny) -> None:
    client = open_tiny("lfm2")
    ask(client, user("one"))
    cache = cache_of(client)
    before = (
        [(node.token_ids, node.snapshot) for node in cache.holdings.tree.nodes()],
        cache.holdings.ledger(),
    )

    ask(client, user("A title, please."), side=True)

    assert (
        [(node.token_ids, node.snapshot) for node in cache.holdings.tree.nodes()],
        cache.holdings.ledger(),
    ) == before


def test_third_version_of_a_message_resumes_where_the_first_two_differ(open_tiny: OpenTiny) -> None:
    client = open_tiny("lfm2")
    one, two, three = (
        ask(client, user(f"A list of the small boats, please: {end}"))
        for end in ("first", "word", "Thank you")
    )
    forked = common_prefix_len(one.prompt_ids, two.prompt_ids)

    assert forked == common_prefix_len(two.prompt_ids, three.prompt_ids)
    assert two.usage.plan.restored < forked
    assert three.usage.plan.restored == forked


def test_prompt_that_forks_off_copies_only_the_abandoned_kv(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    cache = cache_of(client)
    first = ask(client, user("a long first message " * 20))
    ask(client, user("a long first message " * 20), reply_of(first), user("old"))
    hot = cache.holdings.parked.get(ConversationId("A"))
    assert hot is not None
    held = hot.num_tokens
    before = cache.holdings.counters.copied_bytes
    edited = ask(client, user("a long first message " * 20), reply_of(first), user("new"))
    model = client.core.model
    assert model is not None
    abandoned = held - edited.usage.plan.restored

    assert edited.usage.plan.replayed == 0
    copied = cache.holdings.counters.copied_bytes - before
    assert copied == abandoned * model.layout.kv_bytes_per_token


def test_conversations_share_the_tokens_of_a_system_prompt(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    system = Message(role=Role.SYSTEM, content="You are a list of numbers.")
    ask(client, system, user("one"))
    other = ask(client, system, user("two"), chat="B")

    assert other.usage.plan.restored > 10


def test_regenerate_feeds_nothing(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    first = ask(client, user("one"))
    again = ask(client, user("one"))

    assert again.usage.plan.restored == again.usage.plan.prompt_tokens
    assert again.content == first.content


def test_prompt_without_stored_logits_feeds_its_last_token(open_tiny: OpenTiny) -> None:
    client = open_tiny("llama")
    first = ask(client, user("one"))
    for node in cache_of(client).holdings.tree.nodes():
        node.snapshot = None
    again = ask(client, user("one"))

    assert again.usage.plan.restored == first.usage.plan.prompt_tokens - 1
    assert again.reply.token_ids == first.reply.token_ids


def test_side_request_leaves_no_trace(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    ask(client, user("one"))
    cache = cache_of(client)
    before = [(n.token_ids, n.last_used, n.snapshot) for n in cache.holdings.tree.nodes()]
    ask(client, user("one title please"), side=True)

    assert [(n.token_ids, n.last_used, n.snapshot) for n in cache.holdings.tree.nodes()] == before
    assert cache.holdings.parked.get(ConversationId("A")) is not None


@pytest.mark.parametrize("what", list(EvictWhat))
def test_answer_after_eviction_is_the_same(open_tiny: OpenTiny, what: EvictWhat) -> None:
    client = open_tiny()
    first = ask(client, user("one"))
    turn = (user("one"), reply_of(first), user("more"))
    second = ask(client, *turn)
    client.ask(Evict(what))
    client.run_until_idle()
    again = ask(client, *turn)

    assert again.content == second.content
    assert (again.usage.plan.restored == 0) == (what is not EvictWhat.HOT)


def test_forget_drops_only_the_named_conversation(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    ask(client, user("one"))
    ask(client, user("two"), chat="B")
    client.ask(Forget(ConversationId("A")))
    client.run_until_idle()

    assert ask(client, user("two"), chat="B").usage.plan.read == 0
    plan = ask(client, user("one")).usage.plan
    assert plan.restored < plan.prompt_tokens


@pytest.mark.slow
def test_small_budget_is_kept_and_changes_no_answer(open_tiny: OpenTiny) -> None:
    roomy, tight = open_tiny(), open_tiny(cache_bytes=500_000, max_hot=2)
    for client_turn in range(2):
        for chat in "ABC":
            text = user(f"{chat} {client_turn} thank you, could you say that again?")
            assert ask(roomy, text, chat=chat).content == ask(tight, text, chat=chat).content
    statistics = cache_of(tight).statistics()

    assert statistics.total_bytes <= 500_000
    assert statistics.evictions > 0


def test_resume_point_with_wrong_offset_is_dropped(open_tiny: OpenTiny) -> None:
    client = open_tiny("gemma3")
    cache = cache_of(client)
    first = ask(client, user("one"))
    turn = (user("one"), reply_of(first), user("more"))
    for node in cache.holdings.tree.nodes():
        if node.snapshot is not None:
            # Make the offset of each rotating window disagree with the number of tokens.
            node.snapshot.states = tuple(
                cast("dict[str, object]", state) | {"offset": node.end + 1}
                for state in node.snapshot.states
            )
    answered = ask(client, *turn)

    assert cache.holdings.counters.restore_faults > 0
    assert answered.content == ask(open_tiny("gemma3"), *turn).content


def test_reload_of_the_same_model_keeps_cached_conversations(
    open_tiny: OpenTiny, tiny_model: TinyModel
) -> None:
    client = open_tiny()
    ask(client, user("one"))
    client.send(LoadModel(str(tiny_model("qwen3_5", Template.KEEPING))))
    assert isinstance(client.run_until_idle()[-1], ModelLoaded)

    assert ask(client, user("one")).usage.plan.read == 0
    client.send(LoadModel(str(tiny_model("llama", Template.KEEPING))))
    client.run_until_idle()
    assert ask(client, user("one")).usage.plan.restored == 0


def test_old_weights_are_freed_before_the_next_model_loads(
    open_tiny: OpenTiny, tiny_model: TinyModel
) -> None:
    client = open_tiny()
    ask(client, user("one"))
    assert client.core.model is not None
    adapter = weakref.ref(client.core.model.adapter)
    client.send(LoadModel(str(tiny_model("qwen3_5", Template.KEEPING))))
    while not isinstance(client.next_event(), ModelLoading):
        assert adapter() is not None
    assert adapter() is None
    client.run_until_idle()
    assert ask(client, user("one")).usage.plan.read == 0


@pytest.mark.slow
def test_memory_held_does_not_exceed_the_ledger(open_tiny: OpenTiny) -> None:
    client = open_tiny("llama")
    cache = cache_of(client)
    ask(client, user("warm"))
    gc.collect()
    mx.clear_cache()
    before, counted = mx.get_active_memory(), cache.holdings.ledger().total_bytes
    for number in range(6):
        ask(client, user(f"{number} quick brown fox jumps " * 3), chat=str(number))
    gc.collect()
    mx.clear_cache()
    held = mx.get_active_memory() - before
    promised = cache.holdings.ledger().total_bytes - counted

    assert held <= promised * 1.05


def test_failure_while_publishing_loses_only_the_cached_state(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny()

    def failing(*_: object) -> None:
        raise RuntimeError("no memory for this")

    with monkeypatch.context() as patch:
        patch.setattr(Eviction, "keep_to_limits", failing)
        ask(client, user("one"))
    cache_of(client).check_invariants()
    assert ask(client, user("one")).usage.plan.restored == 0


def test_failure_while_restoring_leaves_no_lease(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny()
    first = ask(client, user("one"))
    client.ask(Evict(EvictWhat.HOT))
    client.run_until_idle()

    def failing(*_: object) -> int:
        raise RuntimeError("no memory for this")

    turn = (user("one"), reply_of(first), user("more"))
    with monkeypatch.context() as patch:
        patch.setattr("engine.cache.kv.append_slices", failing)
        fail_to_answer(client, *turn)
    assert ask(client, *turn).usage.plan.replayed == 0


def test_failing_copy_leaves_the_cache_unchanged(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny("lfm2")
    first = ask(client, user("What is a boat?"))
    long = (user("What is a boat?"), reply_of(first), user("And a list?"))
    second = ask(client, *long)
    before = cache_of(client).statistics()

    def fail(*_: object) -> None:
        raise RuntimeError("no memory for this")

    with monkeypatch.context() as patch:
        patch.setattr("engine.cache.kv.copy_range", fail)
        fail_to_answer(client, user("What is a"))
    cache_of(client).check_invariants()
    after = cache_of(client).statistics()
    assert (after.num_nodes, after.num_hot) == (before.num_nodes, before.num_hot)
    assert ask(client, *long, reply_of(second), user("x")).usage.plan.replayed == 0


def test_request_out_of_memory_while_restoring_is_retried(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny("lfm2")
    first = ask(client, user("one"))
    cache_of(client).eviction.evict_hot()
    append, num_calls = kv.append_slices, 0

    def fail_once(*args: Any) -> int:
        nonlocal num_calls
        num_calls += 1
        if num_calls == 1:
            raise RuntimeError("[malloc] Unable to allocate 4294967296 bytes.")
        return append(*args)

    monkeypatch.setattr("engine.cache.kv.append_slices", fail_once)
    answer = ask(client, user("one"), reply_of(first), user("more"))

    assert num_calls == 1  # The retry copies nothing: all state has been evicted.
    assert answer.usage.plan.restored == 0
    cache_of(client).check_invariants()


def test_ended_request_leaves_no_mark_of_its_retry(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny("lfm2")
    forward, is_failing = ModelAdapter.forward, False

    def fail_once(*args: Any) -> Any:
        nonlocal is_failing
        if is_failing:
            is_failing = False
            raise RuntimeError("[malloc] Unable to allocate 4294967296 bytes.")
        return forward(*args)

    monkeypatch.setattr(ModelAdapter, "forward", fail_once)
    # Both requests have the same id. If the first left a mark, the second would fail.
    for text in ("one", "two"):
        is_failing = True
        ask(client, user(text))
        assert not is_failing


def test_reply_is_kept_if_its_closing_tokens_cannot_be_fed(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny("lfm2")
    feed = Closing._feed  # pyright: ignore[reportPrivateUsage]

    def fail_after(closing: Closing, sequence: Sequence, *, is_last: bool) -> bool:
        feed(closing, sequence, is_last=is_last)
        raise RuntimeError("no memory for this")

    with monkeypatch.context() as patch:
        patch.setattr(Closing, "_feed", fail_after)
        first = ask(client, user("one"))
    cache_of(client).check_invariants()
    plan = ask(client, user("one"), reply_of(first), user("more")).usage.plan

    assert plan.restored >= first.usage.plan.prompt_tokens
    assert plan.restored + plan.read + plan.replayed == plan.prompt_tokens


def test_publishing_a_read_ahead_does_not_advance_the_clock() -> None:
    feeder = CacheFeeder()
    feeder.turn("A", list(range(100)), {100: PointKind.TAIL})
    turns = feeder.cache.holdings.clock
    lease = feeder.start("B", list(range(500, 600)))
    feeder.feed(lease, list(range(500, 600)), {600: PointKind.TAIL})
    feeder.cache.publish(lease, is_turn=False)

    assert feeder.cache.holdings.clock == turns


def test_error_in_one_chat_keeps_the_state_shared_with_others(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = open_tiny()
    system = Message(role=Role.SYSTEM, content="You are a list of numbers. " * 5)
    ask(client, system, user("one"))
    other = ask(client, system, user("two"), chat="B")
    model = client.core.model
    assert model is not None

    def failing(*_: object) -> None:
        raise RuntimeError("a layer failed")

    with monkeypatch.context() as patch:
        patch.setattr(type(model.adapter), "forward", failing)
        request = Request(
            request_id=RequestId("broken"),
            conversation_id=ConversationId("A"),
            messages=(system, user("three")),
            new_messages=frozenset({1}),
        )
        client.send(Submit(request, time.perf_counter()))
        assert isinstance(client.run_until_idle()[-1], RequestFailed)
    again = ask(client, system, user("two"), reply_of(other), user("more"), chat="B")

    assert again.usage.plan.replayed == 0


def test_restoring_from_the_tree_copies_each_token_once(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    first = ask(client, user("quick brown fox " * 60))
    client.ask(Evict(EvictWhat.HOT))
    client.run_until_idle()
    before = cache_of(client).holdings.counters.copied_bytes
    turn = (user("quick brown fox " * 60), reply_of(first), user("more"))
    restored = ask(client, *turn).usage.plan.restored
    model = client.core.model
    assert model is not None

    copied = cache_of(client).holdings.counters.copied_bytes - before
    assert copied == restored * model.layout.kv_bytes_per_token


def test_snapshots_do_not_change_with_later_tokens(open_tiny: OpenTiny) -> None:
    client = open_tiny()
    ask(client, user("one"))
    kept = {
        id(node): [map_arrays(lambda x: x + 0, s) for s in node.snapshot.states]
        for node in cache_of(client).holdings.tree.nodes()
        if node.snapshot is not None
    }
    for number in range(3):
        ask(client, user(f"one {number}"))

    for node in cache_of(client).holdings.tree.nodes():
        if id(node) in kept and node.snapshot is not None:
            assert str(kept[id(node)]) == str(list(node.snapshot.states))
