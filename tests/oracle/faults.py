"""Faults to plant in an engine. The check of an answer must report each of them.

A check that never fails proves nothing. Therefore the tests play the first turn of chat A, plant a
fault and play the second turn with the check on. A planted fault is a zeroed state, the state after
one more token, the state of another chat, or a prompt that lacks a turn. In a model without
recurrent layers, the K/V get these faults instead of the recurrent state. The check compares logits
with the logits of the bare model. A fault must make a difference above `VISIBLE`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import mlx.core as mx
from typing_extensions import override

from app.cli.player import ScriptPlayer
from app.cli.script import parse_step
from app.cli.step_report import StepReport
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
# The message is short. While the engine reads a long message, a layer that forgets fast could lose
# the fault.
SECOND: Step = {"op": "send", "chat": "A", "text": "And?", "max_tokens": 4}
A, B = ConversationId("A"), ConversationId("B")

# Smallest difference that shows a fault, relative to the logits' standard deviation. Rounding
# stays below 2e-5 on these models.
VISIBLE = 1e-3


def play(player: ScriptPlayer, step: Step) -> StepReport:
    (report,) = player.play(parse_step(json.dumps(step)))
    return report


def play_with_fault(client: InlineClient, plant: Callable[[InlineClient], None]) -> StepReport:
    """Plant a fault after a chat's first turn and return the report of its second turn."""
    player = ScriptPlayer(client, Path(), check=True)
    play(player, FIRST)
    play(player, OTHER)
    plant(client)
    return play(player, SECOND)


def play_forgetfully(client: ForgetfulClient) -> StepReport:
    """Play two turns and return the report of the second, whose prompt lacks the first turn."""
    player = ScriptPlayer(client, Path(), check=True)
    play(player, FIRST)
    return play(player, SECOND)


class ForgetfulClient(InlineClient):
    """An engine client that removes the first turn from every later request."""

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
    """Zero every snapshot of chat A.

    If the model has no recurrent layers, zero the keys of chat A instead.
    """
    if not _points_with_states(client):
        _shift_kv(client, 0)
    for node in _points_with_states(client):
        assert node.snapshot is not None
        node.snapshot.states = tuple(map_arrays(mx.zeros_like, s) for s in node.snapshot.states)


def plant_one_ahead(client: InlineClient) -> None:
    """Replace every snapshot of chat A by the state after one more token.

    If the model has no recurrent layers, shift the keys of chat A by one token instead.
    """
    model = client.core.model
    assert model is not None
    if not _points_with_states(client):
        _shift_kv(client, 1)
    for node in _points_with_states(client):
        assert node.snapshot is not None
        caches = model.adapter.new_caches()
        model.adapter.forward([*_path_ids(node), 40], caches)
        leaves = Leaves.of(caches)
        _put_states(node, capture(leaves, node.end, node.snapshot.kind).states)


def plant_other_chat(client: InlineClient) -> None:
    """Replace every snapshot of chat A by a snapshot of chat B.

    If the model has no recurrent layers, overwrite the K/V of chat A with those of chat B instead.
    """
    mine, theirs = _points_with_states(client), _points(client, B)
    if not mine:
        _put_other_kv(client)
    for node in mine:
        assert node.snapshot is not None
        # Take a snapshot of another kind. Snapshots of one kind could be equal: they follow the
        # same template tokens, and a short convolution remembers only the last tokens.
        other = next(n for n in theirs if n.snapshot and n.snapshot.kind != node.snapshot.kind)
        assert other.snapshot is not None
        _put_states(node, other.snapshot.states)


PLANTS: tuple[Callable[[InlineClient], None], ...] = (
    plant_zeros,
    plant_one_ahead,
    plant_other_chat,
)


def _points(client: InlineClient, user: ConversationId) -> list[KvNode]:
    """Return the nodes that have a snapshot and that only `user` uses, shallowest first."""
    nodes = [n for n in cache_of(client).holdings.tree.nodes() if n.snapshot and n.users == {user}]
    return sorted(nodes, key=lambda node: node.end)


def _points_with_states(client: InlineClient) -> list[KvNode]:
    return [node for node in _points(client, A) if node.snapshot and node.snapshot.states]


def _path_ids(node: KvNode) -> list[int]:
    above = reversed(list(ancestry(node)))
    return [token_id for ancestor in above for token_id in ancestor.token_ids]


def _shift_kv(client: InlineClient, by: int) -> None:
    """Shift the keys of chat A by a number of tokens. If the number is 0, zero the keys instead."""

    def rolled(keys: mx.array) -> mx.array:
        if not by:
            return mx.zeros_like(keys)
        return mx.concatenate([keys[..., -by:, :], keys[..., :-by, :]], axis=-2)

    hot = cache_of(client).holdings.parked.get(A)
    assert hot is not None
    for leaf in hot.leaves.kv:
        leaf.keys = map_arrays(rolled, leaf.keys)


def _put_other_kv(client: InlineClient) -> None:
    """Overwrite the K/V of chat A with those of chat B."""
    hot, other = (
        cache_of(client).holdings.parked.get(A),
        cache_of(client).holdings.parked.get(B),
    )
    assert hot is not None
    assert other is not None
    num_tokens = min(hot.num_tokens, other.num_tokens)
    foreign = copy_range(other.leaves, 0, num_tokens)
    for leaf, pair in zip(hot.leaves.kv, foreign.leaves, strict=True):
        for own, array in zip(arrays_in((leaf.keys, leaf.values)), arrays_in(pair), strict=True):
            own[..., :num_tokens, :] = array


def _put_states(node: KvNode, foreign: tuple[object, ...]) -> None:
    assert node.snapshot is not None
    pairs = zip(node.snapshot.states, foreign, strict=True)
    node.snapshot.states = tuple(_grafted(own, other) for own, other in pairs)


def _grafted(own: object, other: object) -> object:
    """Return a copy of `own` with its arrays replaced by the arrays in `other`.

    Counts stay as they are, because the engine checks counts itself.
    """
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
    """Return `other`, cut or zero-padded at its front to the number of rows in `own`.

    Rows are counted along the second-last axis. If any other axis differs in size, return `own`.
    """
    if own.ndim < 2 or (own.shape[:-2], own.shape[-1]) != (other.shape[:-2], other.shape[-1]):
        return own
    num_rows, num_others = own.shape[-2], other.shape[-2]
    missing = mx.zeros((*own.shape[:-2], max(0, num_rows - num_others), own.shape[-1]), own.dtype)
    return mx.concatenate([missing, other[..., max(0, num_others - num_rows) :, :]], axis=-2)
