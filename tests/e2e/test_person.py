"""A test with a seeded random user of the window. `python -m tests.person` makes longer runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.person.kinds import KINDS
from tests.person.models import build_cards
from tests.person.run import run_person


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_actions", "seed", "max_tokens", "num_kinds"),  # some kinds of action are rarely possible
    [(70, 4, 40, 50), pytest.param(500, 1, 200, len(KINDS) - 6, marks=pytest.mark.soak)],
)
def test_seeded_user_does_many_kinds_of_actions_and_loses_no_text(
    tmp_path: Path, qapp: object, num_actions: int, seed: int, max_tokens: int, num_kinds: int
) -> None:
    cards = build_cards(tmp_path / "models")
    done = run_person(
        tmp_path,
        cards,
        num_actions=num_actions,
        seed=seed,
        relaunch_every=num_actions // 2,
        max_tokens=max_tokens,
    )
    assert done.total() == num_actions
    assert len(done) >= num_kinds
