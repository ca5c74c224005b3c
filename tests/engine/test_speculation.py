"""Replies with verified drafts equal replies without, in tokens, cached state and replayed bits."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping, Sequence as Items

import pytest
from typing_extensions import override

from engine import core
from engine.events import RequestFinished, Submit
from engine.models.loader import LoadedModel
from engine.runner.drafting import Drafts, NoDrafts
from engine.runner.history import History
from engine.runner.sequence import Sequence
from engine.speculation.pace import MAX_PASS_LEN
from engine.types import (
    ConversationId,
    Request,
    RequestId,
    SamplingParams,
)
from tests.fakes.asking import cache_of, user
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.oracle.verifying import hold_to_the_oracle

# Models whose passes of several tokens have the bits of passes of one token, with MLX's own BLAS.
EXACT = ("qwen3_5", "lfm2", "llama")
# Models whose passes of several tokens round differently. Their replay is exact.
ROUNDED = ("falcon_h1", "mamba2")
SAMPLINGS = (
    SamplingParams(temperature=0.0),
    SamplingParams(temperature=0.3, seed=5, top_k=40),
    SamplingParams(
        temperature=0.7,
        seed=6,
        top_p=0.9,
        min_p=0.01,
        repetition_penalty=1.1,
        presence_penalty=0.2,
        xtc_probability=0.3,
    ),
)


class PlantedDrafts(NoDrafts):
    """A drafter that knows the replies, and makes some of its drafts wrong."""

    def __init__(self, replies: Mapping[str, Items[int]], *, right: float) -> None:
        self._replies = replies
        self._right = right
        self._random = random.Random(7)

    @override
    def may_propose(self, sequences: Items[Sequence]) -> bool:
        return bool(sequences) and self._random.random() < 0.8

    @override
    def propose(self, sequences: Items[Sequence]) -> Mapping[Sequence, Drafts]:
        found = {sequence: self._drafts(sequence) for sequence in sequences}
        return {sequence: drafts for sequence, drafts in found.items() if drafts}

    def _drafts(self, sequence: Sequence) -> Drafts:
        most = min(self._random.randint(0, MAX_PASS_LEN - 1), sequence.num_left - 1)
        known = self._replies[sequence.request.request_id]
        at = sequence.num_output
        drafts = known[at : at + max(0, most)]
        return tuple(
            token_id if self._random.random() < self._right else (token_id + 1) % 200
            for token_id in drafts
        )


def request_of(number: int, *, max_tokens: int = 40) -> Request:
    return Request(
        request_id=RequestId(f"r{number}"),
        conversation_id=ConversationId(f"{number}"),
        messages=(user(f"{number} " + "A list of boats. " * (1 + number)),),
        new_messages=frozenset({0}),
        sampling=SAMPLINGS[number % len(SAMPLINGS)],
        max_tokens=max_tokens,
        max_drafts=MAX_PASS_LEN - 1,
        record_logits=True,
    )


def answer(client: InlineClient, requests: Iterable[Request]) -> dict[str, RequestFinished]:
    for request in requests:
        client.send(Submit(request, time.perf_counter()))
    events = client.run_until_idle()
    return {e.request_id: e for e in events if isinstance(e, RequestFinished)}


def ids_of(finished: Mapping[str, RequestFinished]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(one.reply.token_ids) for name, one in finished.items()}


def plant(monkeypatch: pytest.MonkeyPatch, drafter: NoDrafts) -> None:
    def planted(_model: LoadedModel, _history: History) -> NoDrafts:
        return drafter

    monkeypatch.setattr(core, "make_drafter", planted)


@pytest.mark.parametrize("looks_ahead", [True, False])
@pytest.mark.parametrize("right", [0.0, 0.7, 1.0])
@pytest.mark.parametrize("name", EXACT)
def test_replies_with_drafts_equal_replies_without(
    open_tiny: OpenTiny,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    right: float,
    looks_ahead: bool,
) -> None:
    requests = [request_of(number) for number in range(len(SAMPLINGS))]
    plain = ids_of(answer(open_tiny(name, looks_ahead=looks_ahead), requests))
    for together in (False, True):
        plant(monkeypatch, PlantedDrafts(plain, right=right))
        client = open_tiny(name, looks_ahead=looks_ahead)
        finished: dict[str, RequestFinished] = {}
        for batch in [requests] if together else [[request] for request in requests]:
            finished |= answer(client, batch)
        usages = [one.usage for one in finished.values()]

        assert ids_of(finished) == plain
        assert sum(usage.drafted_tokens for usage in usages) > 60
        assert (sum(usage.accepted_tokens for usage in usages) > 40) == (right > 0)
        hold_to_the_oracle(client, name, requests)
        cache_of(client).check_invariants()


@pytest.mark.parametrize("name", ROUNDED)
def test_rounding_of_drafts_is_within_the_tolerance_and_replays_exactly(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    requests = [request_of(number) for number in range(len(SAMPLINGS))]
    plain = ids_of(answer(open_tiny(name), requests))
    plant(monkeypatch, PlantedDrafts(plain, right=0.7))
    client = open_tiny(name)

    answer(client, requests)
    hold_to_the_oracle(client, name, requests)
