"""The check reports every planted fault, on every model."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import mlx.core as mx
import pytest

from app.cli.player import ScriptPlayer
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import CONFIGS, Template
from tests.oracle.faults import (
    FIRST,
    PLANTS,
    VISIBLE,
    ForgetfulClient,
    plant_one_ahead,
    plant_other_chat,
    plant_zeros,
    play,
    play_forgetfully,
    play_with_fault,
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "plant"),
    rest_in_soak(
        product(CONFIGS, PLANTS),
        ("qwen3_5", plant_one_ahead),
        ("gemma3", plant_zeros),
        ("falcon_h1", plant_other_chat),
        ("llama", plant_other_chat),
    ),
)
def test_planted_wrong_state_is_reported(
    open_tiny: OpenTiny, name: str, plant: Callable[[InlineClient], None]
) -> None:
    report = play_with_fault(open_tiny(name, Template.KEEPING), plant)

    assert report.restored > 10
    assert report.check is not None
    assert not report.holds
    assert report.check.max_difference > VISIBLE


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_in_soak(CONFIGS, "lfm2"))
def test_turn_left_out_of_prompt_is_reported(open_tiny: OpenTiny, name: str) -> None:
    client = open_tiny(name, Template.KEEPING, client_type=ForgetfulClient)
    assert isinstance(client, ForgetfulClient)
    report = play_forgetfully(client)

    assert report.check is not None
    assert report.check.equal
    assert not report.check.prompt_equal
    assert "the prompt reads" in report.check.detail


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_token_that_does_not_follow_from_logits_is_reported(
    open_tiny: OpenTiny, monkeypatch: pytest.MonkeyPatch, temperature: float
) -> None:
    player = ScriptPlayer(open_tiny("lfm2", Template.KEEPING), Path(), check=True)
    step = FIRST | {"temperature": temperature}

    def least_likely(logits: mx.array, **_: object) -> mx.array:
        return mx.argmin(logits)

    assert play(player, step).holds
    with monkeypatch.context() as patch:
        patch.setattr("engine.runner.drawing.draw", least_likely)
        report = play(player, step)

    assert report.check is not None
    assert report.check.max_difference < VISIBLE
    assert report.check.first_difference == 0
