"""A test with a seeded random user of the window. `python -m tests.person` makes longer runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.person.kinds import KINDS
from tests.person.models import build_cards
from tests.person.run import run_person


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_actions", "seed", "num_missing"),  # some kinds of action are rarely possible
    [(120, 4, 20), pytest.param(500, 1, 6, marks=pytest.mark.soak)],
)
def test_seeded_user_does_nearly_all_actions_and_loses_no_text(
    tmp_path: Path, qapp: object, num_actions: int, seed: int, num_missing: int
) -> None:
    cards = build_cards(tmp_path / "models")
    done = run_person(
        tmp_path, cards, num_actions=num_actions, seed=seed, relaunch_every=num_actions // 4
    )
    assert done.total() == num_actions
    assert len(done) >= len(KINDS) - num_missing
