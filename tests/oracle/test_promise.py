"""Coming back, editing, regenerating, branching and stopping re-read nothing and change nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.cli.player import ScriptPlayer, StepReport
from app.cli.script import parse_step
from tests.fakes.engine_fixtures import OpenTiny
from tests.fakes.inline_engine import InlineClient
from tests.fakes.tiny_model import CONFIGS, Template
from tests.oracle.scripts import promise_script


def play(client: InlineClient, steps: list[dict[str, object]]) -> list[StepReport]:
    player = ScriptPlayer(client, Path(), check=True)
    reports: list[StepReport] = []
    for step in steps:
        reports += player.play(parse_step(json.dumps(step)))
        assert client.core.cache is not None
        client.core.cache.check_invariants()
    return reports


@pytest.mark.slow
@pytest.mark.parametrize("template", list(Template))
@pytest.mark.parametrize("name", list(CONFIGS))
def test_script_is_equal_and_redoes_nothing(
    open_tiny: OpenTiny, name: str, template: Template
) -> None:
    thinking = template is Template.THINKING
    steps = promise_script(chats=2, turns=2, seed=5, reasoning=thinking, max_tokens=16)
    reports = play(open_tiny(name, template), steps)

    assert len(reports) == 2 * (2 + 7)
    for report in reports:
        assert report.holds, report
        assert report.restored + report.read + report.replayed == report.prompt_tokens
    seen: set[str] = set()
    for report in reports:
        if report.chat in seen:
            assert report.redo == 0, report
            assert thinking or report.replayed == 0, report
        if report.op == "regenerate":
            assert report.restored == report.prompt_tokens
        seen.add(report.chat)
