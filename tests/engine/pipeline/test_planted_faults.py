"""A fault that is planted in the state of a follower is reported by the check of the next answer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, cast

import mlx.core as mx
import pytest

from engine.cache import kv
from engine.cache.layout import Leaves
from engine.cache.points import PointKind
from engine.cache.radix import path_run
from engine.cache.snapshot import Snapshot, capture
from engine.cache.trees import map_arrays
from engine.pipeline.far import FollowerState, StageCaches
from engine.types import ConversationId
from tests.fakes.asking import cache_of
from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.staged_engine import StagedClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template
from tests.oracle.faults import VISIBLE, play_with_fault
from tests.oracle.stage_commands import CONFIG, SPLITS


def held_snapshots(client: StagedClient, chat: str) -> list[tuple[Snapshot, list[int]]]:
    """Return the snapshots that rank 1 holds for a chat alone, with the tokens before them."""
    client.opener.relay.flush()
    found: list[tuple[Snapshot, list[int]]] = []
    for node in cache_of(client).holdings.tree.nodes():
        if node.snapshot is not None and node.users == {ConversationId(chat)}:
            (state,) = node.snapshot.far
            held = client.followers[0].held[cast("FollowerState", state).number]
            found.append((cast("Snapshot", held), list(path_run(node).token_ids)))
    return found


def put_zeros(client: StagedClient) -> None:
    for snapshot, _ in held_snapshots(client, "A"):
        snapshot.states = tuple(map_arrays(mx.zeros_like, state) for state in snapshot.states)


def put_other_chat(client: StagedClient) -> None:
    others = [snapshot.states for snapshot, _ in held_snapshots(client, "B")]
    for number, (snapshot, _) in enumerate(held_snapshots(client, "A")):
        snapshot.states = others[number % len(others) - 1]


def put_one_ahead(client: StagedClient) -> None:
    """Replace the states of chat A by those after one more token."""
    assert client.core.model is not None
    adapter = client.core.model.adapter
    for snapshot, token_ids in held_snapshots(client, "A"):
        caches = adapter.new_caches()
        adapter.forward([*token_ids, 40], caches)
        ahead = capture(Leaves.of(caches), len(token_ids) + 1, PointKind.TAIL)
        client.opener.relay.flush()
        (state,) = ahead.far
        held = client.followers[0].held[cast("FollowerState", state).number]
        snapshot.states = cast("Snapshot", held).states


@pytest.mark.parametrize(
    ("name", "change"),
    rest_in_soak(
        product(["qwen3_5_moe", "mamba2"], [put_zeros, put_other_chat, put_one_ahead]),
        ("qwen3_5_moe", put_zeros),
        ("qwen3_5_moe", put_other_chat),
        ("mamba2", put_one_ahead),
    ),
)
def test_faulty_state_of_a_follower_is_reported_by_the_check(
    tiny_model: TinyModel, name: str, change: Callable[[StagedClient], None]
) -> None:
    client = StagedClient(tiny_model(name, Template.KEEPING), SPLITS[name], CONFIG)

    report = play_with_fault(client, lambda _: change(client))

    assert report.check is not None
    assert not report.holds
    assert min(report.check.max_difference, report.check.replay_difference) > VISIBLE


def held_leaves(client: StagedClient, chat: str, rank: int) -> Leaves:
    """Return the live caches that a follower holds for a chat."""
    hot = cache_of(client).holdings.parked.get(ConversationId(chat))
    assert hot is not None
    client.opener.relay.flush()
    (far,) = hot.leaves.far
    row: Any = client.followers[rank - 1].held[cast("StageCaches", far).number]
    return row.leaves


def put_zero_keys(client: StagedClient, rank: int) -> None:
    for leaf in held_leaves(client, "A", rank).kv:
        leaf.keys = map_arrays(mx.zeros_like, leaf.keys)


def one_ahead(x: mx.array) -> mx.array:
    return mx.concatenate([x[..., -1:, :], x[..., :-1, :]], axis=-2)


def put_keys_one_ahead(client: StagedClient, rank: int) -> None:
    """Move the keys of chat A by one token."""
    for leaf in held_leaves(client, "A", rank).kv:
        leaf.keys = map_arrays(one_ahead, leaf.keys)


def put_kv_of_other_chat(client: StagedClient, rank: int) -> None:
    own, other = held_leaves(client, "A", rank), held_leaves(client, "B", rank)
    num_tokens = min(leaf.offset for leaf in (*own.kv, *other.kv))
    ends = [leaf.offset for leaf in own.kv]
    rest = kv.copy_range(own, num_tokens, ends[0]) if ends[0] > num_tokens else None
    kv.cut(own, 0)
    parts = [kv.copy_range(other, 0, num_tokens), *([rest] if rest else [])]
    kv.append_slices(own, [one.range(0, one.num_tokens) for one in parts], ends[0], ends[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "rank"),
    rest_in_soak(
        product([put_zero_keys, put_keys_one_ahead, put_kv_of_other_chat], [1, 2]),
        (put_zero_keys, 2),
        (put_keys_one_ahead, 1),
        (put_kv_of_other_chat, 2),
    ),
)
def test_faulty_kv_of_a_follower_are_reported_by_the_check(
    tiny_model: TinyModel, change: Callable[[StagedClient, int], None], rank: int
) -> None:
    client = StagedClient(tiny_model("deep_llama", Template.KEEPING), SPLITS["deep_llama"], CONFIG)

    report = play_with_fault(client, lambda _: change(client, rank))

    assert report.check is not None
    assert not report.holds
    assert min(report.check.max_difference, report.check.replay_difference) > VISIBLE


@pytest.mark.slow
def test_kv_of_a_follower_without_a_fault_pass_the_check(tiny_model: TinyModel) -> None:
    client = StagedClient(tiny_model("deep_llama", Template.KEEPING), SPLITS["deep_llama"], CONFIG)

    report = play_with_fault(client, lambda _: None)

    assert report.holds
    assert report.restored > 0
