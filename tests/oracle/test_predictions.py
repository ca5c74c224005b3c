"""The tokens that an action will feed are known before it, on every kind of model and after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.engine_fixtures import TinyModel
from tests.fakes.tables import rest_in_soak
from tests.fakes.tiny_model import Template
from tests.oracle.predictions import predict, random_steps

CASES = [
    (name, template)
    for name in ("qwen3_5", "lfm2", "llama", "gemma3")
    for template in Template
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "template"), rest_in_soak(CASES, ("qwen3_5", Template.THINKING)))
def test_fed_tokens_are_predicted(
    tiny_model: TinyModel, tmp_path: Path, name: str, template: Template
) -> None:
    steps = random_steps(20, seed=7, words=30, max_tokens=6)
    predicted = predict(tiny_model(name, template), tmp_path, steps, cache_bytes=1 << 30)
    assert len(predicted.reports) == 20
    assert any(one.restored_disk for one in predicted.reports)
    assert any(one.replayed for one in predicted.reports)
    assert predicted.wrong == []
