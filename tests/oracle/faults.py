"""Wrong states, planted in an engine's prefix cache: what the check must never miss."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import mlx.core as mx
from typing_extensions import override

from app.cli.player import ScriptPlayer, StepReport
from app.cli.script import parse_step
from engine.cache.hot import KvNode
from engine.cache.kv import copy_range
from engine.cache.layout import Leaves
from engine.cache.radix import ancestry
from engine.cache.snapshot import capture
from engine.cache.trees import arrays_in, map_arrays
from engine.events import Command, Submit
from engine.types import ConversationId
from tests.fakes.asking import cache_of
from tests.fakes.inline_engine import InlineClient

Step = dict[str, object]

FIRST: Step = {"op": "send", "chat": "A", "text": "Please write a short story.", "max_tokens": 4}
OTHER: Step = {"op": "send", "chat": "B", "text": "What is the list of numbers?", "max_tokens": 4}
# Short: a layer that forgets fast has hardly forgotten the fault when the reply begins.
SECOND: Step = {"op": "send", "chat": "A", "text": "And?", "max_tokens": 4}
A, B = ConversationId("A"), ConversationId("B")

# Rounding stays below 2e-5 of the logits' deviation on these models.
VISIBLE = 1e-3


def play(player: ScriptPlayer, step: Step) -> StepReport:
    (report,) = player.play(parse_step(json.dumps(step)))
    return report


def play_with_fault(client: InlineClient, plant: Callable[[InlineClient], None]) -> StepReport:
    """The second turn of a chat in whose state a fault was planted after the first."""
    player = ScriptPlayer(client, Path(), check=True)
    play(player, FIRST)
    play(player, OTHER)
    plant(client)
    return play(player, SECOND)


def play_forgetfully(client: ForgetfulClient) -> StepReport:
    """The second turn of a chat whose first turn was left out of its prompt."""
    player = ScriptPlayer(client, Path(), check=True)
    play(player, FIRST)
    return play(player, SECOND)


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


def plant_zeros(client: InlineClient) -> None:
    if not _points_with_states(client):
        _shift_kv(client, 0)
    for node in _points_with_states(client):
        assert node.snapshot is not None
        node.snapshot.states = tuple(map_arrays(mx.zeros_like, s) for s in node.snapshot.states)


def plant_one_ahead(client: InlineClient) -> None:
    model = client.core.model
    assert model is not None
    if not _points_with_states(client):
        _shift_kv(client, 1)
    for node in _points_with_states(client):
        assert node.snapshot is not None
        caches = model.adapter.new_caches()
        model.adapter.forward([*_path_ids(node), 40], caches)
        leaves = Leaves.of(caches)
        _put_states(node, capture(leaves.aux, node.end, node.snapshot.kind).states)


def plant_other_chat(client: InlineClient) -> None:
    mine, theirs = _points_with_states(client), _points(client, B)
    if not mine:
        _put_other_kv(client)
    for node in mine:
        assert node.snapshot is not None
        # Another place of the other chat: a short convolution forgets all but the last tokens,
        # and those are the same template text where the same kind of point lies.
        other = next(n for n in theirs if n.snapshot and n.snapshot.kind != node.snapshot.kind)
        assert other.snapshot is not None
        _put_states(node, other.snapshot.states)


PLANTS: tuple[Callable[[InlineClient], None], ...] = (
    plant_zeros,
    plant_one_ahead,
    plant_other_chat,
)


def _points(client: InlineClient, user: ConversationId) -> list[KvNode]:
    """Nodes with a state that only this conversation uses, shallowest first."""
    nodes = [n for n in cache_of(client).nodes() if n.snapshot and n.users == {user}]
    return sorted(nodes, key=lambda node: node.end)


def _points_with_states(client: InlineClient) -> list[KvNode]:
    return [node for node in _points(client, A) if node.snapshot and node.snapshot.states]


def _path_ids(node: KvNode) -> list[int]:
    above = reversed(list(ancestry(node)))
    return [token_id for ancestor in above for token_id in ancestor.token_ids]


def _shift_kv(client: InlineClient, by: int) -> None:
    """Roll A's keys along the tokens; by 0 zeroes them."""

    def rolled(keys: mx.array) -> mx.array:
        if not by:
            return mx.zeros_like(keys)
        return mx.concatenate([keys[..., -by:, :], keys[..., :-by, :]], axis=-2)

    hot = cache_of(client).parked_cache(A)
    assert hot is not None
    for leaf in hot.leaves.kv:
        leaf.keys = map_arrays(rolled, leaf.keys)


def _put_other_kv(client: InlineClient) -> None:
    """B's K/V in A's buffers."""
    hot, other = cache_of(client).parked_cache(A), cache_of(client).parked_cache(B)
    assert hot is not None
    assert other is not None
    num_tokens = min(hot.num_tokens, other.num_tokens)
    foreign = copy_range(other.leaves.kv, 0, num_tokens)
    for leaf, pair in zip(hot.leaves.kv, foreign.leaves, strict=True):
        for own, array in zip(arrays_in((leaf.keys, leaf.values)), arrays_in(pair), strict=True):
            own[..., :num_tokens, :] = array


def _put_states(node: KvNode, foreign: tuple[object, ...]) -> None:
    assert node.snapshot is not None
    pairs = zip(node.snapshot.states, foreign, strict=True)
    node.snapshot.states = tuple(_grafted(own, other) for own, other in pairs)


def _grafted(own: object, other: object) -> object:
    """other's arrays in own's place; own's counts are left alone: the engine itself checks those."""
    if isinstance(own, mx.array) and isinstance(other, mx.array):
        return _fitted(own, other)
    if isinstance(own, dict):
        named, others = cast("dict[str, object]", own), cast("dict[str, object]", other)
        return {key: _grafted(value, others[key]) for key, value in named.items()}
    if isinstance(own, list):
        pairs = zip(cast("list[object]", own), cast("list[object]", other), strict=True)
        return [_grafted(mine, theirs) for mine, theirs in pairs]
    return own


def _fitted(own: mx.array, other: mx.array) -> mx.array:
    """The newest rows of other, as many as own has."""
    if own.ndim < 2 or (own.shape[:-2], own.shape[-1]) != (other.shape[:-2], other.shape[-1]):
        return own
    num_rows, num_others = own.shape[-2], other.shape[-2]
    missing = mx.zeros((*own.shape[:-2], max(0, num_rows - num_others), own.shape[-1]), own.dtype)
    return mx.concatenate([missing, other[..., max(0, num_others - num_rows) :, :]], axis=-2)
