"""Agents behind real chat templates: no request feeds a token that the engine has processed.

tool_chats.py plays all templates for longer; these tests play a few steps of each.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.inline_engine import InlineClient
from tests.fakes.tables import rest_in_soak
from tests.oracle.tool_chats import FAMILIES, ToolChats, open_with_template

pytestmark = pytest.mark.slow

OpenTemplate = Callable[[str], InlineClient]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("templates")


def redone(chats: ToolChats) -> list[object]:
    assert any("result" in step.name for step in chats.steps)
    return [step for step in chats.steps if step.redo]


@pytest.mark.parametrize(
    ("name", "is_idle_on", "rounds"),
    rest_in_soak(
        [
            *((name, False, 2) for name in FAMILIES),
            ("gemma4_v5", True, 2),
            ("qwen3_5_think", True, 1),
            ("lfm2", False, 1),
            ("deepseekv3", False, 1),
            ("gemma4_v5", False, 1),
        ],
        ("qwen3_5_think", True, 1),
    ),
)
def test_agent_behind_a_real_template_has_no_redo(
    folder: Path, name: str, *, is_idle_on: bool, rounds: int
) -> None:
    client = open_with_template(folder, name)
    # With seed 8, one agent of each manner takes nearly all kinds of steps in one round.
    seed, copies = (5, 2) if rounds > 1 else (8, 1)
    chats = ToolChats(client, FAMILIES[name], seed=seed, is_idle_on=is_idle_on, copies=copies)
    chats.play(rounds)

    assert redone(chats) == []


@pytest.mark.parametrize("name", rest_in_soak(["qwen3_5_think", "lfm2"], "lfm2"))
def test_agent_gets_the_answers_of_the_bare_model(folder: Path, name: str) -> None:
    # With seed 27, one agent calls again, and gets results at once and one by one.
    seed, copies = (27, 1) if name == "lfm2" else (7, 2)
    chats = ToolChats(
        open_with_template(folder, name),
        FAMILIES[name],
        seed=seed,
        is_idle_on=False,
        checks=True,
        copies=copies,
    )
    chats.play(1)

    assert redone(chats) == []


def test_message_that_begins_like_another_feeds_only_common_words_again(folder: Path) -> None:
    chats = ToolChats(
        open_with_template(folder, "qwen3_5_think"),
        FAMILIES["qwen3_5_think"],
        seed=6,
        is_idle_on=False,
        alike=True,
        copies=1,
    )
    chats.play(1)

    # A recurrent state exists only at resume points, and there is none between the first words.
    again = [step.again for step in chats.steps if step.redo]
    assert again
    assert not [text for text in again if "<" in text or len(text) > len(" The harbour opens")]
