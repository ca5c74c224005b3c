"""A test with a seeded random user of the window. `python -m tests.person` makes longer runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.person.kinds import KINDS
from tests.person.models import build_cards
from tests.person.run import run_person

NUM_ACTIONS = 500


@pytest.mark.timeout(300)
def test_seeded_user_does_nearly_all_actions_and_loses_no_text(
    tmp_path: Path, qapp: object
) -> None:
    cards = build_cards(tmp_path / "models")
    done = run_person(tmp_path, cards, num_actions=NUM_ACTIONS, seed=1, relaunch_every=125)
    assert done.total() == NUM_ACTIONS
    # Up to six kinds of action may be missing, because some are rarely possible.
    assert len(done) > len(KINDS) - 7
