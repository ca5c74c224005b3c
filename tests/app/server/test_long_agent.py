"""An agent with growing results, edits, side requests and a restart of the server."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.long_agent import run_long_agent
from tests.fakes.tables import rest_in_soak


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_in_soak(["qwen3_5", "lfm2", "llama"], "qwen3_5"))
def test_long_agent_feeds_no_known_token(tmp_path: Path, name: str) -> None:
    figures = run_long_agent(name, tmp_path, num_turns=12)

    assert (figures.requests, figures.edits) == (12, 2)
    assert (figures.redo, figures.replayed) == (0, 0)
    assert figures.after_restart > 700
