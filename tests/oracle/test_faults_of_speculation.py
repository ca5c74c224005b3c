"""The check reports each planted fault of a verify pass: states after other tokens than kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import mlx.core as mx
import pytest

from engine.events import Submit
from engine.models import rewinding
from engine.models.rewinding import Recording, Rewinding
from engine.questions import CheckResult
from engine.types import ConversationId, Request, RequestId, SamplingParams
from tests.fakes.asking import user
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.planted_drafts import PlantedDrafts, plant
from tests.fakes.tables import rest_in_soak
from tests.oracle.faults import VISIBLE

Plant = Callable[[pytest.MonkeyPatch], None]
States = list[list[mx.array]]
_states = Rewinding.states


def shift_kept(monkeypatch: pytest.MonkeyPatch, change: Callable[[int], int]) -> None:
    """Compute the recurrent states for another number of kept tokens."""

    def shifted(self: Rewinding, recorded: Recording, after: States, kept: Sequence[int]) -> States:
        return _states(self, recorded, after, [change(num_tokens) for num_tokens in kept])

    monkeypatch.setattr(Rewinding, "states", shifted)


def one_more(monkeypatch: pytest.MonkeyPatch) -> None:
    shift_kept(monkeypatch, lambda num_tokens: num_tokens + 1)


def one_less(monkeypatch: pytest.MonkeyPatch) -> None:
    shift_kept(monkeypatch, lambda num_tokens: max(1, num_tokens - 1))


def another_rows_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def swapped(self: Rewinding, recorded: Recording, after: States, kept: Sequence[int]) -> States:
        return _states(self, recorded, after, list(reversed(kept)))

    monkeypatch.setattr(Rewinding, "states", swapped)


def states_not_rewound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the states as they are after the whole pass, with the wrong drafts."""

    def unchanged(
        self: Rewinding,
        recorded: Recording,
        after: States,
        kept: Sequence[int],
    ) -> States:
        return [list(arrays) for arrays in after]

    monkeypatch.setattr(Rewinding, "states", unchanged)


def stale_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the window of a convolution from the start of the pass."""
    take = rewinding.owned

    def stale(window: mx.array) -> mx.array:
        return take(mx.concatenate([window[:, :1], window[:, :-1]], axis=1))

    monkeypatch.setattr(rewinding, "owned", stale)


def requests() -> list[Request]:
    return [
        Request(
            request_id=RequestId(f"r{number}"),
            conversation_id=ConversationId(f"{number}"),
            messages=(user(f"{number} A list of the small boats."),),
            new_messages=frozenset({0}),
            sampling=SamplingParams(temperature=0.8, seed=number),
            max_tokens=20,
            record_logits=True,
        )
        for number in range(2)
    ]


def results(client: InlineClient) -> list[CheckResult]:
    for request in requests():
        client.send(Submit(request, time.perf_counter()))
    client.run_until_idle()
    return verified(client)


def verified(client: InlineClient) -> list[CheckResult]:
    return [
        client.answer(client.verify(request.request_id, request.messages)) for request in requests()
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fault"),
    rest_in_soak(
        [
            *(
                ("qwen3_5", fault)
                for fault in (one_more, one_less, states_not_rewound, stale_window)
            ),
            *(("falcon_h1", fault) for fault in (one_more, states_not_rewound, stale_window)),
            *((name, another_rows_count) for name in ("qwen3_5", "lfm2")),
            *((name, states_not_rewound) for name in ("lfm2", "mamba2")),
        ],
        ("qwen3_5", stale_window),
        ("lfm2", another_rows_count),
    ),
)
def test_planted_fault_of_a_verify_pass_is_reported(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch, name: str, fault: Plant
) -> None:
    drafter = PlantedDrafts(right=0.5)
    plant(monkeypatch, drafter)
    assert all(one.equal and one.replay_difference == 0.0 for one in results(open_tiny(name)))
    drafter.is_learning = False
    client = open_tiny(name)
    with monkeypatch.context() as patch:
        fault(patch)
        for request in requests():
            client.send(Submit(request, time.perf_counter()))
        client.run_until_idle()
    found = verified(client)

    assert any(min(one.max_difference, one.replay_difference) > VISIBLE for one in found)
