"""Models whose drafts could change a reply are found by their test."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.models.loader import load_model
from engine.models.rewinding import Rewinding
from tests.architectures.configs.every import CONFIGS
from tests.fakes.tiny_model import Template, build_tiny
from tests.fakes.ways import ways_of


@pytest.mark.parametrize(
    ("name", "can_draft"),
    [
        ("gemma3", True),
        ("gpt_oss", True),
        # In mlx-lm, a pass of several tokens sees one token more of a window than a pass of one.
        ("plamo3", False),
    ],
)
def test_model_whose_windows_depend_on_the_pass_answers_without_drafts(
    tmp_path: Path, name: str, can_draft: bool
) -> None:
    folder = build_tiny(name, tmp_path / name, Template.KEEPING, CONFIGS)
    model = load_model(folder, lambda _done, _total: None)

    assert (ways_of(model).rewinding is not None) == can_draft


def test_model_that_raises_an_error_when_it_is_rewound_answers_without_drafts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("a planted error")

    monkeypatch.setattr(Rewinding, "states", fail)
    folder = build_tiny("qwen3_5", tmp_path / "tiny", Template.KEEPING)

    assert ways_of(load_model(folder, lambda _done, _total: None)).rewinding is None
