"""The check is not blind: every planted fault is reported, for every model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import pytest
from typing_extensions import override

from app.cli.player import ScriptPlayer, StepReport
from app.cli.script import parse_step
from engine.cache.kv import copy_range
from engine.cache.layout import Leaves
from engine.cache.prefix_cache import KvNode, PrefixCache
from engine.cache.radix import ancestry
from engine.cache.snapshot import capture
from engine.cache.trees import arrays_in, map_arrays
from engine.events import Command, Submit
from engine.types import ConversationId
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import CONFIGS, Template

Step = dict[str, object]

FIRST: Step = {"op": "send", "chat": "A", "text": "Please write a short story.", "max_tokens": 8}
OTHER: Step = {"op": "send", "chat": "B", "text": "What is the list of numbers?", "max_tokens": 8}
SECOND: Step = {"op": "send", "chat": "A", "text": "And another one?", "max_tokens": 8}
A, B = ConversationId("A"), ConversationId("B")

# Rounding stays below 2e-5 of the logits' deviation on these models.
VISIBLE = 1e-3


def play(player: ScriptPlayer, step: dict[str, object]) -> StepReport:
    (report,) = player.play(parse_step(json.dumps(step)))
    return report


def cache_of(client: InlineClient) -> PrefixCache:
    assert client.core.cache is not None
    return client.core.cache


def points(client: InlineClient, user: ConversationId) -> list[KvNode]:
    """Nodes with a state that only this conversation uses, shallowest first."""
    nodes = [n for n in cache_of(client).nodes() if n.snapshot and n.users == {user}]
    return sorted(nodes, key=lambda node: node.end)


def path_ids(node: KvNode) -> list[int]:
    above = reversed(list(ancestry(node)))
    return [token_id for ancestor in above for token_id in ancestor.token_ids]


def shift_kv(client: InlineClient, by: int) -> None:
    """Roll A's keys along the tokens; by 0 zeroes them."""

    def rolled(keys: mx.array) -> mx.array:
        if not by:
            return mx.zeros_like(keys)
        return mx.concatenate([keys[..., -by:, :], keys[..., :-by, :]], axis=-2)

    hot = cache_of(client).parked(A)
    assert hot is not None
    for leaf in hot.leaves.kv:
        leaf.keys = map_arrays(rolled, leaf.keys)


def put_arrays(node: KvNode, foreign: object) -> None:
    """Other arrays in a node's state, its counts left alone: the engine itself checks those."""
    assert node.snapshot is not None
    arrays = arrays_in(foreign)

    def fitted(own: mx.array) -> mx.array:
        other = next(arrays)
        short = own.shape[-2] - other.shape[-2]
        if short > 0:
            other = mx.concatenate([mx.zeros_like(other)[..., :short, :], other], axis=-2)
        return other[..., -own.shape[-2] :, :]

    node.snapshot.states = tuple(map_arrays(fitted, state) for state in node.snapshot.states)


def plant_zeros(client: InlineClient) -> None:
    if not points_with_states(client):
        shift_kv(client, 0)
    for node in points_with_states(client):
        assert node.snapshot is not None
        node.snapshot.states = tuple(map_arrays(mx.zeros_like, s) for s in node.snapshot.states)


def plant_one_ahead(client: InlineClient) -> None:
    model = client.core.model
    assert model is not None
    if not points_with_states(client):
        shift_kv(client, 1)
    for node in points_with_states(client):
        assert node.snapshot is not None
        caches = model.adapter.new_caches()
        model.adapter.forward([*path_ids(node), 40], caches)
        leaves = Leaves.of(caches)
        put_arrays(node, capture(leaves.aux, node.end, node.snapshot.kind).states)


def plant_other_chat(client: InlineClient) -> None:
    mine, theirs = points_with_states(client), points(client, B)
    if not mine:
        hot, other = cache_of(client).parked(A), cache_of(client).parked(B)
        assert hot is not None
        assert other is not None
        n_tokens = min(hot.n_tokens, other.n_tokens)
        foreign = copy_range(other.leaves.kv, 0, n_tokens)
        for leaf, pair in zip(hot.leaves.kv, foreign.leaves, strict=True):
            for own, array in zip(
                arrays_in((leaf.keys, leaf.values)), arrays_in(pair), strict=True
            ):
                own[..., :n_tokens, :] = array
    for node in mine:
        assert node.snapshot is not None
        # Another place of the other chat: a short convolution forgets all but the last tokens,
        # and those are the same template text where the same kind of point lies.
        other = next(n for n in theirs if n.snapshot and n.snapshot.kind != node.snapshot.kind)
        assert other.snapshot is not None
        put_arrays(node, other.snapshot.states)


def points_with_states(client: InlineClient) -> list[KvNode]:
    return [node for node in points(client, A) if node.snapshot and node.snapshot.states]


@pytest.mark.slow
@pytest.mark.parametrize("plant", [plant_zeros, plant_one_ahead, plant_other_chat])
@pytest.mark.parametrize("name", list(CONFIGS))
def test_wrong_state_is_reported(open_tiny: OpenTiny, name: str, plant: object) -> None:
    client = open_tiny(name, Template.KEEPING)
    player = ScriptPlayer(client, Path(), check=True)
    assert play(player, FIRST).holds
    assert play(player, OTHER).holds
    assert callable(plant)
    plant(client)
    report = play(player, SECOND)

    assert report.restored > 10
    assert report.check is not None
    assert not report.holds
    assert report.check.max_difference > VISIBLE


class ForgetfulClient(InlineClient):
    """Leaves the first turn out of every later request."""

    @override
    def send(self, command: Command) -> None:
        if isinstance(command, Submit) and len(command.request.messages) > 2:
            kept = command.request.messages[2:]
            new = frozenset({len(kept) - 1})
            command = replace(
                command, request=replace(command.request, messages=kept, new_messages=new)
            )
        super().send(command)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(CONFIGS))
def test_message_left_out_is_reported(open_tiny: OpenTiny, name: str) -> None:
    client = open_tiny(name, Template.KEEPING, client_type=ForgetfulClient)
    player = ScriptPlayer(client, Path(), check=True)
    assert play(player, FIRST).holds
    report = play(player, SECOND)

    assert report.check is not None
    assert report.check.equal
    assert not report.check.prompt_equal
    assert "the prompt reads" in report.check.detail


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_another_token_than_the_logits_give_is_reported(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    client = open_tiny("lfm2", Template.KEEPING)
    player = ScriptPlayer(client, Path(), check=True)
    step = FIRST | {"temperature": temperature}

    def least_likely(log_probs: mx.array, **_: object) -> mx.array:
        return mx.argmin(log_probs)

    assert play(player, step).holds
    with monkeypatch.context() as patch:
        patch.setattr("engine.runner.runner.draw", least_likely)
        report = play(player, step)

    assert report.check is not None
    assert report.check.max_difference < VISIBLE
    assert report.check.first_difference == 0
