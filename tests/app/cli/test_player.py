"""Tests of ScriptPlayer with the real engine and a tiny model."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from app.cli.player import ScriptPlayer, StepReport
from app.cli.script import ScriptError, parse_step
from tests.fakes.engine_fixtures import OpenTiny, TinyModel
from tests.fakes.tiny_model import Template

SEND = {"op": "send", "chat": "A", "text": "What is a boat?", "temperature": 0.8, "seed": 3}
CONTINUE = {"op": "continue", "chat": "A", "temperature": 0.8, "seed": 3}


@pytest.fixture
def player(open_tiny: OpenTiny, tiny_model: TinyModel) -> ScriptPlayer:
    return ScriptPlayer(open_tiny(), tiny_model("qwen3_5", Template.KEEPING), check=True)


def play(player: ScriptPlayer, *steps: Mapping[str, object]) -> list[StepReport]:
    return [report for step in steps for report in player.play(parse_step(json.dumps(step)))]


def test_continue_after_stop_feeds_no_known_token(player: ScriptPlayer) -> None:
    stopped, more = play(player, {**SEND, "stop_after": 3}, {**CONTINUE, "max_tokens": 4})

    assert stopped.finish_reason == "cancelled"
    assert (more.op, more.chat) == ("continue", "A")
    assert (more.restored, more.redo) == (more.prompt_tokens, 0)
    assert more.output_tokens == 4
    assert more.text.startswith(stopped.text)
    assert stopped.holds
    assert more.holds


def test_continue_of_a_finished_reply_raises(player: ScriptPlayer) -> None:
    with pytest.raises(ScriptError, match="has no reply to continue"):
        play(player, CONTINUE)
    play(player, {**SEND, "reply": {"text": "Yes."}})
    with pytest.raises(ScriptError, match="was not cut off"):
        play(player, CONTINUE)
