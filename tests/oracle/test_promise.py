"""A script of edits, regenerations, branches and stops feeds no token twice. Answers are exact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.cli.player import ScriptPlayer
from app.cli.script import parse_step
from app.cli.step_report import StepReport
from tests.fakes.asking import cache_of
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.planted_drafts import PlantedDrafts, plant
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import CONFIGS, Template
from tests.oracle.scripts import promise_script

MAX_TOKENS = 8
# Maximum number of template tokens around a message: `<|im_end|>`, `<|im_start|>user` and the
# assistant's header.
TEMPLATE_TOKENS = 24


def play(
    client: InlineClient, steps: list[dict[str, Any]], *, check: bool = True
) -> list[StepReport]:
    player = ScriptPlayer(client, Path(), check=check, predict=True)
    reports: list[StepReport] = []
    for step in steps:
        reports += player.play(parse_step(json.dumps(step)))
        cache_of(client).check_invariants()
    return reports


# Every model and template without drafts; every model, and one with thoughts, with drafts.
CASES = [
    *((name, template, False) for name in CONFIGS for template in Template),
    *((name, Template.KEEPING, True) for name in CONFIGS),
    ("qwen3_5", Template.THINKING, True),
]
HERE = [
    ("gemma3", Template.KEEPING, False),
    ("qwen3_5", Template.THINKING, True),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "template", "speculates"), rest_in_soak(CASES, *HERE))
def test_script_gives_exact_answers_and_feeds_no_token_twice(
    open_tiny: OpenTiny,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    template: Template,
    speculates: bool,
) -> None:
    thinking = template is Template.THINKING
    steps = promise_script(chats=2, turns=1, seed=5, reasoning=thinking, max_tokens=MAX_TOKENS)
    if speculates:
        drafter = PlantedDrafts(right=0.8)
        plant(monkeypatch, drafter)
        play(open_tiny(name, template), steps, check=False)
        drafter.is_learning = False
    reports = play(open_tiny(name, template), steps)

    assert (sum(report.accepted_tokens for report in reports) > 15) == speculates
    assert len(reports) == 2 * (1 + 7)
    for report in reports:
        assert report.holds, report
        assert report.check is not None
        assert report.check.replay_difference == 0.0, report
        assert report.restored + report.read + report.replayed == report.prompt_tokens
    seen: set[str] = set()
    for step, report in zip([step for step in steps if "max_tokens" in step], reports, strict=True):
        if report.chat in seen:
            assert report.redo == 0, report
            # If the template drops thoughts, the engine replays the last visible reply only.
            assert report.replayed <= (MAX_TOKENS if thinking else 0), report
            assert report.read <= len(step.get("text", "")) + TEMPLATE_TOKENS, report
        if report.op == "regenerate":
            assert report.restored == report.prompt_tokens
        seen.add(report.chat)
